"""Section 3: what a NodePool may still make."""

import pytest

from karpy.model.labels import HOSTNAME
from karpy.model.pods import HostPort
from tests.builders import (
    anti_affinity,
    catalog,
    instance_type,
    node,
    offering,
    pod,
    pods,
    pool,
    snapshot,
    taint,
)
from tests.core.scheduling.answers import hosts, launches, pods_launched, types_launched

SMALL = instance_type("small", cpu="2", memory="4Gi", dollars=1)
LARGE = instance_type("large", cpu="8", memory="32Gi", dollars=2)
BOTH = catalog([SMALL, LARGE])
FULL = taint("full")


@pytest.mark.parametrize(
    ("limits", "types"),
    [
        ({"cpu": "8"}, [["small", "large"]]),
        ({"cpu": "7999m"}, [["small"]]),
        ({"cpu": "1"}, []),
        ({"memory": "32Gi"}, [["small", "large"]]),
        ({"memory": "31Gi"}, [["small"]]),
        ({"cpu": "8", "memory": "4Gi"}, [["small"]]),
        ({"example.com/gpu": "0"}, [["small", "large"]]),
        ({"cpu": "0"}, []),
    ],
)
def test_types_that_exceed_any_limit_are_out(
    limits: dict[str, str], types: list[list[str]]
) -> None:
    cluster = snapshot(pods=[pod("p")], pools=[pool(limits=limits)], catalog=BOTH)

    assert types_launched(cluster) == types


def test_capacity_counts_not_what_the_system_leaves_of_it() -> None:
    kind = instance_type("t", cpu="4", overhead={"cpu": "1"})
    batch = [pod("p", cpu="2")]

    def count(limit: str) -> int:
        pools = [pool(limits={"cpu": limit})]
        return len(launches(snapshot(pods=batch, pools=pools, catalog=catalog([kind]))))

    assert count("3900m") == 0
    assert count("4") == 1


def test_a_type_counts_with_the_most_it_may_turn_out_to_have() -> None:
    """Any of its offerings may be had, the one with the larger capacity too."""
    kind = instance_type(
        "t", cpu="4", offerings=[offering(dollars=1), offering(dollars=2, capacity={"cpu": "6"})]
    )
    cluster = snapshot(pods=[pod("p")], pools=[pool(limits={"cpu": "5"})], catalog=catalog([kind]))

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_existing_nodes_of_the_pool_count_unless_they_are_being_deleted() -> None:
    cluster = snapshot(
        nodes=[
            node("n", cpu="4", taints=[FULL]),
            node("going", cpu="99", deleting=True),
            node("other", cpu="99", pool="other", taints=[FULL]),
            node("booting", cpu="1", initialized=False, taints=[FULL]),
        ],
        pools=[pool(limits={"cpu": "12"})],
        catalog=BOTH,
        pods=[pod("p")],
    )

    assert types_launched(cluster) == [["small"]]


def test_a_pool_beyond_its_limit_makes_nothing() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="4", taints=[FULL])],
        pools=[pool(limits={"cpu": "3"})],
        pods=[pod("p")],
    )

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_a_claim_counts_with_the_largest_type_it_had_when_it_was_made() -> None:
    """The first claim may become large, so that only a small one is left, and then none."""
    cluster = snapshot(
        pools=[pool(limits={"cpu": "10"})], catalog=BOTH, pods=pods("p", 3, ports=[HostPort(80)])
    )

    assert types_launched(cluster) == [["small", "large"], ["small"]]
    assert hosts(cluster)["p-2"] == "NO_HOST"


def test_what_a_claim_loses_later_is_not_given_back() -> None:
    """Parity: the second pod makes the first claim small, and it still counts as large."""
    only_small = instance_type("small", cpu="2", capacity={"example.com/disk": "1"})
    cluster = snapshot(
        pools=[pool(limits={"cpu": "9"})],
        catalog=catalog([only_small, LARGE]),
        pods=[
            pod("p", cpu="1"),
            pod("narrows", cpu="900m", more={"example.com/disk": "1"}),
            pod("late", cpu="800m"),
        ],
    )

    assert hosts(cluster) == {"late": "NO_HOST", "narrows": "default-0", "p": "default-0"}


def test_claims_count_one_after_the_other() -> None:
    cluster = snapshot(
        pools=[pool(limits={"cpu": "18"})],
        catalog=BOTH,
        pods=[*pods("big", 3, cpu="7"), *pods("little", 2, cpu="1500m")],
    )

    assert hosts(cluster) == {
        "big-0": "default-0",
        "big-1": "default-1",
        "big-2": "NO_HOST",
        "little-0": "default-2",
        "little-1": "NO_HOST",
    }


def test_claims_of_this_decision_count_against_the_node_limit_at_once() -> None:
    """Karpenter counts them only in the next loop, and makes too many."""
    cluster = snapshot(
        nodes=[node("n", taints=[FULL]), node("going", deleting=True)],
        pools=[pool(limits={"nodes": "2"})],
        catalog=catalog([SMALL]),
        pods=pods("p", 2, cpu="1500m"),
    )

    assert hosts(cluster) == {"p-0": "default-0", "p-1": "NO_HOST"}


def test_pods_that_want_a_node_each_stay_within_the_node_limit() -> None:
    shy = pods("p", 4, labels={"app": "p"}, anti_affinity=[anti_affinity(HOSTNAME, {"app": "p"})])
    pools = [pool("few", weight=9, limits={"nodes": "2"}), pool("many", limits={"nodes": "1"})]

    assert hosts(snapshot(pods=shy, pools=pools)) == {
        "p-0": "few-0",
        "p-1": "few-1",
        "p-2": "many-2",
        "p-3": "NO_HOST",
    }


def test_pods_that_want_a_node_each_stay_within_other_limits_too() -> None:
    shy = pods("p", 4, labels={"app": "p"}, anti_affinity=[anti_affinity(HOSTNAME, {"app": "p"})])
    cluster = snapshot(pods=shy, pools=[pool(limits={"cpu": "4"})], catalog=catalog([SMALL]))

    assert pods_launched(cluster) == [["p-0"], ["p-1"]]


def test_a_pool_without_nodes_left_still_fills_its_claims() -> None:
    cluster = snapshot(pools=[pool(limits={"nodes": "1"})], pods=pods("p", 5))

    assert pods_launched(cluster) == [["p-0", "p-1", "p-2", "p-3", "p-4"]]


def test_a_pool_at_its_limit_makes_way_for_the_next() -> None:
    cluster = snapshot(
        pools=[pool("first", weight=1, limits={"cpu": "2"}), pool("second")],
        catalog=catalog([SMALL]),
        pods=pods("p", 2, cpu="1500m"),
    )

    assert hosts(cluster) == {"p-0": "first-0", "p-1": "second-1"}


def test_each_pool_has_limits_of_its_own() -> None:
    cluster = snapshot(
        pools=[pool("a", limits={"cpu": "2"}), pool("b", limits={"cpu": "2"})],
        catalog=catalog([SMALL]),
        pods=pods("p", 3, cpu="1500m"),
    )

    assert hosts(cluster) == {"p-0": "b-0", "p-1": "a-1", "p-2": "NO_HOST"}
