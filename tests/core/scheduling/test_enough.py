"""A constraint whose lifting is called enough is enough; an empty NodePool says why it is empty."""

from karpy.core.explain import fixes_for
from karpy.model.verdicts import Constraint
from tests.builders import (
    FAMILY,
    exists,
    is_in,
    min_values,
    pod,
    pool,
    snapshot,
    taint,
)
from tests.builders.clouds import CPUS
from tests.core.scheduling.answers import only_pool_refusal, only_refusal


def test_one_of_two_taints_is_not_enough() -> None:
    cluster = snapshot(pods=[pod("p")], pools=[pool(taints=[taint("a"), taint("b")])])

    refused = only_pool_refusal(cluster)

    assert [each.detail for each in refused.exclusions] == ["a:NoSchedule", "b:NoSchedule"]
    assert not refused.is_single


def test_every_label_that_lacks_variety_is_named() -> None:
    picky = pool(requirements=[min_values(exists(FAMILY), 50), min_values(exists(CPUS), 50)])

    refused = only_refusal(snapshot(pods=[pod("p")], pools=[picky]))

    (fix,) = fixes_for(refused)
    assert fix.text.startswith(f"lower minValues of {FAMILY} and {CPUS} in ")
    assert not fix.is_enough


def test_variety_that_lifting_another_constraint_leaves_too_small_is_not_enough() -> None:
    picky = pool(
        requirements=[min_values(exists(FAMILY), 2), min_values(exists(CPUS), 2)],
        taints=[taint("gpu")],
    )

    whole = only_pool_refusal(snapshot(pods=[pod("p")], pools=[picky]))
    narrow = only_pool_refusal(snapshot(pods=[pod("p", selector={FAMILY: "c"})], pools=[picky]))

    assert (whole.decisive.constraint, whole.is_single) == (Constraint.TAINT, True)
    assert (narrow.decisive.constraint, narrow.is_single) == (Constraint.TAINT, False)


def test_two_requirements_that_leave_no_type_together_are_named() -> None:
    cluster = snapshot(
        pods=[pod("p")],
        pools=[pool(requirements=[is_in(FAMILY, "c"), is_in(CPUS, "4"), is_in(FAMILY, "m")])],
    )

    refused = only_pool_refusal(cluster)

    assert refused.decisive.detail == f"{FAMILY} In [m], after {FAMILY} In [c], {CPUS} In [4]"


def test_a_pool_that_no_type_suits_is_loosened_where_it_is_too_tight() -> None:
    cluster = snapshot(pods=[pod("p")], pools=[pool(requirements=[is_in(FAMILY, "x")])])

    refused = only_refusal(cluster)

    assert [each.text for each in fixes_for(refused)] == [
        f"loosen the requirements of NodePool `default` that leave no type: {FAMILY} In [x]"
    ]
