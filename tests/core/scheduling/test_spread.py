"""Section 5: topology spread, which domain a pod gets."""

import pytest

from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.pods import Pod
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    catalog,
    exists,
    instance_type,
    is_in,
    node,
    not_in,
    pod,
    pods,
    pool,
    snapshot,
    spread,
    term,
)
from tests.core.scheduling.answers import hosts, pods_launched, values_launched

WEB = {"app": "web"}
TINY = catalog([instance_type("tiny", cpu="1", pods=1)])


def _in(zone: str, name: str = "") -> Pod:
    return pod(name or f"old-{zone}", labels=WEB, on=zone)


BUSY = [node(zone, zone=zone, cpu="0") for zone in (ZONE_A, ZONE_B, ZONE_C)]


# --- zones -----------------------------------------------------------------------------------


def test_zones_are_filled_evenly_ties_by_name() -> None:
    batch = pods("web", 7, labels=WEB, spreads=[spread(ZONE, WEB)])

    assert values_launched(snapshot(pods=batch, catalog=TINY), ZONE) == [
        [ZONE_A],
        [ZONE_B],
        [ZONE_C],
        [ZONE_A],
        [ZONE_B],
        [ZONE_C],
        [ZONE_A],
    ]


def test_the_emptiest_zone_comes_first() -> None:
    batch = pods("web", 3, labels=WEB, spreads=[spread(ZONE, WEB)])
    cluster = snapshot(nodes=BUSY, pods=[_in(ZONE_A), _in(ZONE_B), *batch], catalog=TINY)

    assert values_launched(cluster, ZONE) == [[ZONE_C], [ZONE_A], [ZONE_B]]


@pytest.mark.parametrize(("max_skew", "placed"), [(1, 1), (2, 2), (3, 3)])
def test_a_zone_may_be_ahead_by_the_skew(max_skew: int, placed: int) -> None:
    """Types are sold in zone-a alone; zone-b and zone-c stay empty, and count."""
    only_a = [instance_type("tiny", zones=[ZONE_A], pods=1)]
    elsewhere = [instance_type("huge", zones=[ZONE_B, ZONE_C], pods=0)]
    batch = pods("web", 4, labels=WEB, spreads=[spread(ZONE, WEB, max_skew=max_skew)])
    cluster = snapshot(pods=batch, catalog=catalog([*only_a, *elsewhere]))

    assert len(pods_launched(cluster)) == placed


def test_a_pod_that_the_spread_does_not_select_adds_nothing_to_the_skew() -> None:
    """Every zone within the skew is allowed, and the pod goes to the emptiest."""
    guest = pod("guest", spreads=[spread(ZONE, WEB)], selector={ZONE: ZONE_A})
    host = pod("web", labels=WEB, spreads=[spread(ZONE, WEB)], selector={ZONE: ZONE_A})
    wide = spread(ZONE, WEB, honors_affinity=False)

    assert hosts(snapshot(nodes=BUSY, pods=[_in(ZONE_A), guest])) == {"guest": "default-0"}
    assert hosts(snapshot(nodes=BUSY, pods=[_in(ZONE_A), host])) == {"web": "default-0"}
    assert hosts(
        snapshot(
            nodes=BUSY,
            pods=[
                _in(ZONE_A),
                pod("guest", spreads=[wide], selector={ZONE: ZONE_A}),
                pod("web", labels=WEB, spreads=[wide], selector={ZONE: ZONE_A}),
            ],
        )
    ) == {"guest": "default-0", "web": "NO_HOST"}


def test_the_minimum_is_taken_over_the_zones_the_pod_can_use() -> None:
    only = [term(is_in(ZONE, ZONE_A, ZONE_B))]
    batch = pods("web", 4, labels=WEB, spreads=[spread(ZONE, WEB)], terms=only)

    assert values_launched(snapshot(pods=batch, catalog=TINY), ZONE) == [
        [ZONE_A],
        [ZONE_B],
        [ZONE_A],
        [ZONE_B],
    ]


@pytest.mark.parametrize(("min_domains", "placed"), [(None, 4), (3, 4), (4, 3)])
def test_with_too_few_domains_the_minimum_is_zero(min_domains: int | None, placed: int) -> None:
    rule = spread(ZONE, WEB, min_domains=min_domains)
    cluster = snapshot(pods=pods("web", 4, labels=WEB, spreads=[rule]), catalog=TINY)

    assert len(pods_launched(cluster)) == placed


