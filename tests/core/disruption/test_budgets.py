from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.core.disruption.budgets import (
    UNLIMITED,
    Allowance,
    Permit,
    find_allowances,
    is_active,
    permit,
)
from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.disruption import Budget, DisruptionPolicy, DisruptionReason
from karpy.model.surroundings import NodeState
from tests.builders.pods import NOON
from tests.core.disruption.scenes import around, budgets, state, told

HOUR = timedelta(hours=1)
EMPTY, DRIFTED, UNHEALTHY = (
    DisruptionReason.EMPTY,
    DisruptionReason.DRIFTED,
    DisruptionReason.UNHEALTHY,
)
WORKING_HOURS = Budget("0", schedule="0 9 * * mon-fri", duration=8 * HOUR)
numbers = st.integers(0, 200).map(str) | st.integers(0, 100).map(lambda share: f"{share}%")


def monday(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{clock}").replace(tzinfo=UTC)


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


def test_a_pool_without_budgets_may_lose_everything() -> None:
    assert permit(budgets(), EMPTY, 5, NOON) == Permit(UNLIMITED)


def test_the_smallest_budget_counts() -> None:
    assert permit(budgets("5", "50%", "7"), EMPTY, 8, NOON) == Permit(4)


def test_a_budget_is_about_its_reasons_only() -> None:
    policy = DisruptionPolicy(
        budgets=(Budget("1", reasons=("Drifted",)), Budget("3"), Budget("0", reasons=()))
    )

    permits = [permit(policy, each, 10, NOON) for each in (EMPTY, DRIFTED, UNHEALTHY)]

    assert permits == [Permit(3), Permit(1), Permit(3)]


@pytest.mark.parametrize("clock", ["09:00:00", "12:34:56.789", "16:59:59"])
def test_a_budget_holds_from_its_beginning(clock: str) -> None:
    assert is_active(WORKING_HOURS, monday(clock))


@pytest.mark.parametrize("clock", ["08:59:59", "17:00:00"])
def test_a_budget_holds_neither_before_nor_at_its_end(clock: str) -> None:
    assert not is_active(WORKING_HOURS, monday(clock))


def test_a_budget_begins_by_the_clock_of_greenwich() -> None:
    in_berlin = datetime.fromisoformat("2026-03-02T09:30:00+01:00")

    assert not is_active(WORKING_HOURS, in_berlin)


def test_beginnings_that_overlap_make_one_long_window() -> None:
    budget = Budget("0", schedule="0 * * * *", duration=2 * HOUR)

    assert all(is_active(budget, NOON + timedelta(minutes=each)) for each in range(0, 1440, 7))


def test_a_budget_that_does_not_hold_allows_everything() -> None:
    policy = DisruptionPolicy(budgets=(WORKING_HOURS,))

    assert permit(policy, EMPTY, 5, monday("20:00:00")) == Permit(UNLIMITED)


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
def test_a_budget_that_makes_no_sense_forbids_everything(broken: Budget, fault: str) -> None:
    """Also what it is not about: whoever wrote it wanted to protect something."""
    broken = Budget(broken.nodes, ("Drifted",), broken.schedule, broken.duration)
    policy = DisruptionPolicy(budgets=(Budget("5"), broken))

    result = permit(policy, EMPTY, 10, NOON)

    assert result.nodes == 0
    assert fault in result.faults[0]


@given(st.lists(numbers, max_size=4), numbers, st.integers(0, 50))
def test_one_budget_more_never_allows_more(some: list[str], more: str, total: int) -> None:
    before = permit(budgets(*some), EMPTY, total, NOON)

    assert permit(budgets(*some, more), EMPTY, total, NOON).nodes <= before.nodes


@given(numbers, st.integers(0, 50))
def test_a_node_more_never_allows_less(nodes: str, total: int) -> None:
    before = permit(budgets(nodes), EMPTY, total, NOON)

    assert permit(budgets(nodes), EMPTY, total + 1, NOON).nodes >= before.nodes


@pytest.mark.parametrize(
    ("node", "reason", "nodes", "consumed"),
    [
        (state("a"), EMPTY, 1, 0),
        (state("a", initialized=False), EMPTY, 0, 0),
        (state("a", initialized=False, said=["Rebooting"]), EMPTY, 1, 1),
        (state("a", initialized=False, said=["Rebooting"]), UNHEALTHY, 1, 1),
        (state("a", said=["InstanceTerminating"], deleting=True), EMPTY, 0, 0),
        (state("a", deleting=True), EMPTY, 1, 1),
        (state("a", marked=True), EMPTY, 1, 1),
        (state("a", marked=True), UNHEALTHY, 1, 1),
        (state("a", ready=False), EMPTY, 1, 1),
        (state("a", ready=False), DRIFTED, 1, 1),
        (state("a", ready=False), UNHEALTHY, 1, 0),
        (state("a", pool="batch"), EMPTY, 0, 0),
        (NodeState(node=state("a").node), EMPTY, 0, 0),
    ],
)
def test_nodes_count_and_consume(
    node: NodeState, reason: DisruptionReason, nodes: int, consumed: int
) -> None:
    allowances = find_allowances(around(node), reason)

    assert allowances.by_pool["web"] == Allowance(nodes, UNLIMITED, consumed)


def test_what_is_consumed_already_is_not_allowed_again() -> None:
    nodes = [state(f"n-{each}") for each in range(8)]
    nodes += [state("n-8", ready=False), state("n-9", marked=True)]

    allowances = find_allowances(around(*nodes, policies={"web": budgets("30%")}), EMPTY)

    assert allowances.by_pool["web"] == Allowance(10, 3, 2)
    assert allowances.remaining() == {"web": 1, "batch": 0}


def test_more_consumed_than_allowed_leaves_nothing() -> None:
    assert Allowance(10, 1, 4).remaining == 0


def test_a_pool_that_may_lose_no_node_says_so() -> None:
    allowances = find_allowances(around(state("a"), policies={"web": budgets("0")}), EMPTY)

    text = "No allowed disruptions for disruption reason Empty due to blocking budget"
    assert told(allowances.notices) == [("NodePool", "web", "DisruptionBlocked", text)]
    assert allowances.notices[0].window_seconds == 60


def test_a_pool_without_nodes_has_nothing_to_say() -> None:
    allowances = find_allowances(around(policies={"web": budgets("0")}), EMPTY)

    assert allowances.notices == ()


def test_allowances_are_gauges() -> None:
    allowances = find_allowances(
        around(state("a", ready=False), policies={"web": budgets("2")}), EMPTY
    )

    labels = {"nodepool": "web", "reason": "empty"}
    assert allowances.counts[-2:] == (
        Count("nodepools_allowed_disruptions", labels, 2.0),
        Count("nodepools_nodes_consuming_budgets", labels, 1.0),
    )


def test_a_budget_that_makes_no_sense_is_remarked() -> None:
    allowances = find_allowances(around(state("a"), policies={"web": budgets("many")}), EMPTY)

    error = "`many` is neither a number of nodes nor a share of them"
    fields = {"NodePool": "web", "error": error}
    assert allowances.remarks == (
        Remark("detected disruption budget errors", fields, is_error=True),
    )
