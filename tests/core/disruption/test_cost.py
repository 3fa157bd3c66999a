"""The cost of moving pods, by Karpenter's golden values, and the prices of nodes."""

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.disruption.cost import POD, Costs, Prices, lifetime_remaining
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.scheduling.overlays import with_overlays
from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement, collect
from karpy.model.settings import Settings
from karpy.model.verdicts import Launch, LaunchOption
from tests.builders import (
    FAMILY,
    NOON,
    ZONE_A,
    ZONE_B,
    catalog,
    exists,
    instance_type,
    is_in,
    min_values,
    offering,
    overlay,
)
from tests.core.disruption.scenes import DOLLAR, HOUR, claim_record, cluster, node, pod

some_pods = st.builds(
    lambda priority, wish: pod("x", priority=priority, disruption_cost=wish),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**32), 2**32).map(str) | st.text(max_size=5),
)
ONE = instance_type("m.one", dollars=1.0, spot_dollars=0.4)
UNEVEN = instance_type(
    "m.uneven",
    offerings=[
        offering(ZONE_A, ON_DEMAND, 1.0),
        offering(ZONE_B, ON_DEMAND, 3.0),
        offering(ZONE_A, SPOT, 0.5),
        offering(ZONE_B, SPOT, 2.0),
    ],
)
EITHER = is_in(CAPACITY_TYPE, SPOT, ON_DEMAND)
ON_DEMAND_ONLY = is_in(CAPACITY_TYPE, ON_DEMAND)


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


def launch(*types: InstanceType, asks: tuple[Requirement, ...] = (EITHER,)) -> Launch:
    """Build a launch with some types, whatever their prices."""
    options = tuple(LaunchOption(each.name, 0, "", "") for each in types)
    return Launch("web-0", "web", (), collect(asks), {}, options)


@pytest.mark.parametrize(
    ("zone", "spot", "dollars"),
    [(ZONE_A, False, 1.0), (ZONE_B, False, 3.0), (ZONE_A, True, 0.5), (ZONE_B, True, 2.0)],
)
def test_a_node_costs_what_its_offering_costs(zone: str, dollars: float, *, spot: bool) -> None:
    prices = Prices(catalog([UNEVEN]))

    assert prices.of(node("a", type=UNEVEN, zone=zone, spot=spot)) == dollars * DOLLAR


def test_of_offerings_in_one_place_the_first_counts() -> None:
    twice = instance_type("m.twice", offerings=[offering(dollars=2.0), offering(dollars=1.0)])

    assert Prices(catalog([twice])).of(node("a", type=twice)) == 2 * DOLLAR


@pytest.mark.parametrize(
    "labels", [{INSTANCE_TYPE: "other"}, {INSTANCE_TYPE: ""}, {ZONE: "moon"}, {CAPACITY_TYPE: ""}]
)
def test_a_node_that_nothing_in_the_catalog_is_like_has_no_price(labels: dict[str, str]) -> None:
    assert Prices(catalog([ONE])).of(node("a", type=ONE, labels=labels)) == 0


def test_each_nodepool_has_its_own_types() -> None:
    cheap = instance_type("m.one", dollars=0.5)
    prices = Prices(catalog([ONE], by_pool={"batch": [cheap]}))

    assert prices.of(node("a", type=ONE)) == DOLLAR
    assert prices.of(node("b", type=ONE, pool="batch")) == DOLLAR // 2
    assert prices.total([node("a", type=ONE), node("b", type=ONE, pool="batch")]) == 1_500_000


def test_a_type_counts_with_the_capacity_type_it_is_launched_with_where_that_is_dearest() -> None:
    prices = Prices(catalog([UNEVEN]))

    assert prices.least_worst(launch(UNEVEN)) == 2 * DOLLAR
    assert prices.least_worst(launch(UNEVEN, asks=(ON_DEMAND_ONLY,))) == 3 * DOLLAR
    assert prices.least_worst(launch(UNEVEN, asks=(EITHER, is_in(ZONE, ZONE_A)))) == DOLLAR // 2


