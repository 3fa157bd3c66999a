"""Budgets: numbers, percentages, reasons, windows, and what is consumed already."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.disruption.budgets import (
    UNLIMITED,
    Allowance,
    Allowances,
    Permit,
    find_allowances,
    is_active,
    permit,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.nodes import Node
from karpy.model.pools import Budget, DisruptionPolicy, DisruptionReason
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import NodeReason, NodeRefusal
from tests.builders import NOON
from tests.core.disruption.scenes import (
    ALL,
    DOLLAR,
    HOUR,
    budgets,
    candidates,
    cluster,
    event_rows,
    node,
    only_claim,
    only_node,
    pool,
)

UNDERUTILIZED, EMPTY, DRIFTED, UNHEALTHY = DisruptionReason
WORKING_HOURS = Budget("0", schedule="0 9 * * mon-fri", duration=8 * HOUR)
numbers = st.integers(0, 200).map(str) | st.integers(0, 100).map(lambda share: f"{share}%")


def monday(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{clock}").replace(tzinfo=UTC)


def with_policy(policy: DisruptionPolicy, *nodes: Node) -> Snapshot:
    return cluster(*nodes, pools=[pool(policy=policy), pool("batch")])


def allowances(given: Snapshot, reason: DisruptionReason = EMPTY) -> Allowances:
    return find_allowances(Evaluation(given), reason)


# --- one policy ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "total", "allowed"),
    [
        ("10%", 1, 1),
        ("5%", 10, 1),
        ("10%", 19, 2),
        ("10%", 0, 0),
        ("0%", 5, 0),
        ("100%", 7, 7),
        ("0", 5, 0),
        ("3", 1, 3),
    ],
)
def test_a_share_is_rounded_up(nodes: str, total: int, allowed: int) -> None:
    assert permit(budgets(nodes), EMPTY, total, NOON) == Permit(allowed)


def test_a_nodepool_without_budgets_may_lose_everything() -> None:
    assert permit(ALL, EMPTY, 5, NOON) == Permit(2147483647)


def test_a_nodepool_without_the_field_budgets_may_lose_a_tenth() -> None:
    assert permit(DisruptionPolicy(), UNDERUTILIZED, 25, NOON) == Permit(3)


def test_the_smallest_budget_counts() -> None:
    assert permit(budgets("5", "50%", "7"), EMPTY, 8, NOON) == Permit(4)


def test_a_budget_is_about_its_reasons_only_and_without_any_about_all() -> None:
    policy = replace(
        ALL,
        budgets=(
            Budget("1", reasons=("Drifted",)),
            Budget("2", reasons=("Unhealthy",)),
            Budget("3"),
            Budget("0", reasons=()),
        ),
    )

    permits = [permit(policy, each, 10, NOON).nodes for each in DisruptionReason]

    assert dict(zip(DisruptionReason, permits, strict=True)) == {
        UNDERUTILIZED: 3,
        EMPTY: 3,
        DRIFTED: 1,
        UNHEALTHY: 2,
    }


@pytest.mark.parametrize("clock", ["09:00:00", "12:34:56.789", "16:59:59"])
def test_a_budget_holds_from_its_beginning_until_its_duration_is_over(clock: str) -> None:
    assert is_active(WORKING_HOURS, monday(clock))


@pytest.mark.parametrize("clock", ["08:59:59", "17:00:00"])
def test_a_budget_holds_neither_before_nor_at_its_end(clock: str) -> None:
    assert not is_active(WORKING_HOURS, monday(clock))


def test_a_budget_begins_by_utc() -> None:
    in_berlin = datetime.fromisoformat("2026-03-02T09:30:00+01:00")

    assert not is_active(WORKING_HOURS, in_berlin)


def test_beginnings_that_overlap_make_one_long_window() -> None:
    budget = Budget("0", schedule="0 * * * *", duration=2 * HOUR)

    assert all(is_active(budget, NOON + timedelta(minutes=each)) for each in range(0, 1440, 7))


def test_a_budget_that_does_not_hold_allows_everything() -> None:
    policy = replace(ALL, budgets=(WORKING_HOURS,))

    assert permit(policy, EMPTY, 5, monday("20:00:00")) == Permit(UNLIMITED)
    assert permit(policy, EMPTY, 5, monday("10:00:00")) == Permit(0)


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (Budget("1", schedule="0 9 * * tue-mon", duration=HOUR), "no schedule"),
        (Budget("1", schedule="TZ=Asia/Tokyo 0 9 * * *", duration=HOUR), "no schedule"),
        (Budget("1", duration=HOUR), "no schedule"),
        (Budget("many"), "neither a number of nodes nor a share of them"),
        (Budget("101%"), "neither a number of nodes nor a share of them"),
    ],
)
def test_a_budget_that_is_invalid_forbids_everything(broken: Budget, fault: str) -> None:
    """Also disruptions for other reasons: the budget was written to protect something."""
    broken = replace(broken, reasons=("Drifted",))
    policy = replace(ALL, budgets=(Budget("5"), broken))

    result = permit(policy, EMPTY, 10, NOON)

    assert result.nodes == 0
    assert fault in result.faults[0]


@given(st.lists(numbers, max_size=4), numbers, st.integers(0, 50))
def test_a_budget_more_never_allows_more(some: list[str], more: str, total: int) -> None:
    before = permit(budgets(*some), EMPTY, total, NOON)

    assert permit(budgets(*some, more), EMPTY, total, NOON).nodes <= before.nodes


@given(numbers, st.integers(0, 50))
def test_a_node_more_never_allows_less(nodes: str, total: int) -> None:
    before = permit(budgets(nodes), EMPTY, total, NOON)

    assert permit(budgets(nodes), EMPTY, total + 1, NOON).nodes >= before.nodes


# --- a cluster -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_node", "reason", "nodes", "consumed"),
    [
        (node("a"), EMPTY, 1, 0),
        (only_claim("a"), EMPTY, 0, 0),
        (node("a", initialized=False), EMPTY, 0, 0),
        (node("a", initialized=False, true_conditions=["Rebooting"]), EMPTY, 1, 1),
        (node("a", initialized=False, true_conditions=["Rebooting"]), UNHEALTHY, 1, 1),
        (node("a", true_conditions=["InstanceTerminating"], deleting=True), EMPTY, 0, 0),
        (node("a", deleting=True), EMPTY, 1, 1),
        (node("a", replaced=True), EMPTY, 1, 1),
        (node("a", replaced=True), UNHEALTHY, 1, 1),
        (node("a", ready=False), EMPTY, 1, 1),
        (node("a", ready=False), DRIFTED, 1, 1),
        (node("a", ready=False), UNHEALTHY, 1, 0),
        (node("a", conditions=[]), EMPTY, 1, 1),
        (node("a", pool="batch"), EMPTY, 0, 0),
        (node("a", foreign=True), EMPTY, 0, 0),
        (only_node("a"), EMPTY, 0, 0),
    ],
)
def test_initialized_nodes_count_and_those_that_are_not_there_for_pods_are_spent(
    given_node: Node, reason: DisruptionReason, nodes: int, consumed: int
) -> None:
    found = allowances(cluster(given_node), reason)

    assert found.by_pool["web"] == Allowance(nodes, UNLIMITED, consumed)


def test_what_is_spent_already_is_not_allowed_again() -> None:
    nodes = [node(f"n-{each}") for each in range(8)]
    nodes += [node("n-8", ready=False), node("n-9", replaced=True)]

    found = allowances(with_policy(budgets("30%"), *nodes))

    assert found.by_pool["web"] == Allowance(10, 3, 2)
    assert found.remaining() == {"web": 1, "batch": UNLIMITED}


def test_repair_is_not_kept_from_nodes_by_those_that_are_not_ready() -> None:
    nodes = [node(f"n-{each}", ready=each > 1) for each in range(10)]
    given = with_policy(budgets("100%"), *nodes)

    assert allowances(given, UNHEALTHY).remaining()["web"] == 10
    assert allowances(given, DRIFTED).remaining()["web"] == 8


def test_more_spent_than_allowed_leaves_nothing() -> None:
    assert Allowance(10, 1, 4).remaining == 0


def test_candidates_go_in_their_order_while_the_budget_of_their_nodepool_lasts() -> None:
    nodes = [node("a"), node("b"), node("c", pool="batch"), node("d")]
    given = with_policy(budgets("2"), *nodes)

    chosen, spent = allowances(given).within(candidates(given), "emptiness")

    assert [each.name for each in chosen] == ["a", "b", "c"]
    assert spent == [
        NodeRefusal(
            NodeReason.BUDGET_SPENT,
            "d",
            "2 of 3 nodes allowed, 0 taken",
            "emptiness",
            price=DOLLAR,
        )
    ]


def test_a_refusal_names_the_budget_that_is_invalid() -> None:
    given = with_policy(budgets("many"), node("a"))

    _, (refusal,) = allowances(given).within(candidates(given), "emptiness")

    assert refusal.detail.startswith("a budget is invalid: `many` is neither")


def test_a_nodepool_that_may_lose_no_node_says_so() -> None:
    found = allowances(with_policy(budgets("0"), node("a")), DRIFTED)

    text = "No allowed disruptions for disruption reason Drifted due to blocking budget"
    assert event_rows(found.notices) == [("NodePool", "web", "DisruptionBlocked", text)]
    assert found.notices[0].window_seconds == 60
    assert found.notices[0].same_as == ("uid-web", "Drifted")


def test_a_nodepool_without_nodes_has_nothing_to_say() -> None:
    assert allowances(with_policy(budgets("0"))).notices == ()


def test_allowances_are_gauges() -> None:
    found = allowances(with_policy(budgets("2"), node("a", ready=False)))

    labels = {"nodepool": "web", "reason": "empty"}
    assert found.counts[-2:] == (
        Count("nodepools_allowed_disruptions", labels, 2.0),
        Count("nodepools_nodes_consuming_budgets", labels, 1.0),
    )


def test_a_budget_that_is_invalid_is_in_the_log() -> None:
    found = allowances(with_policy(budgets("many"), node("a")))

    error = "`many` is neither a number of nodes nor a share of them"
    fields = {"NodePool": "web", "error": error}
    assert found.remarks == (Remark("detected disruption budget errors", fields, is_error=True),)
