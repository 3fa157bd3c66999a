"""Keep a static NodePool at its replicas: create missing claims, or delete the surplus."""

from collections.abc import Collection, Sequence
from datetime import datetime

from karpy.core.disruption.cost import Costs
from karpy.core.lifecycle.eviction import protection_of
from karpy.core.nodepool.staticcapacity import (
    PERIOD,
    Adjustment,
    fill_up,
    remark_of,
    surplus,
    template_launch,
)
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.snapshot import FillUpQuestion, PoolQuestion, ThinOutQuestion
from karpy.model.verdicts import Launch, NodeReason, NodeRefusal, PoolVerdict


def decide_pool(question: PoolQuestion) -> PoolVerdict:
    """Decide which nodes of a static pool are launched or deleted; a function of the question."""
    return verdict_of_adjustment(question, adjust(question))


def adjust(question: PoolQuestion) -> Adjustment:
    """Return the launches or deletions that bring a pool to its replicas, with log lines."""
    if isinstance(question, FillUpQuestion):
        return fill_up(question.pool, question.heads, is_synced=question.is_synced)
    return give_up_surplus(question)


def verdict_of_adjustment(question: PoolQuestion, adjustment: Adjustment) -> PoolVerdict:
    """Return an adjustment as a verdict, the form that recordings have."""
    return PoolVerdict(
        question.pool.name,
        adjustment.creates,
        _launch(question) if adjustment.creates else None,
        adjustment.withheld,
        adjustment.deletes,
        adjustment.refusals,
    )


def is_news(verdict: PoolVerdict, before: PoolVerdict | None) -> bool:
    """Say whether to report a verdict: it changes the pool, or differs from the one before."""
    known = PoolVerdict(verdict.pool) if before is None else before
    return bool(verdict.creates or verdict.deletes) or verdict != known


def give_up_surplus(question: ThinOutQuestion) -> Adjustment:
    """Delete the surplus of a pool: claims without a machine, empty nodes, the others by cost."""
    pool, heads = question.pool, question.heads
    if pool.replicas is None or pool.meta.is_deleting:
        return Adjustment()
    excess = surplus(pool, heads)
    if not excess:
        return Adjustment(requeue_after=PERIOD)
    remark = remark_of(pool, heads, "deprovision", "deprovisioning", excess)
    chosen = tuple(_by_disruption_cost(question)[:excess])
    refusals = _kept(pool.name, question.nodes, chosen)
    return Adjustment(deletes=chosen, refusals=refusals, remarks=(remark,), requeue_after=PERIOD)


def _launch(question: PoolQuestion) -> Launch | None:
    if isinstance(question, FillUpQuestion) and question.template is not None:
        return template_launch(question.template)
    return None


def _by_disruption_cost(question: ThinOutQuestion) -> list[str]:
    """Return the claims of a pool: without a machine, then empty nodes, then by disruption cost."""
    costs = Costs(reads_deletion_cost=question.reads_deletion_cost)
    pods_on: dict[str, list[Pod]] = {}
    for pod in question.pods:
        pods_on.setdefault(pod.node_name, []).append(pod)
    now, ranked = question.now, []
    for node in question.nodes:
        claim = node.claim_record
        if claim is None or claim.pool != question.pool.name or node.is_deleting:
            continue
        pods = pods_on.get(node.name, [])
        cost = costs.of_disruption(pods, claim, now)
        if not claim.provider_id:
            rank, cost = 0, cost * 0
        elif _is_empty(pods, now):
            rank, cost = 1, cost * 0
        else:
            rank = 3 if _is_protected(pods, now) else 2
        ranked.append((rank, cost, claim.name))
    return [name for _, _, name in sorted(ranked)]


def _kept(pool: str, nodes: Sequence[Node], chosen: Collection[str]) -> tuple[NodeRefusal, ...]:
    """Return why each node of a pool that is not chosen stays."""
    return tuple(
        NodeRefusal(NodeReason.DELETING if each.is_deleting else NodeReason.POOL_SIZE, each.name)
        for each in sorted(nodes, key=lambda each: each.name)
        if each.claim_record is not None
        and each.claim_record.pool == pool
        and each.claim not in chosen
    )


def _is_empty(pods: Sequence[Pod], now: datetime) -> bool:
    return all(each.is_daemon for each in pods) and not _is_protected(pods, now)


def _is_protected(pods: Sequence[Pod], now: datetime) -> bool:
    return any(protection_of(each, now).is_active for each in pods)