def test_min_domains_count_the_zones_the_pod_can_use() -> None:
    rule = spread(ZONE, WEB, min_domains=3)
    batch = pods("web", 3, labels=WEB, spreads=[rule], selector=[not_in(ZONE, ZONE_C)])

    assert values_launched(snapshot(pods=batch, catalog=TINY), ZONE) == [[ZONE_A], [ZONE_B]]


def test_a_zone_the_pool_excludes_is_no_domain() -> None:
    batch = pods("web", 3, labels=WEB, spreads=[spread(ZONE, WEB)])
    only_a = pool(requirements=[is_in(ZONE, ZONE_A)])

    assert pods_launched(snapshot(pods=batch, pools=[only_a])) == [["web-0", "web-1", "web-2"]]


def test_a_zone_of_a_type_the_pool_excludes_is_a_domain() -> None:
    """As in Karpenter: types that the requirements of the pool exclude count as well."""
    types = [instance_type("x", zones=[ZONE_A]), instance_type("y", zones=[ZONE_B])]
    only_x = pool(requirements=[is_in(INSTANCE_TYPE, "x")])
    batch = pods("web", 2, labels=WEB, spreads=[spread(ZONE, WEB)])

    assert hosts(snapshot(pods=batch, pools=[only_x], catalog=catalog(types))) == {
        "web-0": "default-0",
        "web-1": "NO_HOST",
    }


def test_a_zone_that_only_a_node_is_in_is_a_domain() -> None:
    elsewhere = node("n", zone="zone-z", cpu="100m")
    batch = pods("web", 4, labels=WEB, spreads=[spread(ZONE, WEB)])

    assert hosts(snapshot(nodes=[elsewhere], pods=batch, catalog=TINY)) == {
        "web-0": "n",
        "web-1": "default-0",
        "web-2": "default-1",
        "web-3": "default-2",
    }


def test_a_zone_of_a_deleting_node_is_none() -> None:
    """No pod can go there, and it would hold the minimum down for ever."""
    elsewhere = node("n", zone="zone-z", deleting=True)
    batch = pods("web", 5, labels=WEB, spreads=[spread(ZONE, WEB)])

    assert len(pods_launched(snapshot(nodes=[elsewhere], pods=batch, catalog=TINY))) == 5


def test_existing_nodes_obey_a_spread_too() -> None:
    nodes = [node("a", zone=ZONE_A), node("b", zone=ZONE_B), node("c", zone=ZONE_C)]
    batch = pods("web", 4, labels=WEB, spreads=[spread(ZONE, WEB)])

    assert hosts(snapshot(nodes=nodes, pods=batch)) == {
        "web-0": "a",
        "web-1": "b",
        "web-2": "c",
        "web-3": "a",
    }


# --- other keys ------------------------------------------------------------------------------


def test_a_host_takes_as_many_as_the_skew() -> None:
    batch = pods("web", 5, labels=WEB, spreads=[spread(HOSTNAME, WEB, max_skew=2)])

    assert pods_launched(snapshot(pods=batch)) == [
        ["web-0", "web-1"],
        ["web-2", "web-3"],
        ["web-4"],
    ]


def test_an_existing_host_counts_what_runs_there() -> None:
    batch = pods("web", 2, labels=WEB, spreads=[spread(HOSTNAME, WEB, max_skew=2)])
    cluster = snapshot(nodes=[node("n")], pods=[pod("old", labels=WEB, on="n"), *batch])

    assert hosts(cluster) == {"web-0": "n", "web-1": "default-0"}


def test_capacity_types_are_a_key_like_any_other() -> None:
    batch = pods("web", 3, labels=WEB, spreads=[spread(CAPACITY_TYPE, WEB)])

    assert values_launched(snapshot(pods=batch), CAPACITY_TYPE) == [[SPOT], [ON_DEMAND]]


def test_a_custom_key_spreads_over_the_values_of_pools() -> None:
    pools = [pool("a", labels={"rack": "1"}), pool("b", requirements=[is_in("rack", "2", "3")])]
    batch = pods("web", 4, labels=WEB, spreads=[spread("rack", WEB)])
    cluster = snapshot(pods=batch, pools=pools, catalog=TINY)

    assert values_launched(cluster, "rack") == [["2"], ["3"], ["1"], ["2"]]


