"""Section 5: which domain is chosen if several have the same count of pods."""

from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    affinity,
    catalog,
    instance_type,
    node,
    offering,
    pod,
    pods,
    snapshot,
    spread,
)
from tests.core.scheduling.answers import values_launched

WEB = {"app": "web"}
NEAR = affinity(ZONE, WEB)


def _four(**dollars: float) -> InstanceType:
    """Build a type with these prices in zone-a, zone-b, zone-c."""
    sold = [offering(f"zone-{zone}", dollars=much) for zone, much in dollars.items()]
    return instance_type("four", offerings=sold)


def test_pods_with_a_spread_start_in_a_domain_that_is_not_dear() -> None:
    batch = pods("web", 3, cpu="3", labels=WEB, spreads=[spread(ZONE, WEB)])
    cluster = snapshot(pods=batch, catalog=catalog([_four(a=2, b=1, c=1)]))

    assert values_launched(cluster, ZONE) == [[ZONE_B], [ZONE_C], [ZONE_A]]


def test_fewer_pods_count_for_more_than_a_lower_price() -> None:
    cluster = snapshot(
        nodes=[node("b", zone=ZONE_B, cpu="0")],
        pods=[pod("old", labels=WEB, on="b"), pod("p", labels=WEB, spreads=[spread(ZONE, WEB)])],
        catalog=catalog([_four(a=9, b=1)]),
    )

    assert values_launched(cluster, ZONE) == [[ZONE_A]]


def test_a_small_difference_in_price_does_not_decide() -> None:
    """Pods that all start in the same zone can share nodes."""
    web = pod("p", labels=WEB, affinity=[NEAR])

    def zone(**dollars: float) -> list[list[str]]:
        return values_launched(snapshot(pods=[web], catalog=catalog([_four(**dollars)])), ZONE)

    assert zone(a=1.25, b=1.0) == [[ZONE_A]]
    assert zone(a=1.26, b=1.0) == [[ZONE_B]]


def test_the_first_pod_of_an_affinity_takes_spot_if_it_may() -> None:
    """By name alone on-demand would come first."""
    web = pod("p", labels=WEB, affinity=[affinity(CAPACITY_TYPE, WEB)])

    assert values_launched(snapshot(pods=[web]), CAPACITY_TYPE) == [[SPOT]]


def test_a_pod_that_other_pods_must_be_near_gets_a_domain_that_is_not_dear() -> None:
    types = [instance_type("c.big", cpu="16", dollars=3), instance_type("m.small", dollars=1)]
    batch = [pod("web", cpu="2", labels=WEB), pod("friend", affinity=[affinity(FAMILY, WEB)])]

    assert values_launched(snapshot(pods=batch, catalog=catalog(types)), FAMILY) == [["m"]]


def test_prices_of_types_without_room_do_not_count() -> None:
    """The cheap type in zone-a is too small; types with room cost more there."""
    types = [
        instance_type("tiny", cpu="1", dollars=0.1, zones=[ZONE_A]),
        _four(a=2, b=1),
    ]
    web = pod("p", cpu="3", labels=WEB, affinity=[NEAR])

    assert values_launched(snapshot(pods=[web], catalog=catalog(types)), ZONE) == [[ZONE_B]]


def test_a_claim_with_several_domains_gets_one_where_its_types_are_not_dear() -> None:
    free = pod("free", cpu="2")
    web = pod("web", cpu="1", labels=WEB, spreads=[spread(ZONE, WEB)])
    cluster = snapshot(pods=[free, web], catalog=catalog([_four(a=2, b=1)]))

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_a_reservation_does_not_make_a_domain_cheap() -> None:
    """The reservation runs out, and later nodes cost the usual price."""
    sold = [
        offering(ZONE_A, ON_DEMAND, 1),
        offering(ZONE_B, ON_DEMAND, 1),
        offering(ZONE_B, dollars=0.001, reservation="r-1", left=1),
    ]
    web = pod("p", labels=WEB, affinity=[NEAR])
    cluster = snapshot(pods=[web], catalog=catalog([instance_type("four", offerings=sold)]))

    assert values_launched(cluster, ZONE) == [[ZONE_A]]


def test_each_key_is_chosen_by_itself() -> None:
    web = pod("p", labels=WEB, affinity=[NEAR, affinity(CAPACITY_TYPE, WEB)])
    sold = [
        offering(ZONE_A, ON_DEMAND, 2),
        offering(ZONE_B, ON_DEMAND, 1.5),
        offering(ZONE_B, SPOT, 1),
        offering(ZONE_C, SPOT, 1),
    ]
    cluster = snapshot(pods=[web], catalog=catalog([instance_type("four", offerings=sold)]))

    assert values_launched(cluster, CAPACITY_TYPE) == [[SPOT]]
    assert values_launched(cluster, ZONE) == [[ZONE_B]]
