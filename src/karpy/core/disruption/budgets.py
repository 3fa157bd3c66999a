"""How many nodes of each NodePool its budgets allow to disrupt for a reason, now and later."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.candidates import Candidate, refuse
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.cron import Cron, Schedule, ScheduleInvalid, read_schedule
from karpy.model.kinds import NODE_POOL
from karpy.model.nodes import Node
from karpy.model.notices import Notice, Subject
from karpy.model.pools import Budget, DisruptionPolicy, DisruptionReason, NodePool
from karpy.model.times import write_duration
from karpy.model.verdicts import NodeReason, NodeRefusal

UNLIMITED: Final = 2**31 - 1
_BLOCKED_WINDOW: Final = 60.0
_NODES: Final = re.compile(r"(?P<share>100|[0-9]{1,2})%|(?P<count>[0-9]{1,18})", re.ASCII)
WEEK: Final = timedelta(days=7)
_ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""A budget without a schedule allows the same at any time, so any time will do."""
_BOTH: Final = "write both `schedule` and `duration`, or neither"
_FIELDS: Final = (
    "write minute, hour, day of month, month and day of week in UTC, as in `0 9 * * mon-fri`;"
    " ranges ascend"
)


class BudgetInvalid(ValueError):
    """A budget cannot be understood; the message says why."""


class Permit(Struct, frozen=True, gc=False):
    """How many nodes the budgets of a pool allow to disrupt, and the errors in these budgets."""

    nodes: int
    faults: tuple[str, ...] = ()


class Allowance(Struct, frozen=True, gc=False):
    """How many nodes of a pool may be disrupted for one reason, and how many already are."""

    nodes: int
    """How many nodes of the pool count for percentages."""
    allowed: int
    consumed: int
    """How many of these nodes are being disrupted, or are not ready."""
    faults: tuple[str, ...] = ()

    @property
    def remaining(self) -> int:
        return max(0, self.allowed - self.consumed)

    def __str__(self) -> str:
        """Return the detail of a refusal."""
        if self.faults:
            return f"a budget is invalid: {self.faults[0]}"
        return f"{self.allowed} of {self.nodes} nodes allowed, {self.consumed} taken"


class Allowances(Struct, frozen=True, gc=False):
    """The allowance of each pool for one reason, with its events, gauges and log lines."""

    by_pool: Mapping[str, Allowance]
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()
    """The values of gauges."""
    remarks: tuple[Remark, ...] = ()

    def remaining(self) -> dict[str, int]:
        """Return how many more nodes of each pool may be disrupted, as a new dict."""
        return {name: each.remaining for name, each in self.by_pool.items()}

    def within(
        self, candidates: Iterable[Candidate], method: str
    ) -> tuple[list[Candidate], list[NodeRefusal]]:
        """Choose candidates in order while the budget of their pool lasts; refuse all others."""
        remaining = self.remaining()
        chosen, refused = [], []
        for each in candidates:
            if remaining[each.pool.name]:
                remaining[each.pool.name] -= 1
                chosen.append(each)
            else:
                refused.append(self.refusal_of(each, method))
        return chosen, refused

    def refusal_of(self, candidate: Candidate, method: str) -> NodeRefusal:
        """Return the refusal of a candidate whose pool has no budget left."""
        allowance = self.by_pool[candidate.pool.name]
        return refuse(candidate, NodeReason.BUDGET_SPENT, method, str(allowance))


def permit(policy: DisruptionPolicy, reason: DisruptionReason, nodes: int, now: datetime) -> Permit:
    """
    Return the least that an active budget for the reason allows.

    One invalid budget forbids every disruption, whatever reasons that budget names.
    """
    least, faults = UNLIMITED, []
    for budget in policy.budgets:
        try:
            value = _value(budget, nodes, now)
        except BudgetInvalid as error:
            faults.append(str(error))
            continue
        if budget.reasons is None or reason.value in budget.reasons:
            least = min(least, value)
    return Permit(0 if faults else least, tuple(faults))


def is_active(budget: Budget, now: datetime) -> bool:
    """Say whether a budget is active: its schedule last fired within its duration."""
    if budget.schedule is None and budget.duration is None:
        return True
    try:
        schedule = read_schedule(budget.schedule or "")
    except ScheduleInvalid as error:
        raise BudgetInvalid(f"`{budget.schedule}` is no schedule: {error}") from error
    since = now.astimezone(UTC) - (budget.duration or timedelta())
    begins = schedule.next_after(since)
    return begins is not None and begins <= now


def find_allowances(evaluation: Evaluation, reason: DisruptionReason) -> Allowances:
    """Return the allowance of each pool for a reason."""
    nodes: dict[str, int] = {}
    consumed: dict[str, int] = {}
    for node in evaluation.snapshot.nodes:
        if _is_counted(node):
            nodes[node.pool] = nodes.get(node.pool, 0) + 1
            if _consumes(node, reason):
                consumed[node.pool] = consumed.get(node.pool, 0) + 1
    by_pool = {}
    for name, pool in sorted(evaluation.pools.items()):
        total = nodes.get(name, 0)
        allowed = permit(pool.policy, reason, total, evaluation.now)
        by_pool[name] = Allowance(total, allowed.nodes, consumed.get(name, 0), allowed.faults)
    return Allowances(
        by_pool,
        notices=tuple(
            _blocked_notice(evaluation.pools[name], reason)
            for name, each in by_pool.items()
            if each.nodes and not each.allowed
        ),
        counts=tuple(
            count for name, each in by_pool.items() for count in _gauges(name, each, reason)
        ),
        remarks=tuple(_fault_remark(name, each) for name, each in by_pool.items() if each.faults),
    )


