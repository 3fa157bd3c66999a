"""Section 3: the order of pods, and the order in which nodes are tried."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, SPOT, ZONE
from karpy.model.verdicts import Nomination
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    affinity,
    catalog,
    instance_type,
    is_in,
    node,
    pod,
    pods,
    pool,
    snapshot,
    term,
)
from tests.core.scheduling.answers import (
    decide_checked,
    hosts,
    pods_launched,
    values_launched,
)

FOUR_CPUS = catalog([instance_type("four", cpu="4")])
ONE_POD = catalog([instance_type("one", pods=1)])


# --- the queue -------------------------------------------------------------------------------


def test_pods_are_placed_by_cpu_then_memory_then_age_then_uid() -> None:
    """With one pod to a node the launches are in the order of the queue."""
    cluster = snapshot(
        catalog=ONE_POD,
        pods=[
            pod("b", uid="2"),
            pod("a", uid="3"),
            pod("z", uid="1"),
            pod("old", age=timedelta(hours=1)),
            pod("memory", memory="2Gi"),
            pod("cpu", cpu="2", memory="1Mi"),
        ],
    )

    assert pods_launched(cluster) == [["cpu"], ["memory"], ["old"], ["z"], ["b"], ["a"]]


def test_pods_that_exist_come_before_those_that_do_not() -> None:
    virtual = replace(pod("virtual", cpu="2"), is_virtual=True)
    cluster = snapshot(catalog=ONE_POD, pods=[virtual, pod("small", cpu="1m")])

    assert pods_launched(cluster) == [["small"], ["virtual"]]


def test_virtual_pods_do_not_use_up_a_limit_before_pods_that_exist() -> None:
    virtual = replace(pod("virtual", cpu="4"), is_virtual=True)
    cluster = snapshot(
        catalog=FOUR_CPUS, pods=[virtual, pod("web", cpu="1")], pools=[pool(limits={"cpu": "4"})]
    )

    assert hosts(cluster) == {"virtual": "NO_HOST", "web": "default-0"}


def test_virtual_pods_take_what_is_left_on_a_node() -> None:
    batch = [replace(pod(name, cpu="2"), is_virtual=True) for name in ("a", "b")]
    cluster = snapshot(
        catalog=FOUR_CPUS, nodes=[node("n", cpu="4")], pods=[*batch, pod("web", cpu="1")]
    )

    assert hosts(cluster) == {"a": "n", "b": "default-0", "web": "n"}


def test_pods_without_requests_come_last() -> None:
    cluster = snapshot(
        catalog=ONE_POD, pods=[pod("none", cpu="0", memory="0"), pod("some", cpu="1m", memory="0")]
    )

    assert pods_launched(cluster) == [["some"], ["none"]]


def test_a_pod_is_tried_again_when_a_later_one_opened_the_way() -> None:
    near = pod("near", cpu="2", affinity=[affinity(HOSTNAME, {"app": "base"})])
    base = pod("base", cpu="1", labels={"app": "base"})

    assert pods_launched(snapshot(pods=[near, base])) == [["base", "near"]]


def test_pods_are_tried_again_as_long_as_a_round_places_one() -> None:
    """Each pod waits for the next smaller pod, so that every round places exactly one."""
    chain = [
        pod(
            f"p{i}",
            cpu=f"{i}00m",
            labels={"i": f"{i}"},
            affinity=[affinity(ZONE, {"i": f"{i - 1}"})],
        )
        for i in range(1, 5)
    ]
    cluster = snapshot(pods=[*chain, pod("first", cpu="10m", labels={"i": "0"})])

    assert pods_launched(cluster) == [["first", "p1", "p2", "p3", "p4"]]
    assert hosts(snapshot(pods=chain)) == dict.fromkeys(["p1", "p2", "p3", "p4"], "NO_HOST")


def test_each_try_starts_again_with_all_preferences() -> None:
    """In the first round no step succeeds; in the second the preference can be met."""
    picky = pod(
        "picky",
        cpu="2",
        affinity=[affinity(ZONE, {"app": "base"})],
        prefers=[(1, term(is_in(CAPACITY_TYPE, SPOT)))],
    )
    base = pod("base", cpu="1", labels={"app": "base"}, selector={FAMILY: "c"})
    full = catalog([instance_type("c.x", cpu="1"), instance_type("m.x", dollars=2, spot_dollars=1)])
    cluster = snapshot(pods=[picky, base], catalog=full)

    assert values_launched(cluster, CAPACITY_TYPE) == [[], [SPOT]]


# --- nodes before claims before new claims ---------------------------------------------------


def test_existing_nodes_come_before_new_ones_and_are_taken_in_turn() -> None:
    cluster = snapshot(
        nodes=[node("b", cpu="1"), node("a", cpu="1")],
        pods=pods("p", 3, cpu="800m"),
    )

    assert hosts(cluster) == {"p-0": "a", "p-1": "b", "p-2": "default-0"}


def test_nominations_are_by_node_in_order_and_pods_as_placed() -> None:
    cluster = snapshot(
        nodes=[node("b"), node("a", cpu="1"), node("booting", initialized=False)],
        pods=[pod("big", cpu="3"), pod("small"), pod("middle", cpu="1")],
    )

    assert decide_checked(cluster).nominations == (
        Nomination("a", ("default/middle",)),
        Nomination("b", ("default/big", "default/small")),
    )


def test_initialized_nodes_come_before_those_that_boot_whatever_their_names() -> None:
    nodes = [node("a", initialized=False), node("z"), node("b", initialized=False)]
    cluster = snapshot(nodes=nodes, pods=pods("p", 3, cpu="3"))

    assert hosts(cluster) == {"p-0": "z", "p-1": "a", "p-2": "b"}


def test_a_new_node_is_launched_before_a_preference_is_dropped() -> None:
    """Nodes, claims and new claims are all tried before a preference is dropped."""
    wishful = pod("p", prefers=[(1, term(is_in(ZONE, ZONE_B)))])
    cluster = snapshot(nodes=[node("n", zone=ZONE_A)], pods=[wishful])

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_claims_are_filled_before_a_heavier_pool_makes_another() -> None:
    pools = [
        pool("heavy", weight=9, requirements=[is_in(FAMILY, "r")], limits={"nodes": "1"}),
        pool("light"),
    ]
    cluster = snapshot(
        pools=pools, pods=[pod("c", cpu="2", selector={FAMILY: "c"}), pod("any", cpu="1")]
    )

    assert hosts(cluster) == {"any": "light-0", "c": "light-0"}


# --- which claim -----------------------------------------------------------------------------


def test_the_claim_with_the_fewest_pods_comes_first() -> None:
    cluster = snapshot(
        catalog=FOUR_CPUS,
        pods=[*pods("large", 3, cpu="3"), *pods("small", 3, cpu="200m")],
    )

    assert pods_launched(cluster) == [
        ["large-0", "small-0"],
        ["large-1", "small-1"],
        ["large-2", "small-2"],
    ]


@pytest.mark.parametrize("claims", [2, 13, 60])
def test_of_claims_with_as_many_pods_the_oldest_comes_first(claims: int) -> None:
    cluster = snapshot(
        catalog=FOUR_CPUS,
        pods=[
            *pods("large", claims, cpu="3"),
            *pods("small", claims, cpu="10m"),
            pod("tiny", cpu="1m"),
        ],
    )

    assert [len(each) for each in pods_launched(cluster)] == [3, *[2] * (claims - 1)]


@pytest.mark.parametrize("pods_to_place", [400, 500, 501, 502, 600])
def test_the_order_of_claims_does_not_depend_on_the_number_of_pods(pods_to_place: int) -> None:
    tiny = pods_to_place - 17
    cluster = snapshot(
        catalog=FOUR_CPUS,
        pods=[*pods("large", 17, cpu="3"), *pods("tiny", tiny, cpu="1m")],
    )

    sizes = [len(each) for each in pods_launched(cluster)]
    more = tiny % 17
    assert sizes == [*[tiny // 17 + 2] * more, *[tiny // 17 + 1] * (17 - more)]
