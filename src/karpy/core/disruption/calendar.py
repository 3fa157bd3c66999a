"""When how many nodes of a NodePool may be disrupted, over days: its budgets as spans of time."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.budgets import UNLIMITED, permit
from karpy.model.cron import Cron, Schedule, ScheduleInvalid, read_schedule
from karpy.model.pools import Budget, DisruptionPolicy, DisruptionReason
from karpy.model.times import write_duration

WEEK: Final = timedelta(days=7)
_ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""A budget without a schedule says the same at any time."""
_BOTH: Final = "write both `schedule` and `duration`, or neither"
_FIELDS: Final = (
    "write minute, hour, day of month, month and day of week in UTC, as in `0 9 * * mon-fri`;"
    " ranges ascend"
)


class Span(Struct, frozen=True, gc=False):
    """A stretch of time in which a NodePool allows the same number of nodes."""

    begins: datetime
    ends: datetime
    """The moment after its last."""
    nodes: int
    """How many may be disrupted at once; `UNLIMITED` while no budget holds."""
    budgets: tuple[int, ...] = ()
    """The budgets that allow no more than that, by their places in the list, from 0."""


class Window(Struct, frozen=True, gc=False):
    """A stretch of time in which one budget holds."""

    begins: datetime
    ends: datetime


class BudgetFault(Struct, frozen=True, gc=False):
    """What is wrong with a budget; as long as it is, none of the NodePool's nodes may go."""

    place: int
    """Of the budget in the list, from 0."""
    field: str
    problem: str
    hint: str


def find_spans(
    policy: DisruptionPolicy, reason: DisruptionReason, nodes: int, since: datetime, until: datetime
) -> tuple[Span, ...]:
    """Return what a policy allows for a reason from one moment to another, in order."""
    edges = {since, until}
    for each in policy.budgets:
        if each.schedule is not None:
            for window in find_windows(each, since, until):
                edges |= {window.begins, window.ends}
    spans: list[Span] = []
    for begins, ends in pairwise(sorted(edges)):
        allowed = permit(policy, reason, nodes, begins).nodes
        decisive = tuple(_decisive(policy, reason, nodes, begins, allowed))
        before = spans[-1] if spans else None
        if before is not None and (before.nodes, before.budgets) == (allowed, decisive):
            spans[-1] = replace(before, ends=ends)
        else:
            spans.append(Span(begins, ends, allowed, decisive))
    return tuple(spans)


def find_windows(budget: Budget, since: datetime, until: datetime) -> Iterator[Window]:
    """Give the stretches in which a budget holds, cut to what is between two moments."""
    if budget.schedule is None and budget.duration is None:
        yield Window(since, until)
        return
    schedule, duration = _schedule_of(budget), budget.duration or timedelta()
    if not isinstance(schedule, Cron):
        # An interval counts from the moment that is asked about: it holds always, or never.
        if schedule is not None and schedule.pause <= duration:
            yield Window(since, until)
        return
    moment = since if duration else until
    while moment < until:
        begins = schedule.next_after(moment - duration)
        if begins is None or begins >= until:
            return
        moment = _end_of(schedule, begins + duration, duration, until)
        yield Window(max(begins, since), min(moment, until))


def find_next(
    policy: DisruptionPolicy,
    reason: DisruptionReason,
    nodes: int,
    *,
    more_than: int,
    since: datetime,
) -> datetime | None:
    """Return when a policy first allows more than a number of nodes; None if not in a week."""
    spans = find_spans(policy, reason, nodes, since, since + WEEK)
    return next((each.begins for each in spans if each.nodes > more_than), None)


def find_budget_faults(policy: DisruptionPolicy) -> tuple[BudgetFault, ...]:
    """Return what is wrong with the budgets of a policy."""
    return tuple(
        fault for place, each in enumerate(policy.budgets) for fault in _faults(place, each)
    )


def short_duration(duration: timedelta) -> str:
    """Write a duration without the zeros at its end: `8h`, `1h30m`."""
    text = write_duration(duration)
    for end in ("m0s", "h0m"):
        if text.endswith(end):
            text = text[:-2]
    return text


def _faults(place: int, budget: Budget) -> Iterator[BudgetFault]:
    bare = DisruptionPolicy(budgets=(replace(budget, schedule=None, duration=None, reasons=None),))
    for problem in permit(bare, DisruptionReason.EMPTY, 1, _ANY_MOMENT).faults:
        yield BudgetFault(place, "nodes", problem, "write a number, or a share such as `10%`")
    if budget.schedule is None and budget.duration is not None:
        yield BudgetFault(place, "schedule", "is missing next to `duration`", _BOTH)
    if budget.schedule is None:
        return
    try:
        read_schedule(budget.schedule)
    except ScheduleInvalid as error:
        problem = f"`{budget.schedule}` is no schedule: {error}"
        yield BudgetFault(place, "schedule", problem, _FIELDS)
    if budget.duration is None:
        yield BudgetFault(place, "duration", "is missing next to `schedule`", _BOTH)


def _schedule_of(budget: Budget) -> Schedule | None:
    try:
        return read_schedule(budget.schedule or "")
    except ScheduleInvalid:
        return None


def _end_of(schedule: Cron, ends: datetime, duration: timedelta, until: datetime) -> datetime:
    """Return when a window ends that later ones may extend; not much later than `until`."""
    while ends < until:
        # The latest extension counts, so look at the later half first.
        for ago in (duration / 2, duration):
            later = schedule.next_after(ends - ago)
            if later is not None and later <= ends:
                ends = later + duration
                break
        else:
            return ends
    return ends


def _decisive(
    policy: DisruptionPolicy, reason: DisruptionReason, nodes: int, now: datetime, allowed: int
) -> Iterator[int]:
    """Give the budgets that allow no more than all of them together do."""
    if allowed == UNLIMITED:
        return
    for place, each in enumerate(policy.budgets):
        alone = permit(replace(policy, budgets=(each,)), reason, nodes, now)
        if alone.faults or alone.nodes <= allowed:
            yield place