def is_constrained(refusals: Sequence[NodeRefusal]) -> bool:
    """Say whether a node is left alone because of a budget, which may change at any moment."""
    return any(each.why is NodeReason.BUDGET_SPENT for each in refusals)


def _value(budget: Budget, nodes: int, now: datetime) -> int:
    if not is_active(budget, now):
        return UNLIMITED
    match = _NODES.fullmatch(budget.nodes)
    if match is None:
        raise BudgetInvalid(f"`{budget.nodes}` is neither a number of nodes nor a share of them")
    if match["count"] is not None:
        return int(match["count"])
    # Percentages are rounded up, so that at least one node may be disrupted.
    return -(-nodes * int(match["share"]) // 100)


def _is_counted(node: Node) -> bool:
    if node.claim_record is None or node.is_foreign or node.is_instance_terminating:
        return False
    return node.is_initialized or node.is_rebooting


def _consumes(node: Node, reason: DisruptionReason) -> bool:
    if node.is_deleting or node.is_rebooting:
        return True
    # Repair is for nodes that are not ready: these nodes must not consume its budget.
    is_ready = node.node_record is not None and node.node_record.is_ready
    return not is_ready and reason is not DisruptionReason.UNHEALTHY


def _blocked_notice(pool: NodePool, reason: DisruptionReason) -> Notice:
    uid = "" if pool.record is None else pool.record.meta.uid
    return Notice(
        Subject(NODE_POOL, pool.name, uid=uid),
        "DisruptionBlocked",
        f"No allowed disruptions for disruption reason {reason.value} due to blocking budget",
        same_as=(uid, reason.value),
        window_seconds=_BLOCKED_WINDOW,
    )


def _gauges(pool: str, each: Allowance, reason: DisruptionReason) -> tuple[Count, Count]:
    labels = {"nodepool": pool, "reason": reason.value.lower()}
    return (
        Count("nodepools_allowed_disruptions", labels, float(each.allowed)),
        Count("nodepools_nodes_consuming_budgets", labels, float(each.consumed)),
    )


def _fault_remark(pool: str, each: Allowance) -> Remark:
    fields = {"NodePool": pool, "error": "; ".join(each.faults)}
    return Remark("detected disruption budget errors", fields, is_error=True)


class BudgetSpan(Struct, frozen=True, gc=False):
    """A stretch of time in which a NodePool allows the same number of nodes."""

    begins: datetime
    ends: datetime
    """The first moment after the span."""
    nodes: int
    """How many nodes may be disrupted at once; `UNLIMITED` while no budget is active."""
    budgets: tuple[int, ...] = ()
    """The indexes of the budgets that set this number."""


class Window(Struct, frozen=True, gc=False):
    """A stretch of time in which one budget is active."""

    begins: datetime
    ends: datetime


class BudgetFault(Struct, frozen=True, gc=False):
    """An error in a budget; until it is corrected, no node of the NodePool may be disrupted."""

    place: int
    """The index of the budget."""
    field: str
    problem: str
    hint: str


def find_spans(
    policy: DisruptionPolicy, reason: DisruptionReason, nodes: int, since: datetime, until: datetime
) -> tuple[BudgetSpan, ...]:
    """Return how many nodes a policy allows for a reason between two moments, in order of time."""
    edges = {since, until}
    for each in policy.budgets:
        if each.schedule is not None:
            for window in find_windows(each, since, until):
                edges |= {window.begins, window.ends}
    spans: list[BudgetSpan] = []
    for begins, ends in pairwise(sorted(edges)):
        allowed = permit(policy, reason, nodes, begins).nodes
        decisive = tuple(_decisive(policy, reason, nodes, begins, allowed))
        before = spans[-1] if spans else None
        if before is not None and (before.nodes, before.budgets) == (allowed, decisive):
            spans[-1] = replace(before, ends=ends)
        else:
            spans.append(BudgetSpan(begins, ends, allowed, decisive))
    return tuple(spans)


def find_windows(budget: Budget, since: datetime, until: datetime) -> Iterator[Window]:
    """Yield the windows in which a budget is active, cut off at `since` and `until`."""
    if budget.schedule is None and budget.duration is None:
        yield Window(since, until)
        return
    schedule, duration = _schedule_of(budget), budget.duration or timedelta()
    if not isinstance(schedule, Cron):
        # The next time of an `@every` schedule is counted from the given moment, so that the budget
        # is always active or never.
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
    """Return when a policy first allows more than `more_than` nodes; None if not within a week."""
    spans = find_spans(policy, reason, nodes, since, since + WEEK)
    return next((each.begins for each in spans if each.nodes > more_than), None)


def find_budget_faults(policy: DisruptionPolicy) -> tuple[BudgetFault, ...]:
    """Return the errors in the budgets of a policy."""
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
    """Return when a window ends that later windows may extend; stop soon after `until`."""
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
    """Yield the indexes of the budgets that set the number of nodes allowed."""
    if allowed == UNLIMITED:
        return
    for place, each in enumerate(policy.budgets):
        alone = permit(replace(policy, budgets=(each,)), reason, nodes, now)
        if alone.faults or alone.nodes <= allowed:
            yield place
