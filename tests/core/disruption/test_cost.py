"""What it costs to move pods: Karpenter's golden values, and the laws behind them."""

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.core.disruption.cost import POD, Costs, lifetime_remaining
from karpy.model.pods import Pod
from tests.builders import NOON
from tests.core.disruption.scenes import HOUR, claim_record, pod

some_pods = st.builds(
    lambda priority, wish: pod("x", priority=priority, disruption_cost=wish),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**32), 2**32).map(str) | st.text(max_size=5),
)


@pytest.mark.parametrize(
    ("given_pod", "pods_worth"),
    [
        (pod("x"), 1),
        (pod("x", deletion_cost="2147483647"), 10),
        (pod("x", deletion_cost="-2147483647"), -10),
        (pod("x", deletion_cost="134217728"), 2),
        (pod("x", deletion_cost="+134217728"), 2),
        (pod("x", deletion_cost="1.5"), 1),
        (pod("x", deletion_cost="3000000000"), 1),
        (pod("x", deletion_cost=""), 1),
        (pod("x", disruption_cost="134217728"), 2),
        (pod("x", disruption_cost="2147483647"), 10),
        (pod("x", disruption_cost="abc", deletion_cost="134217728"), 1),
        (pod("x", disruption_cost="9" * 5000), 1),
        (pod("x", disruption_cost="134217728", deletion_cost="-134217728"), 2),
        (pod("x", priority=10**9), 10),
        (pod("x", priority=-(2**31)), -10),
        (pod("x", priority=2**25), 2),
        (pod("x", priority=2**25, disruption_cost="134217728"), 3),
    ],
)
def test_a_pod_costs_what_karpenter_says(given_pod: Pod, pods_worth: int) -> None:
    assert Costs().of(given_pod) == pods_worth * POD


def test_a_deletion_cost_that_karpy_writes_itself_is_not_read() -> None:
    costs = Costs(reads_deletion_cost=False)

    assert costs.of(pod("x", deletion_cost="2000000000")) == POD
    assert costs.of(pod("x", disruption_cost="134217728")) == 2 * POD


@pytest.mark.parametrize(
    ("pods", "pods_worth"),
    [
        ([], 1),
        ([pod("a"), pod("b"), pod("c"), pod("d")], 5),
        ([pod("a", disruption_cost="-2147483648")], 1),
        ([pod("a", disruption_cost="-2147483648"), pod("b")], 2),
    ],
    ids=["none", "four", "one below nothing", "one below nothing beside another"],
)
def test_a_node_costs_one_and_what_its_pods_cost_if_that_is_anything(
    pods: list[Pod], pods_worth: int
) -> None:
    assert Costs().of_moving(pods) == pods_worth * POD


@given(st.lists(some_pods, max_size=5), some_pods)
def test_a_pod_more_never_makes_a_node_cheaper_to_disrupt(some: list[Pod], more: Pod) -> None:
    costs = Costs()

    assert costs.of_moving([*some, more]) >= costs.of_moving(some) >= POD


@given(some_pods)
def test_a_pod_costs_between_minus_ten_and_ten(some: Pod) -> None:
    assert -10 * POD <= Costs().of(some) <= 10 * POD


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
def test_the_remaining_life_of_a_node_is_a_share_of_expire_after(
    age: timedelta, expire_after: timedelta | None, share: Fraction
) -> None:
    assert lifetime_remaining(claim_record("a", age=age, expire_after=expire_after), NOON) == share


def test_a_node_near_its_end_is_cheaper_to_disrupt() -> None:
    claim = claim_record("a", age=HOUR, expire_after=2 * HOUR)

    cost = Costs().of_disruption([pod("x"), pod("y", daemon=True)], claim, NOON)

    assert cost == POD
