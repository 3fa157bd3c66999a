"""What methods derive from one snapshot: each value once, and none of older snapshots."""

import gc
import weakref
from datetime import datetime

import pytest
from msgspec.structs import replace

from karpy.core.disruption.cost import POD, Prices
from karpy.core.disruption.evaluation import Blocked, Evaluation, PodDisruptionBudgets
from karpy.model.nodes import Node
from karpy.model.settings import Settings
from karpy.model.verdicts import NodeReason
from tests.builders import NOON
from tests.core.disruption.scenes import (
    ALL,
    HOUR,
    MINUTE,
    NEVER,
    WEB,
    cluster,
    node,
    only_node,
    pod,
    pod_budget,
    pool,
)

QUIET_FOR = replace(ALL, consolidate_after=5 * MINUTE)


def test_pods_are_found_by_their_node_in_the_order_of_the_snapshot() -> None:
    pods = [
        pod("y", on="a"),
        pod("x", on="a"),
        pod("z", on="b"),
        pod("coming", on="a", expected=True),
        pod("waiting"),
    ]
    evaluation = Evaluation(cluster(node("a"), pods=pods))

    assert evaluation.pods_on(node("a")) == pods[:2]
    assert evaluation.pods_on(node("c")) == ()


def test_nodes_are_found_by_their_claim() -> None:
    evaluation = Evaluation(cluster(node("a"), only_node("b")))

    assert evaluation.nodes == {"a-claim": node("a")}


@pytest.mark.parametrize(
    ("given", "consolidatable_at"),
    [
        (node("a", last_pod_event=NOON - MINUTE), NOON + 4 * MINUTE),
        (node("a", conditions_since=NOON - 2 * MINUTE), NOON + 3 * MINUTE),
        (node("a", initialized=False), None),
        (node("a", pool="never"), None),
        (node("a", pool="gone"), None),
        (only_node("a"), None),
    ],
    ids=["event", "initialized", "not initialized", "never", "no pool", "no claim"],
)
def test_a_node_is_quiet_consolidate_after_its_last_pod_event(
    given: Node, consolidatable_at: datetime | None
) -> None:
    pools = [pool(policy=QUIET_FOR), pool("never", policy=NEVER)]

    assert Evaluation(cluster(given, pools=pools)).consolidatable_at(given) == consolidatable_at


def test_nodes_that_are_not_quiet_take_no_pods_that_move() -> None:
    nodes = [
        node("a", last_pod_event=NOON - MINUTE),
        node("b", last_pod_event=NOON - 5 * MINUTE),
        node("c", pool="batch", last_pod_event=NOON + MINUTE),
    ]
    pools = [pool(policy=QUIET_FOR), pool("batch")]

    assert Evaluation(cluster(*nodes, pools=pools)).unsettled == {"a"}


def test_deletion_costs_that_karpy_writes_are_not_read() -> None:
    written = pod("x", deletion_cost="134217728")
    settings = Settings(manages_deletion_cost=True)

    read, unread = (
        Evaluation(cluster(settings=each)).costs.of(written) for each in (Settings(), settings)
    )

    assert (read, unread) == (2 * POD, POD)


def test_the_first_pod_in_a_rollout_is_named() -> None:
    pods = [
        pod("x", on="a", replica_set="db-aaa"),
        pod("y", on="a", age=HOUR, replica_set="web-aaa"),
        pod("z", on="a", replica_set="web-bbb"),
    ]
    evaluation = Evaluation(cluster(node("a"), pods=pods))

    assert evaluation.first_in_rollout(pods) == pods[1]
    assert evaluation.first_in_rollout(pods[:1]) is None
    assert Evaluation(cluster(pods=pods[:2])).first_in_rollout(pods) is None


def test_parts_are_derived_once() -> None:
    evaluation = Evaluation(cluster(node("a")))

    assert isinstance(evaluation.prices, Prices)
    assert evaluation.prices is evaluation.prices
    assert evaluation.problem is evaluation.problem
    assert evaluation.what_if is evaluation.what_if


def test_what_can_be_launched_is_kept_from_the_previous_evaluation() -> None:
    given = cluster(node("a"))
    before = Evaluation(given)
    offer = before.problem.offer

    idle = Evaluation(replace(given, now=NOON + MINUTE), before)
    after = Evaluation(replace(given, now=NOON + 2 * MINUTE, nodes=()), idle)

    assert after.problem.offer is offer


def test_an_evaluation_keeps_none_of_those_before_it() -> None:
    """Otherwise a thousand passes that never need the solver would all stay in memory."""
    first = Evaluation(cluster(node("a")))
    forgotten = weakref.ref(first)
    last = Evaluation(cluster(node("a")), Evaluation(cluster(node("a")), first))

    del first
    gc.collect()

    assert forgotten() is None
    assert last.now == NOON


def test_without_budgets_nothing_is_kept() -> None:
    budgets = PodDisruptionBudgets([])

    assert budgets.is_empty
    assert budgets.why_not_evicted(pod("x", labels=WEB), NOON) is None


def test_a_budget_without_a_disruption_left_is_named() -> None:
    budgets = PodDisruptionBudgets([pod_budget("spent"), pod_budget("db", namespace="other")])

    assert budgets.why_not_evicted(pod("x", labels=WEB), NOON) == Blocked(
        NodeReason.POD_BUDGET, ("shop/spent",)
    )


def test_several_budgets_are_named_in_order_whatever_they_allow() -> None:
    budgets = PodDisruptionBudgets([pod_budget("b", 9), pod_budget("a", 9)])

    assert budgets.why_not_evicted(pod("x", labels=WEB), NOON) == Blocked(
        NodeReason.POD_BUDGETS, ("shop/a", "shop/b")
    )


def test_a_pod_that_no_drain_evicts_needs_no_budget() -> None:
    budgets = PodDisruptionBudgets([pod_budget("spent")])

    assert budgets.why_not_evicted(pod("x", labels=WEB, static=True), NOON) is None
    assert budgets.why_not_evicted(pod("x", labels=WEB, do_not_disrupt="true"), NOON) is None
