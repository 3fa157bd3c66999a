"""Masks over types: an AND must give the same answer as the algebra of requirements per type."""

from functools import reduce
from operator import or_

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.scheduling.instancetypes import (
    Thresholds,
    TypeTable,
    dense_members,
    flags,
    from_flags,
    members,
)
from karpy.model.instances import InstanceType, Offering, PriceList
from karpy.model.requirements import Requirement, Requirements, why_disjoint, why_incompatible
from tests.builders import ZONE_A, ZONE_B, instance_type, offering
from tests.core.scheduling.drawing import (
    KEYS,
    KNOWN,
    catalogs,
    requirement_sets,
    requirements_on,
)

any_requirement = st.sampled_from(KEYS).flatmap(requirements_on)
amounts = st.lists(st.integers(-3, 9), min_size=1, max_size=12)
sets = st.frozensets(st.integers(0, 200), max_size=40)


def _open_offerings(each: InstanceType, wanted: Requirements) -> list[Offering]:
    """Return the offerings of a type that requirements allow, one by one."""
    return [
        offering
        for offering in each.offerings
        if offering.is_available and why_incompatible(wanted, offering.requirements, KNOWN) is None
    ]


@given(catalogs, any_requirement)
def test_allowing_a_requirement_is_not_being_disjoint_from_it(
    types: list[InstanceType], wanted: Requirement
) -> None:
    table = TypeTable(types, KNOWN)

    expected = [
        bit
        for bit, each in enumerate(table.types)
        if why_disjoint(each.requirements, {wanted.key: wanted}) is None
    ]

    assert list(members(table.allowing(wanted))) == expected
    assert list(members(table.allowing(wanted))) == expected, "remembered"


@given(catalogs, st.lists(any_requirement, max_size=4))
def test_what_was_asked_before_changes_no_answer(
    types: list[InstanceType], asked: list[Requirement]
) -> None:
    table = TypeTable(types, KNOWN)

    assert [table.allowing(each) for each in asked] == [
        TypeTable(types, KNOWN).allowing(each) for each in asked
    ]


@given(catalogs, requirement_sets(*KEYS))
def test_a_market_is_open_if_its_offerings_are_compatible(
    types: list[InstanceType], wanted: Requirements
) -> None:
    table = TypeTable(types, KNOWN)

    sold = reduce(or_, (market.available for market in table.markets_for(wanted)), 0)

    assert list(members(sold)) == [
        bit for bit, each in enumerate(table.types) if _open_offerings(each, wanted)
    ]


@given(catalogs, requirement_sets(*KEYS))
def test_a_market_knows_the_lowest_price_of_each_type(
    types: list[InstanceType], wanted: Requirements
) -> None:
    table = TypeTable(types, KNOWN)
    markets = table.markets_for(wanted)

    cheapest = [
        min((market.prices[bit] for market in markets if bit in market.prices), default=None)
        for bit in range(table.size)
    ]

    assert cheapest == [
        min((offering.price for offering in _open_offerings(each, wanted)), default=None)
        for each in table.types
    ]


def _listed(each: InstanceType) -> InstanceType:
    prices = [offering.price for offering in each.offerings]
    return replace(each, offerings=PriceList(tuple(each.offerings), prices))


@given(catalogs)
def test_a_price_list_sells_what_its_offerings_sell(types: list[InstanceType]) -> None:
    plain, listed = TypeTable(types, KNOWN), TypeTable([_listed(each) for each in types], KNOWN)

    assert [(each.requirements, each.available, each.prices) for each in listed.markets] == [
        (each.requirements, each.available, each.prices) for each in plain.markets
    ]


def test_types_sold_in_shared_places_keep_their_own_prices() -> None:
    places = (offering(ZONE_A), offering(ZONE_B), offering(ZONE_A))
    cheap = replace(instance_type("cheap"), offerings=PriceList(places, [5, 6, 4]))
    dear = replace(instance_type("dear"), offerings=PriceList(places, [7, 8, 9]))

    table = TypeTable([cheap, dear], KNOWN)

    assert [market.prices for market in table.markets] == [{0: 4, 1: 7}, {0: 6, 1: 8}]


@given(catalogs)
def test_a_type_has_the_bits_it_was_given(types: list[InstanceType]) -> None:
    table = TypeTable(types, KNOWN)

    assert [table.types[bit] for each in types for bit in members(table.mask_of([each]))] == types


def test_a_type_with_overrides_has_a_bit_for_each_form() -> None:
    split = instance_type(
        "split",
        overhead={"cpu": "1"},
        offerings=[
            offering(ZONE_A),
            offering(ZONE_B, capacity={"cpu": "8"}),
            offering(ZONE_A, capacity={"cpu": "8"}),
            offering(ZONE_A, overhead={"cpu": "2"}),
        ],
    )
    plain = instance_type("plain")

    table = TypeTable([split, plain], KNOWN)

    assert [each.name for each in table.types] == ["split", "split", "split", "plain"]
    assert [each["cpu"] for each in table.allocatable] == [3000, 7000, 2000, 4000]
    assert (table.mask_of([split]), table.mask_of([plain])) == (0b0111, 0b1000)
    assert table.is_split


# --- thresholds ------------------------------------------------------------------------------


@given(amounts, st.integers(-4, 10))
def test_reaching_and_below_are_plain_comparisons(have: list[int], amount: int) -> None:
    table = Thresholds(enumerate(have))

    assert list(members(table.reaching(amount))) == [
        bit for bit, each in enumerate(have) if each >= amount
    ]
    assert list(members(table.below(amount))) == [
        bit for bit, each in enumerate(have) if each <= amount
    ]


@given(amounts, st.sets(st.integers(0, 11), min_size=1))
def test_the_largest_among_some_is_their_maximum(have: list[int], chosen: set[int]) -> None:
    some = sorted(bit for bit in chosen if bit < len(have)) or [0]
    mask = sum(1 << bit for bit in some)
    table = Thresholds(enumerate(have))

    assert table.largest(mask) == max(have[bit] for bit in some)
    assert table.largest(mask) == max(have[bit] for bit in some), "remembered"


def test_thresholds_of_nothing_reach_nothing() -> None:
    table = Thresholds([])

    assert (table.reaching(0), table.below(9)) == (0, 0)


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
