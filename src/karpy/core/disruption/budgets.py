"""How many nodes of each NodePool may go now, for a reason."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.cron import ScheduleInvalid, read_schedule
from karpy.model.disruption import Budget, DisruptionPolicy, DisruptionReason
from karpy.model.kinds import NODE_POOL
from karpy.model.notices import Notice, Subject
from karpy.model.records import PoolRecord
from karpy.model.surroundings import NodeState, Surroundings

UNLIMITED: Final = 2**31 - 1
_BLOCKED_WINDOW: Final = 60.0
_NODES: Final = re.compile(r"(?P<share>100|[0-9]{1,2})%|(?P<count>[0-9]{1,18})", re.ASCII)


class BudgetInvalid(ValueError):
    """A budget cannot be understood; the message says why."""


class Permit(Struct, frozen=True, gc=False):
    """How many nodes the budgets of a pool let go, and what is wrong with them."""

    nodes: int
    faults: tuple[str, ...] = ()


class Allowance(Struct, frozen=True, gc=False):
    """What a pool's budgets come to for one reason."""

    nodes: int
    """How many nodes the pool has, as far as they count."""
    allowed: int
    consumed: int
    """How many are going or in trouble already."""
    faults: tuple[str, ...] = ()

    @property
    def remaining(self) -> int:
        return max(0, self.allowed - self.consumed)


class Allowances(Struct, frozen=True, gc=False):
    """What is allowed to each pool, and what is told about it."""

    by_pool: Mapping[str, Allowance]
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()
    """Gauges: their metrics take on these values."""
    remarks: tuple[Remark, ...] = ()

    def remaining(self) -> dict[str, int]:
        """Return how many nodes of each pool may still go, to be counted down."""
        return {name: each.remaining for name, each in self.by_pool.items()}


def permit(policy: DisruptionPolicy, reason: DisruptionReason, nodes: int, now: datetime) -> Permit:
    """
    Return the least that any budget allows that holds now and is about the reason.

    One budget that cannot be understood forbids everything, whatever its own reasons are.
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
    """Say whether a budget holds: if it began no longer ago than its duration."""
    if budget.schedule is None and budget.duration is None:
        return True
    try:
        schedule = read_schedule(budget.schedule or "")
    except ScheduleInvalid as error:
        raise BudgetInvalid(f"`{budget.schedule}` is no schedule: {error}") from error
    since = now.astimezone(UTC) - (budget.duration or timedelta())
    begins = schedule.next_after(since)
    return begins is not None and begins <= now


def find_allowances(surroundings: Surroundings, reason: DisruptionReason) -> Allowances:
    """Work out what each pool is allowed for a reason."""
    nodes: dict[str, int] = {}
    consumed: dict[str, int] = {}
    for state in surroundings.nodes:
        if _is_counted(state):
            nodes[state.pool] = nodes.get(state.pool, 0) + 1
            if _consumes(state, reason):
                consumed[state.pool] = consumed.get(state.pool, 0) + 1
    by_pool = {}
    for name in sorted(surroundings.pools):
        total = nodes.get(name, 0)
        allowed = permit(surroundings.policy_of(name), reason, total, surroundings.now)
        by_pool[name] = Allowance(total, allowed.nodes, consumed.get(name, 0), allowed.faults)
    return Allowances(
        by_pool,
        notices=tuple(
            _blocked(surroundings.pools[name], reason)
            for name, each in by_pool.items()
            if each.nodes and not each.allowed
        ),
        counts=tuple(
            count for name, each in by_pool.items() for count in _gauges(name, each, reason)
        ),
        remarks=tuple(_faulty(name, each) for name, each in by_pool.items() if each.faults),
    )


def _value(budget: Budget, nodes: int, now: datetime) -> int:
    if not is_active(budget, now):
        return UNLIMITED
    match = _NODES.fullmatch(budget.nodes)
    if match is None:
        raise BudgetInvalid(f"`{budget.nodes}` is neither a number of nodes nor a share of them")
    if match["count"] is not None:
        return int(match["count"])
    # A share that is not a whole number of nodes is rounded up: one node can always go.
    return -(-nodes * int(match["share"]) // 100)


def _is_counted(state: NodeState) -> bool:
    if state.claim is None or state.is_machine_ending:
        return False
    return state.is_initialized or state.is_rebooting


def _consumes(state: NodeState, reason: DisruptionReason) -> bool:
    if state.is_leaving or state.is_rebooting:
        return True
    # Trouble is what repair is there for; it must not stand in its way.
    is_ready = state.node is not None and state.node.is_ready
    return not is_ready and reason is not DisruptionReason.UNHEALTHY


def _blocked(pool: PoolRecord, reason: DisruptionReason) -> Notice:
    return Notice(
        Subject(NODE_POOL, pool.name, uid=pool.meta.uid),
        "DisruptionBlocked",
        f"No allowed disruptions for disruption reason {reason.value} due to blocking budget",
        same_as=(pool.meta.uid, reason.value),
        window_seconds=_BLOCKED_WINDOW,
    )


def _gauges(pool: str, each: Allowance, reason: DisruptionReason) -> tuple[Count, Count]:
    labels = {"nodepool": pool, "reason": reason.value.lower()}
    return (
        Count("nodepools_allowed_disruptions", labels, float(each.allowed)),
        Count("nodepools_nodes_consuming_budgets", labels, float(each.consumed)),
    )


def _faulty(pool: str, each: Allowance) -> Remark:
    fields = {"NodePool": pool, "error": "; ".join(each.faults)}
    return Remark("detected disruption budget errors", fields, is_error=True)