def test_a_custom_key_that_types_define_spreads_over_their_values() -> None:
    batch = pods("web", 3, labels=WEB, spreads=[spread(FAMILY, WEB)])

    assert values_launched(snapshot(pods=batch), FAMILY) == [["c"], ["m"], ["r"]]


def test_a_key_that_types_leave_open_has_the_values_of_pools_and_nodes_alone() -> None:
    kind = instance_type("t", pods=1, requirements=[exists("rack")])
    pools = [pool(requirements=[is_in("rack", "1", "2")])]
    batch = pods("web", 3, labels=WEB, spreads=[spread("rack", WEB)])
    cluster = snapshot(pods=batch, pools=pools, catalog=catalog([kind]))

    assert values_launched(cluster, "rack") == [["1"], ["2"], ["1"]]


def test_a_key_without_definition_has_no_domain() -> None:
    batch = pods("web", 1, labels=WEB, spreads=[spread("rack", WEB)])

    assert hosts(snapshot(pods=batch, nodes=[node("n")])) == {"web-0": "NO_HOST"}


def test_a_pool_that_leaves_a_custom_key_open_offers_none_of_its_domains() -> None:
    """A node of such a pool has no label to be counted by."""
    pools = [pool("plain", weight=9), pool("racked", requirements=[is_in("rack", "1", "2")])]
    batch = pods("web", 2, labels=WEB, spreads=[spread("rack", WEB)])

    assert hosts(snapshot(pods=batch, pools=pools)) == {"web-0": "racked-0", "web-1": "racked-1"}


# --- several at once -------------------------------------------------------------------------


def test_spreads_of_one_key_must_agree() -> None:
    """One spread excludes zone-a, the other zone-b; both allow zone-c."""
    both = pod(
        "p",
        labels={"x": "1", "y": "1"},
        spreads=[spread(ZONE, {"x": "1"}), spread(ZONE, {"y": "1"})],
    )
    cluster = snapshot(
        nodes=BUSY,
        pods=[pod("x", labels={"x": "1"}, on=ZONE_A), pod("y", labels={"y": "1"}, on=ZONE_B), both],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_C]]


def test_the_lowest_sum_of_counts_decides_between_zones() -> None:
    """Both groups allow every zone; zone-b has one of their pods, the other zones two."""
    rules = [spread(ZONE, {"x": "1"}, max_skew=5), spread(ZONE, {"y": "1"}, max_skew=5)]
    cluster = snapshot(
        nodes=BUSY,
        pods=[
            pod("xa", labels={"x": "1"}, on=ZONE_A),
            pod("ya", labels={"y": "1"}, on=ZONE_A),
            pod("xb", labels={"x": "1"}, on=ZONE_B),
            pod("yc", labels={"x": "1", "y": "1"}, on=ZONE_C),
            pod("p", labels={"x": "1", "y": "1"}, spreads=rules),
        ],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_the_next_zone_is_tried_when_no_type_is_left_in_the_first() -> None:
    types = [
        instance_type("small", cpu="1", zones=[ZONE_A]),
        instance_type("large", cpu="8", zones=[ZONE_B]),
    ]
    big = pod("big", cpu="4", labels=WEB, spreads=[spread(ZONE, WEB)])

    assert values_launched(snapshot(pods=[big], catalog=catalog(types)), ZONE) == [[ZONE_B]]


def test_of_two_keys_the_second_by_name_varies_first() -> None:
    """`karpenter.sh/capacity-type` comes before the zone, so that zones are tried through first."""
    types = [
        instance_type("a", zones=[ZONE_A], cpu="1", spot_dollars=1),
        instance_type("b", zones=[ZONE_B], cpu="8", spot_dollars=1),
    ]
    rules = [spread(ZONE, WEB), spread(CAPACITY_TYPE, WEB)]
    big = pod("big", cpu="4", labels=WEB, spreads=rules)
    cluster = snapshot(pods=[big], catalog=catalog(types))

    assert values_launched(cluster, CAPACITY_TYPE) == [[ON_DEMAND]]
    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_a_spread_over_zones_and_hosts_obeys_both() -> None:
    rules = [spread(ZONE, WEB), spread(HOSTNAME, WEB)]
    batch = pods("web", 4, labels=WEB, spreads=rules)

    assert values_launched(snapshot(pods=batch), ZONE) == [[ZONE_A], [ZONE_B], [ZONE_C], [ZONE_A]]
