from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.core.disruption.cost import (
    DISRUPTION_COST,
    POD,
    POD_DELETION_COST,
    disruption_cost,
    eviction_cost,
    lifetime_remaining,
    moving_cost,
)
from karpy.model.tenants import Tenant
from tests.builders.pods import NOON
from tests.core.disruption.scenes import state, tenant

HOUR = timedelta(hours=1)
pods = st.builds(
    lambda priority, wish: tenant("a", priority=priority, annotations={DISRUPTION_COST: wish}),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**32), 2**32).map(str) | st.text(max_size=5),
)


@pytest.mark.parametrize(
    ("priority", "annotations", "pods_worth"),
    [
        (0, {}, 1),
        (0, {POD_DELETION_COST: "2147483647"}, 10),
        (0, {POD_DELETION_COST: "-2147483647"}, -10),
        (0, {POD_DELETION_COST: "134217728"}, 2),
        (0, {POD_DELETION_COST: "1.5"}, 1),
        (0, {POD_DELETION_COST: "3000000000"}, 1),
        (0, {DISRUPTION_COST: "134217728"}, 2),
        (0, {DISRUPTION_COST: "2147483647"}, 10),
        (0, {DISRUPTION_COST: "abc", POD_DELETION_COST: "134217728"}, 1),
        (0, {DISRUPTION_COST: "9" * 5000}, 1),
        (0, {DISRUPTION_COST: "134217728", POD_DELETION_COST: "-134217728"}, 2),
        (10**9, {}, 10),
        (-(2**31), {}, -10),
        (2**25, {}, 2),
    ],
)
def test_a_pod_costs_what_karpenter_says(
    priority: int, annotations: dict[str, str], pods_worth: int
) -> None:
    cost = eviction_cost(tenant("a", priority=priority, annotations=annotations))

    assert cost == pods_worth * POD


def test_a_cost_that_we_wrote_ourselves_is_not_read() -> None:
    pod = tenant("a", annotations={POD_DELETION_COST: "2000000000"})

    assert eviction_cost(pod, reads_deletion_cost=False) == POD


@pytest.mark.parametrize(
    ("tenants", "pods_worth"),
    [
        ([], 1),
        ([tenant("a"), tenant("b"), tenant("c"), tenant("d")], 5),
        ([tenant("a", annotations={DISRUPTION_COST: "-2147483648"})], 1),
        ([tenant("a", is_daemon=True), tenant("b", is_static=True)], 1),
        ([tenant("a", phase="Succeeded"), tenant("b", deleted=NOON)], 1),
        ([tenant("a", deleted=NOON, is_stateful=True)], 2),
    ],
)
def test_moving_a_node_costs_its_pods_that_need_another_place(
    tenants: list[Tenant], pods_worth: int
) -> None:
    assert moving_cost(tenants) == pods_worth * POD


@given(st.lists(pods, max_size=5), pods)
def test_one_pod_more_never_makes_it_cheaper(some: list[Tenant], more: Tenant) -> None:
    assert moving_cost([*some, more]) >= moving_cost(some) >= POD


@pytest.mark.parametrize(
    ("age", "expire_after", "share"),
    [
        (HOUR, None, Fraction(1)),
        (HOUR, 4 * HOUR, Fraction(3, 4)),
        (5 * HOUR, 4 * HOUR, Fraction(0)),
        (-HOUR, 4 * HOUR, Fraction(1)),
        (HOUR, timedelta(), Fraction(0)),
    ],
)
def test_the_life_before_a_node_gets_shorter(
    age: timedelta, expire_after: timedelta | None, share: Fraction
) -> None:
    claim = state("a", age=age, expire_after=expire_after).claim
    assert claim is not None

    assert lifetime_remaining(claim, NOON) == share


def test_an_old_node_is_cheaper_to_disrupt() -> None:
    claim = state("a", age=HOUR, expire_after=2 * HOUR).claim
    assert claim is not None

    cost = disruption_cost([tenant("a"), tenant("b", is_daemon=True)], claim, NOON)

    assert cost == POD
