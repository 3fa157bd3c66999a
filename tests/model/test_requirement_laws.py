"""The laws of the algebra; whatever is faster elsewhere is held to this one."""

from functools import reduce
from operator import and_

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.model.requirements import Operator, Requirement, anything, require

numbers = st.sampled_from(["0", "1", "2", "3", "4", "5"])
values = st.one_of(numbers, st.sampled_from(["a", "b", "-1", "+2", "007"]))
bounded = st.sampled_from([Operator.GT, Operator.LT, Operator.GTE, Operator.LTE])
listed = st.sampled_from(
    [each for each in Operator if each.value not in {"Gt", "Lt", "Gte", "Lte"}]
)
min_values = st.none() | st.integers(1, 3)

written = st.one_of(
    st.builds(require, st.just("k"), listed, st.lists(values, max_size=4), min_values),
    st.builds(require, st.just("k"), bounded, st.tuples(numbers), min_values),
)
requirements = st.lists(written, min_size=1, max_size=3).map(lambda parts: reduce(and_, parts))


@given(requirements, requirements, values)
def test_the_intersection_allows_what_both_allow(
    a: Requirement, b: Requirement, value: str
) -> None:
    assert (value in (a & b)) == (value in a and value in b)


@given(requirements, requirements)
def test_order_does_not_matter(a: Requirement, b: Requirement) -> None:
    assert a & b == b & a


@given(requirements, requirements, requirements)
def test_grouping_does_not_matter(a: Requirement, b: Requirement, c: Requirement) -> None:
    assert (a & b) & c == a & (b & c)


@given(requirements)
def test_saying_it_twice_changes_nothing(a: Requirement) -> None:
    assert a & a == a


@given(requirements)
def test_that_a_label_must_exist_excludes_no_value(a: Requirement) -> None:
    """It only rules out nodes without the label, which `is_needed` keeps in mind."""
    both = a & anything("k")

    assert replace(both, is_needed=a.is_needed) == a
    assert both.is_negative == (not a.complement and a.is_empty)


@given(requirements, requirements)
def test_adding_a_requirement_only_narrows(a: Requirement, b: Requirement) -> None:
    """A node that has become too tight for a pod stays so; the solver relies on it."""
    assert (a & b) & b == a & b


@given(requirements, requirements)
def test_sets_that_share_nothing_do_not_intersect(a: Requirement, b: Requirement) -> None:
    assert a.intersects(b) == (not (a & b).is_empty)
    assert a.intersects(b) == b.intersects(a)


@given(requirements, requirements, values)
def test_sets_with_a_value_in_common_intersect(a: Requirement, b: Requirement, value: str) -> None:
    assert a.intersects(b) or not (value in a and value in b)


@given(requirements)
def test_bounds_belong_to_open_sets_and_never_cross(a: Requirement) -> None:
    is_bounded = a.gte is not None or a.lte is not None

    assert a.complement or not is_bounded
    assert a.gte is None or a.lte is None or a.gte <= a.lte


@given(requirements)
def test_a_set_is_written_with_the_operator_that_makes_it(a: Requirement) -> None:
    remade = require("k", a.operator, a.values, a.min_values)

    assert (remade.values, remade.complement) == (a.values, a.complement)
    assert remade.min_values == a.min_values


@given(requirements)
def test_emptiness_is_the_absence_of_values_that_were_listed(a: Requirement) -> None:
    assert a.is_empty == (a.operator is Operator.DOES_NOT_EXIST)
    is_bounded = a.gte is not None or a.lte is not None
    is_open = a.operator is Operator.NOT_IN and not is_bounded and not a.is_needed
    assert a.is_negative == (is_open or a.is_empty)