@pytest.mark.parametrize(("limit", "is_kept"), [(2 * DOLLAR + 1, True), (2 * DOLLAR, False)])
def test_a_replacement_costs_strictly_less_wherever_it_is_launched(
    limit: int, *, is_kept: bool
) -> None:
    cheaper = Prices(catalog([UNEVEN])).cheaper(launch(UNEVEN), limit)

    assert (cheaper is not None) is is_kept


def test_the_cheaper_types_come_cheapest_first_each_with_its_best_offering() -> None:
    other = instance_type("m.other", dollars=0.9)
    prices = Prices(catalog([UNEVEN, ONE, other]))

    cheaper = prices.cheaper(launch(UNEVEN, ONE, other), 3 * DOLLAR)

    assert cheaper is not None
    assert cheaper.options == (
        LaunchOption("m.one", 400_000, ZONE_A, SPOT),
        LaunchOption("m.uneven", 500_000, ZONE_A, SPOT),
        LaunchOption("m.other", 900_000, ZONE_A, ON_DEMAND),
    )


def test_other_requirements_may_take_the_place_of_those_of_a_launch() -> None:
    asks = collect([ON_DEMAND_ONLY])

    cheaper = Prices(catalog([ONE])).cheaper(launch(ONE), 2 * DOLLAR, asks)

    assert cheaper is not None
    assert cheaper.requirements == asks
    assert cheaper.options == (LaunchOption("m.one", DOLLAR, ZONE_A, ON_DEMAND),)


def test_an_offering_that_is_sold_out_is_no_replacement() -> None:
    sold_out = instance_type("m.gone", offerings=[offering(dollars=0.1, available=False)])

    assert Prices(catalog([sold_out])).cheaper(launch(sold_out), DOLLAR) is None


def test_a_reservation_without_a_machine_left_makes_no_type_cheap() -> None:
    def reserved(left: int) -> InstanceType:
        sold = [offering(dollars=0.001, reservation="r", left=left), offering(dollars=2.0)]
        return instance_type("m.reserved", offerings=sold)

    asks = (is_in(CAPACITY_TYPE, RESERVED, ON_DEMAND),)
    full, free = (
        Prices(catalog([each])).least_worst(launch(each, asks=asks))
        for each in (reserved(0), reserved(1))
    )

    assert (full, free) == (2 * DOLLAR, 1000)


@pytest.mark.parametrize(("wanted", "is_kept"), [(2, True), (3, False)])
def test_the_types_left_must_have_the_variety_that_min_values_ask_for(
    wanted: int, *, is_kept: bool
) -> None:
    cheap = instance_type("c.cheap", dollars=0.5)
    dear = instance_type("r.dear", dollars=9.0)
    asks = (ON_DEMAND_ONLY, min_values(exists(FAMILY), wanted))
    prices = Prices(catalog([ONE, cheap, dear]))

    cheaper = prices.cheaper(launch(ONE, cheap, dear, asks=asks), 2 * DOLLAR)

    assert (cheaper is not None) is is_kept


def test_values_that_the_requirement_does_not_allow_are_no_variety() -> None:
    asks = (ON_DEMAND_ONLY, min_values(is_in(ZONE, ZONE_A), 2))

    assert Prices(catalog([ONE])).cheaper(launch(ONE, asks=asks), 2 * DOLLAR) is None


def test_overlays_change_the_prices_of_nodes_and_of_replacements_alike() -> None:
    given = cluster(
        node("a", type=ONE),
        types=[ONE],
        overlays=(overlay("half", price_adjustment="-50%"),),
        settings=Settings(node_overlay=True),
    )
    without = replace(given, overlays=(), settings=Settings())

    overlaid, plain = Evaluation(with_overlays(given)).prices, Evaluation(without).prices

    asks = (ON_DEMAND_ONLY,)
    assert (overlaid.of(node("a", type=ONE)), plain.of(node("a", type=ONE))) == (500_000, DOLLAR)
    assert overlaid.least_worst(launch(ONE, asks=asks)) == 500_000
    assert plain.least_worst(launch(ONE, asks=asks)) == DOLLAR
