import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.core.disruption.budgets import (
    UNLIMITED,
    WEEK,
    BudgetFault,
    BudgetSpan,
    Window,
    find_budget_faults,
    find_next,
    find_spans,
    find_windows,
    permit,
)
from karpy.model.pools import Budget, DisruptionPolicy, DisruptionReason
from tests.builders.pods import NOON

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
DRIFTED, EMPTY = DisruptionReason.DRIFTED, DisruptionReason.EMPTY
WORKING_HOURS = Budget("0", schedule="0 9 * * mon-fri", duration=8 * HOUR)
schedules = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(["0", "*", "*/7", "15,45"]),
    st.sampled_from(["9", "*", "*/5", "22-23"]),
    st.sampled_from(["*", "1", "2-5"]),
    st.sampled_from(["*", "3", "mar-apr"]),
    st.sampled_from(["*", "mon-fri", "0", "sat"]),
) | st.sampled_from(["@daily", "@hourly", "@every 1h", "@every 90s", "nonsense", "0 0 31 2 *"])
durations = st.sampled_from([MINUTE, 10 * MINUTE, HOUR, 8 * HOUR, 30 * HOUR, 10 * DAY, 366 * DAY])
budgets = st.builds(
    Budget,
    st.sampled_from(["0", "1", "5", "10%", "50%", "100%"]),
    st.sampled_from([None, ("Drifted",), ("Empty", "Drifted"), ()]),
) | st.builds(
    Budget,
    st.sampled_from(["0", "1", "20%"]),
    st.sampled_from([None, ("Drifted",), ("Empty",)]),
    schedules,
    durations,
)
policies = st.lists(budgets, max_size=4).map(lambda some: DisruptionPolicy(budgets=tuple(some)))


def at(clock: str, day: int = 2) -> datetime:
    """Return a moment in March 2026; 2 March is a Monday."""
    return datetime.fromisoformat(f"2026-03-{day:02d}T{clock}").replace(tzinfo=UTC)


def policy(*budgets: Budget) -> DisruptionPolicy:
    return DisruptionPolicy(budgets=budgets)


def test_a_pool_without_budgets_may_lose_everything_at_any_time() -> None:
    spans = find_spans(policy(), DRIFTED, 10, NOON, NOON + WEEK)

    assert spans == (BudgetSpan(NOON, NOON + WEEK, UNLIMITED),)


def test_a_window_that_holds_now_ends_and_comes_again() -> None:
    always = Budget("30%")

    spans = find_spans(policy(always, WORKING_HOURS), DRIFTED, 10, NOON, at("12:00", 3))

    assert spans == (
        BudgetSpan(NOON, at("17:00"), 0, (1,)),
        BudgetSpan(at("17:00"), at("09:00", 3), 3, (0,)),
        BudgetSpan(at("09:00", 3), at("12:00", 3), 0, (1,)),
    )


def test_two_budgets_that_allow_the_same_both_decide() -> None:
    spans = find_spans(policy(Budget("1"), Budget("10%")), EMPTY, 10, NOON, NOON + HOUR)

    assert spans == (BudgetSpan(NOON, NOON + HOUR, 1, (0, 1)),)


def test_a_budget_for_another_reason_leaves_no_mark() -> None:
    never = Budget("0", ("Drifted",), "0 0 * * *", HOUR)

    assert len(find_spans(policy(never), DRIFTED, 10, NOON, NOON + WEEK)) == 15
    assert find_spans(policy(never), EMPTY, 10, NOON, NOON + WEEK) == (
        BudgetSpan(NOON, NOON + WEEK, UNLIMITED),
    )


def test_a_budget_that_cannot_be_understood_forbids_all_the_time() -> None:
    odd = Budget("5", schedule="0 9 * * fri-mon", duration=HOUR)

    spans = find_spans(policy(Budget("3"), odd), EMPTY, 10, NOON, NOON + WEEK)

    assert spans == (BudgetSpan(NOON, NOON + WEEK, 0, (1,)),)


def test_windows_that_overlap_are_one() -> None:
    every_hour = Budget("0", schedule="0 * * * *", duration=90 * MINUTE)
    three_in_a_row = Budget("0", schedule="0 14-16 * * *", duration=HOUR)

    assert list(find_windows(every_hour, NOON, NOON + WEEK)) == [Window(NOON, NOON + WEEK)]
    assert list(find_windows(three_in_a_row, NOON, NOON + 6 * HOUR)) == [
        Window(at("14:00"), at("17:00"))
    ]


def test_a_window_of_a_year_is_found_at_once() -> None:
    """A search minute by minute would take half a million steps."""
    dense = Budget("0", schedule="* * * * *", duration=365 * DAY)

    assert list(find_windows(dense, NOON, NOON + WEEK)) == [Window(NOON, NOON + WEEK)]


def test_the_next_time_is_when_more_than_those_already_going_may_go() -> None:
    some = policy(Budget("2"), WORKING_HOURS)

    assert find_next(some, DRIFTED, 10, more_than=0, since=NOON) == at("17:00")
    assert find_next(some, DRIFTED, 10, more_than=0, since=at("18:00")) == at("18:00")
    assert find_next(some, DRIFTED, 10, more_than=2, since=NOON) is None


@given(policies, st.integers(0, 30), st.integers(0, 7 * 24 * 3600 - 1))
def test_a_span_says_what_the_budgets_say_at_each_of_its_moments(
    some: DisruptionPolicy, nodes: int, second: int
) -> None:
    spans = find_spans(some, DRIFTED, nodes, NOON, NOON + WEEK)
    moment = NOON + timedelta(seconds=second)
    (span,) = (each for each in spans if each.begins <= moment < each.ends)

    assert span.nodes == permit(some, DRIFTED, nodes, moment).nodes


@given(policies)
def test_spans_follow_each_other_and_differ(some: DisruptionPolicy) -> None:
    spans = find_spans(some, EMPTY, 20, NOON, NOON + WEEK)

    assert (spans[0].begins, spans[-1].ends) == (NOON, NOON + WEEK)
    assert all(a.ends == b.begins for a, b in itertools.pairwise(spans))
    assert all((a.nodes, a.budgets) != (b.nodes, b.budgets) for a, b in itertools.pairwise(spans))


@pytest.mark.parametrize(
    ("budget", "field", "problem"),
    [
        (Budget("ten"), "nodes", "`ten` is neither a number of nodes nor a share of them"),
        (
            Budget("1", schedule="0 9 * * fri-mon", duration=HOUR),
            "schedule",
            (
                "`0 9 * * fri-mon` is no schedule: beginning of range (5) beyond end of range (1):"
                " fri-mon"
            ),
        ),
        (Budget("1", duration=HOUR), "schedule", "is missing next to `duration`"),
        (Budget("1", schedule="@daily"), "duration", "is missing next to `schedule`"),
    ],
)
def test_what_is_wrong_with_a_budget_names_its_field(
    budget: Budget, field: str, problem: str
) -> None:
    (fault,) = find_budget_faults(policy(Budget(), budget))

    assert fault == BudgetFault(1, field, problem, fault.hint)
    assert fault.hint


def test_proper_budgets_have_no_fault() -> None:
    assert find_budget_faults(policy(Budget(), WORKING_HOURS)) == ()
