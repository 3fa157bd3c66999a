"""
The controller `node.health`: delete the NodeClaims of unhealthy nodes at once.

`--legacy-node-repair` asks for this repair, which Karpenter had before v1.15.
"""

from collections.abc import Sequence
from typing import Final

from karpy.controllers.context import AFTER_CONFLICT, ControllerContext, seconds
from karpy.controllers.disruptionqueue import OnVerdict
from karpy.controllers.queue import WorkQueue
from karpy.core.disruption.decide import repair_at_once, verdict_of_legacy_repair
from karpy.core.lifecycle.repair import find_unhealthy_condition
from karpy.core.lifecycle.termination import claim_of
from karpy.model.labels import NODE_POOL
from karpy.model.nodes import RepairPolicy, RepairRules, join_node
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.snapshot import LegacyRepairQuestion, Snapshot
from karpy.ports.records import Kept

WORKERS: Final = 10


class RepairController:
    """Observe, decide, apply. core.lifecycle decides which nodes are unhealthy."""

    def __init__(
        self,
        context: ControllerContext,
        policies: Sequence[RepairPolicy],
        on_verdict: OnVerdict = lambda *_: None,
    ) -> None:
        self._context = context
        self._on_verdict = on_verdict
        self._policies = policies
        self._queue = WorkQueue(context.observer)
        context.records.nodes.listen(self._on_node)
        context.records.claims.listen(self._on_claim)
        for kept in context.records.nodes.all():
            self._queue.add(kept.record.name)

    async def run(self, workers: int = WORKERS) -> None:
        """Delete the NodeClaims of unhealthy nodes, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Reconcile one node; return after how long to reconcile again."""
        node = self._context.records.nodes.get(name)
        if node is None or find_unhealthy_condition(node.record, self._policies) is None:
            return None
        claim = self._claim(node.record)
        if claim is None:
            return None
        question = self._question(claim.record, node.record)
        repaired = repair_at_once(question)
        self._on_verdict(question, verdict_of_legacy_repair(question, repaired))
        outcome = repaired.changes
        if not await self._context.writer.carry_out(outcome, claim=claim, node=node):
            return AFTER_CONFLICT
        return seconds(outcome.requeue_after)

    def _question(self, claim: ClaimRecord, node: NodeRecord) -> LegacyRepairQuestion:
        peers = (each for each in self._peers(claim) if each.name != node.name)
        snapshot = Snapshot(
            now=self._context.clock.now(),
            pods=tuple(self._context.records.pods.by_index(node.name)),
            nodes=(join_node(node, claim), *(join_node(each, None) for each in peers)),
            repair=RepairRules(tuple(self._policies)),
        )
        return LegacyRepairQuestion(snapshot, claim.name)

    def _claim(self, node: NodeRecord) -> Kept[ClaimRecord] | None:
        claims = self._context.claims_of(node)
        found = claim_of([each.record for each in claims])
        return None if found is None else self._context.claim(found.name)

    def _peers(self, claim: ClaimRecord) -> list[NodeRecord]:
        """Return the nodes of a claim's pool, or all of them for a claim without one."""
        nodes = (each.record for each in self._context.records.nodes.all())
        return [
            each
            for each in nodes
            if not claim.pool or each.meta.labels.get(NODE_POOL) == claim.pool
        ]

    def _on_node(
        self, key: str, before: Kept[NodeRecord] | None, after: Kept[NodeRecord] | None
    ) -> None:
        # Kubelets write a node every few seconds, mostly without changed conditions.
        if after is not None and (
            before is None or before.record.conditions != after.record.conditions
        ):
            self._queue.add(key)

    def _on_claim(
        self, _: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        if after is None or (before and before.record.provider_id == after.record.provider_id):
            return
        for node in self._context.nodes_of(after.record):
            self._queue.add(node.record.name)
