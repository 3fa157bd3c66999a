"""How many nodes of each NodePool may be disrupted now, for a reason."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.core.disruption.candidates import Candidate, refuse
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.cron import ScheduleInvalid, read_schedule
from karpy.model.kinds import NODE_POOL
from karpy.model.nodes import Node
from karpy.model.notices import Notice, Subject
from karpy.model.pools import Budget, DisruptionPolicy, DisruptionReason, NodePool
from karpy.model.verdicts import NodeReason, NodeRefusal

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
    """How many are being disrupted or not ready already."""
    faults: tuple[str, ...] = ()

    @property
    def remaining(self) -> int:
        return max(0, self.allowed - self.consumed)

    def __str__(self) -> str:
        """Write it as refusals do."""
        if self.faults:
            return f"a budget is invalid: {self.faults[0]}"
        return f"{self.allowed} of {self.nodes} nodes allowed, {self.consumed} taken"


class Allowances(Struct, frozen=True, gc=False):
    """What is allowed to each pool for one reason, with the events and gauges on that."""

    by_pool: Mapping[str, Allowance]
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()
    """Gauges: their metrics take on these values."""
    remarks: tuple[Remark, ...] = ()

    def remaining(self) -> dict[str, int]:
        """Return how many nodes of each pool may still go, to be counted down."""
        return {name: each.remaining for name, each in self.by_pool.items()}

    def within(
        self, candidates: Iterable[Candidate], method: str
    ) -> tuple[list[Candidate], list[NodeRefusal]]:
        """Take candidates in order while the budget of their pool lasts; refuse the others."""
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


def find_allowances(evaluation: Evaluation, reason: DisruptionReason) -> Allowances:
    """Work out what each pool is allowed for a reason."""
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
            _blocked(evaluation.pools[name], reason)
            for name, each in by_pool.items()
            if each.nodes and not each.allowed
        ),
        counts=tuple(
            count for name, each in by_pool.items() for count in _gauges(name, each, reason)
        ),
        remarks=tuple(_faulty(name, each) for name, each in by_pool.items() if each.faults),
    )


def is_constrained(refusals: Sequence[NodeRefusal]) -> bool:
    """Say whether a budget is why some node is left alone, which may change at any moment."""
    return any(each.why is NodeReason.BUDGET_SPENT for each in refusals)


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


def _is_counted(node: Node) -> bool:
    if node.claim_record is None or node.is_foreign or node.is_instance_terminating:
        return False
    return node.is_initialized or node.is_rebooting


def _consumes(node: Node, reason: DisruptionReason) -> bool:
    if node.is_deleting or node.is_rebooting:
        return True
    # A node that is not ready is what repair is there for; it must not take repair's budget.
    is_ready = node.node_record is not None and node.node_record.is_ready
    return not is_ready and reason is not DisruptionReason.UNHEALTHY


def _blocked(pool: NodePool, reason: DisruptionReason) -> Notice:
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


def _faulty(pool: str, each: Allowance) -> Remark:
    fields = {"NodePool": pool, "error": "; ".join(each.faults)}
    return Remark("detected disruption budget errors", fields, is_error=True)
