"""Sets of numbers as bits: what is faster must still be a set."""

from hypothesis import given
from hypothesis import strategies as st

from karpy.core.scheduling.instancetypes import dense_members, flags, from_flags, members

sets = st.frozensets(st.integers(0, 200), max_size=40)


def _mask(numbers: frozenset[int]) -> int:
    return sum(1 << number for number in numbers)


@given(sets)
def test_members_are_listed_smallest_first(numbers: frozenset[int]) -> None:
    assert list(members(_mask(numbers))) == sorted(numbers)


@given(sets)
def test_many_members_are_listed_the_same_way(numbers: frozenset[int]) -> None:
    assert dense_members(_mask(numbers)) == sorted(numbers)


@given(sets, st.integers(201, 300))
def test_flags_spell_a_set_out(numbers: frozenset[int], size: int) -> None:
    assert list(flags(_mask(numbers), size)) == [int(each in numbers) for each in range(size)]


@given(sets, sets)
def test_bits_are_sets(left: frozenset[int], right: frozenset[int]) -> None:
    assert list(members(_mask(left) & _mask(right))) == sorted(left & right)
    assert list(members(_mask(left) | _mask(right))) == sorted(left | right)
    assert list(members(_mask(left) & ~_mask(right))) == sorted(left - right)


@given(st.lists(st.booleans(), max_size=100))
def test_a_set_is_made_from_flags(are_in: list[bool]) -> None:
    found = list(members(from_flags(are_in)))

    assert found == [number for number, is_in in enumerate(are_in) if is_in]
