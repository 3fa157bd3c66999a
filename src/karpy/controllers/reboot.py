"""The controller `nodeclaim.reboot`: drain a node, reboot its machine, await the node."""

from datetime import datetime
from typing import Final

from karpy.codec.unreadable import bound_pod
from karpy.controllers.context import AFTER_CONFLICT, ControllerContext, only, seconds
from karpy.controllers.evictionqueue import EvictionQueue
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.changes import Changes, joined
from karpy.core.lifecycle.reboot import (
    REJECTED,
    UNSUPPORTED,
    fail,
    has_to_drain,
    is_rebooting,
    issued,
    reboot,
)
from karpy.errors import MachineNotFound, RebootUnsupported
from karpy.model.kinds import POD
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.ports.objects import Query
from karpy.ports.records import Kept

WORKERS: Final = 10
_LONGEST_PAUSE: Final = 60.0


class RebootController:
    """Observe, decide, apply. core.lifecycle decides."""

    def __init__(self, context: ControllerContext, evictions: EvictionQueue) -> None:
        self._context = context
        self._evictions = evictions
        self._queue = WorkQueue(context.observer, longest_pause=_LONGEST_PAUSE)
        self._asked: dict[str, datetime] = {}
        """When the cloud was first asked to reboot the machine of a claim, by UID."""
        context.records.claims.listen(self._on_claim)
        context.records.nodes.listen(self._on_node)
        for kept in context.records.claims.all():
            self._on_claim(kept.record.name, None, kept)

    async def run(self, workers: int = WORKERS) -> None:
        """Reboot nodes, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Take the next step of one reboot; return after how long to reconcile again."""
        kept = self._context.claim(name)
        if kept is None or not is_rebooting(kept.record):
            return None
        claim, node = kept.record, only(self._context.nodes_of(kept.record))
        record = None if node is None else node.record
        pods = () if record is None or not has_to_drain(claim) else await self._pods(record)
        asked = self._asked.get(claim.meta.uid)
        step = reboot(claim, record, pods, self._context.clock.now(), asked)
        changes = step.changes
        if step.operation:
            changes = joined(
                changes, await self._ask(claim, changes.node or record, step.operation)
            )
        if not await self._context.writer.carry_out(changes, claim=kept, node=node):
            return AFTER_CONFLICT
        self._evictions.add(step.evictions, pods)
        return seconds(changes.requeue_after)

    async def _ask(self, claim: ClaimRecord, node: NodeRecord | None, operation: str) -> Changes:
        """Call the cloud for a reboot; a repeated call for the same operation has no effect."""
        self._asked.setdefault(claim.meta.uid, self._context.clock.now())
        try:
            await self._context.cloud.reboot(claim.provider_id, operation)
        except RebootUnsupported:
            return fail(claim, node, UNSUPPORTED, self._context.clock.now())
        except MachineNotFound as error:
            return fail(claim, node, REJECTED, self._context.clock.now(), error.message)
        return issued(claim, node, self._context.clock.now())

    async def _pods(self, node: NodeRecord) -> tuple[Pod, ...]:
        if not self._context.records.pods.by_index(node.name):
            return ()
        page = await self._context.objects.list(POD, Query(fields=f"spec.nodeName={node.name}"))
        return tuple(bound_pod(each) for each in page.items)

    def _on_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        if after is not None and is_rebooting(after.record):
            self._queue.add(key)
        elif before is not None:
            self._asked.pop(before.record.meta.uid, None)

    def _on_node(
        self, _: str, before: Kept[NodeRecord] | None, after: Kept[NodeRecord] | None
    ) -> None:
        kept = after or before
        for claim in () if kept is None else self._context.claims_of(kept.record):
            if is_rebooting(claim.record):
                self._queue.add(claim.record.name)
