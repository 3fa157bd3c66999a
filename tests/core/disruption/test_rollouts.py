"""Consolidation waits for pods that move anyway, for a limited time."""

from datetime import timedelta

import pytest

from karpy.core.disruption.rollouts import (
    BOOTING_TIME,
    PAUSE,
    ROLLOUT_TIME,
    SCALE_OUT_TIME,
    STEP_TIME,
    ReplicaSet,
    find_rollouts,
    is_scaling_out,
    replica_set_of,
)
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from tests.builders import NOON
from tests.core.disruption.scenes import HOUR, MINUTE, cluster, node, pod

SECOND = timedelta(seconds=1)
EXPECTED = pod("x", on="new", unschedulable=False, expected=True)
OLD, NEW = ReplicaSet("shop", "web", "aaa"), ReplicaSet("shop", "web", "bbb")


def booting(age: timedelta = MINUTE, name: str = "new") -> Node:
    return node(name, age=age, initialized=False, true_conditions=[])


def booted(name: str, created: timedelta, took: timedelta) -> Node:
    """Build a node that was created some time ago and initialized after another."""
    return node(name, age=created, conditions_since=NOON - created + took)


def of_set(name: str, digest: str, age: timedelta, *, on: str = "a") -> Pod:
    return pod(name, on=on, age=age, replica_set=f"web-{digest}")


# --- scale-out -----------------------------------------------------------------------------------


def test_a_node_that_boots_for_pods_is_a_scale_out() -> None:
    assert is_scaling_out(cluster(booting(), pods=[EXPECTED]))


@pytest.mark.parametrize(
    ("there", "pods", "in_command"),
    [
        (booting(), [], frozenset()),
        (node("new"), [EXPECTED], frozenset()),
        (booting(BOOTING_TIME), [EXPECTED], frozenset()),
        (node("new", initialized=False, deleting=True), [EXPECTED], frozenset()),
        (booting(), [EXPECTED], frozenset({"new-claim"})),
    ],
    ids=["no pods", "initialized", "too slow", "deleting", "in command"],
)
def test_a_node_holds_nothing_up_unless_it_boots_for_pods(
    there: Node, pods: list[Pod], in_command: frozenset[str]
) -> None:
    assert not is_scaling_out(cluster(there, pods=pods, in_command=in_command))


@pytest.mark.parametrize(
    "waiting",
    [
        pod("x", age=SECOND),
        pod("x", age=SECOND, unschedulable=False),
        pod("x", age=HOUR),
        pod("x", age=SECOND, virtual=True),
    ],
    ids=["unschedulable", "untried", "old", "virtual"],
)
def test_a_pod_that_no_node_boots_for_holds_nothing_up(waiting: Pod) -> None:
    """Otherwise a pod that can never be scheduled would stop consolidation for ever."""
    assert not is_scaling_out(cluster(booting(), pods=[waiting]))


def test_a_scale_out_that_goes_on_and_on_holds_nothing_up_any_more() -> None:
    """Otherwise a cluster with new nodes all day would never be consolidated."""

    def scale_out(pause: timedelta) -> bool:
        step = MINUTE + pause
        count = SCALE_OUT_TIME // step + 1
        before = [
            booted(f"n-{number}", MINUTE + number * step, MINUTE) for number in range(1, count)
        ]
        return is_scaling_out(cluster(*before, booting(MINUTE), pods=[EXPECTED]))

    assert not scale_out(PAUSE)
    assert scale_out(PAUSE + SECOND)


# --- rollouts ------------------------------------------------------------------------------------


def test_a_deployment_with_pods_of_two_sets_and_a_new_one_is_in_a_rollout() -> None:
    pods = [of_set("x", "aaa", HOUR), of_set("y", "bbb", MINUTE)]

    assert find_rollouts(pods, NOON) == {OLD, NEW}


@pytest.mark.parametrize(
    "pods",
    [
        [of_set("x", "aaa", HOUR), of_set("y", "aaa", MINUTE)],
        [of_set("x", "aaa", HOUR), of_set("y", "bbb", STEP_TIME)],
        [pod("x", on="a", replica_set="web-aaa"), pod("y", on="a", replica_set="db-bbb")],
        [of_set("x", "aaa", HOUR), pod("y", on="a", replica_set="web-bbb", phase="Succeeded")],
        [
            of_set("x", "aaa", HOUR),
            pod("y", on="a", age=MINUTE, replica_set="web-bbb", namespace="other"),
        ],
        [of_set("x", "aaa", HOUR), pod("y", on="a", age=MINUTE)],
    ],
    ids=["one set", "stuck", "other deployment", "over", "other namespace", "no set"],
)
def test_pods_are_in_no_rollout_otherwise(pods: list[Pod]) -> None:
    assert find_rollouts(pods, NOON) == frozenset()


def test_a_rollout_holds_consolidation_up_for_a_limited_time() -> None:
    """Otherwise a paused rollout whose pods come and go would stop consolidation for ever."""

    def rollout(began: timedelta) -> frozenset[ReplicaSet]:
        pods = [of_set("x", "aaa", 9 * HOUR), of_set("y", "bbb", began), of_set("z", "bbb", MINUTE)]
        return find_rollouts(pods, NOON)

    assert rollout(ROLLOUT_TIME - SECOND) == {OLD, NEW}
    assert rollout(ROLLOUT_TIME) == frozenset()


def test_equal_pods_are_in_the_same_rollouts_whether_they_share_owners_or_not() -> None:
    """Two namespaces may have ReplicaSets of the same name."""
    first, second = of_set("x", "aaa", HOUR), pod("y", age=MINUTE, replica_set="web-bbb")
    here = of_set("z", "bbb", MINUTE)
    elsewhere = pod("z", age=MINUTE, replica_set="web-bbb", namespace="other")

    assert here.owners == elsewhere.owners
    assert find_rollouts([elsewhere, first, second, here], NOON) == {OLD, NEW}


def test_only_a_set_named_after_its_template_belongs_to_a_deployment() -> None:
    assert replica_set_of(of_set("x", "aaa", HOUR)) == OLD
    assert replica_set_of(pod("x", on="a", labels={"pod-template-hash": "ccc"})) is None
