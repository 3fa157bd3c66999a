"""The controller `node.termination`: drain deleting nodes, then terminate their machines."""

from typing import Final

from karpy.codec.storage import read_claim
from karpy.codec.unreadable import attachment, bound_pod
from karpy.controllers.context import AFTER_CONFLICT, ControllerContext, read, seconds
from karpy.controllers.evictionqueue import EvictionQueue
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.changes import Changes, joined
from karpy.core.lifecycle.drain import DrainingNode, find_pending
from karpy.core.lifecycle.termination import (
    NodeTermination,
    after_machine_deletion,
    claim_of,
    is_terminating,
    may_lack_machine,
    release_node,
    terminate_node,
)
from karpy.errors import MachineNotFound, NotFound
from karpy.model.kinds import PERSISTENT_VOLUME_CLAIM, POD, VOLUME_ATTACHMENT
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.ports.objects import Query
from karpy.ports.records import Kept

WORKERS: Final = 100
_CLAIM_DELETED: Final = Changes(deletes_claim=True)


class TerminationController:
    """Observe, decide, apply. core.lifecycle decides."""

    def __init__(self, context: ControllerContext, evictions: EvictionQueue) -> None:
        self._context = context
        self._evictions = evictions
        self._queue = WorkQueue(context.observer)
        context.records.nodes.listen(self._on_node)
        context.records.claims.listen(self._on_claim)
        for kept in context.records.nodes.all():
            self._add(kept.record)

    async def run(self, workers: int = WORKERS) -> None:
        """Reconcile terminating nodes, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Take the next step of one node; return after how long to reconcile again."""
        node = self._context.records.nodes.get(name)
        if node is None or not is_terminating(node.record):
            return None
        if may_lack_machine(node.record) and not await self._has_machine(node.record):
            return await self._release(node)
        return await self._terminate_node(node)

    async def _release(self, node: Kept[NodeRecord]) -> float | None:
        claim, writer = self._claim(node.record), self._context.writer
        is_deleting = claim is None or claim.record.meta.is_deleting
        # Delete the claim first: once the node is gone, no watch event leads to the claim.
        if not is_deleting and not await writer.carry_out(_CLAIM_DELETED, claim=claim):
            return AFTER_CONFLICT
        gone = release_node(node.record, self._context.clock.now())
        return None if await writer.carry_out(gone, node=node) else AFTER_CONFLICT

    async def _terminate_node(self, node: Kept[NodeRecord]) -> float | None:
        claim = self._claim(node.record)
        record = None if claim is None else claim.record
        pods = await self._pods(node.record)
        step = await self._step(node.record, record, pods)
        if step.ends_machine and not pods:
            # The cache may lag, and termination cannot be undone: list the pods.
            pods = await self._listed_pods(node.record)
            step = await self._step(node.record, record, pods) if pods else step
        changes = step.changes
        # The taint is written before the machine is terminated; the watch brings the node back.
        if step.ends_machine and changes.node in (None, node.record):
            is_gone = await self._terminate(node.record)
            deleting = changes.claim or record
            now = self._context.clock.now()
            then = after_machine_deletion(node.record, deleting, now, is_gone=is_gone)
            changes = joined(changes, then)
        if not await self._context.writer.carry_out(changes, claim=claim, node=node):
            return AFTER_CONFLICT
        self._evictions.add(step.evictions, pods)
        return seconds(changes.requeue_after)

    async def _step(
        self, node: NodeRecord, claim: ClaimRecord | None, pods: tuple[Pod, ...]
    ) -> NodeTermination:
        attachments = await self._attachments(node, pods)
        draining = DrainingNode(node, claim, pods, refused=self._evictions.refusals(pods))
        return terminate_node(draining, attachments, self._context.clock.now())

    async def _pods(self, node: NodeRecord) -> tuple[Pod, ...]:
        return (
            await self._listed_pods(node) if self._context.records.pods.by_index(node.name) else ()
        )

    async def _listed_pods(self, node: NodeRecord) -> tuple[Pod, ...]:
        page = await self._context.objects.list(POD, Query(fields=f"spec.nodeName={node.name}"))
        return tuple(bound_pod(each) for each in page.items)

    async def _attachments(self, node: NodeRecord, pods: tuple[Pod, ...]) -> tuple[str, ...]:
        """Return the names of the volume attachments to wait for; none while pods are left."""
        now = self._context.clock.now()
        if any(each.is_waited_for(now) for each in pods):
            return ()
        page = await self._context.objects.list(VOLUME_ATTACHMENT)
        attachments = [attachment(each) for each in page.items]
        here = [each for each in attachments if each.node_name == node.name]
        volumes = await self._volumes(pods) if here else {}
        return find_pending(here, pods, volumes, now)

    async def _volumes(self, pods: tuple[Pod, ...]) -> dict[tuple[str, str], str]:
        volumes = {}
        for pod in pods:
            for name in (volume.claim_of(pod.name) for volume in pod.rules.volumes):
                try:
                    obj = await self._context.objects.get(
                        PERSISTENT_VOLUME_CLAIM, name, pod.namespace
                    )
                except NotFound:
                    continue
                volumes[pod.namespace, name] = read(
                    read_claim, PERSISTENT_VOLUME_CLAIM, obj
                ).volume_name
        return volumes

    async def _has_machine(self, node: NodeRecord) -> bool:
        try:
            await self._context.cloud.machine(node.provider_id)
        except MachineNotFound:
            return False
        return True

    async def _terminate(self, node: NodeRecord) -> bool:
        """Terminate a node's machine; say whether it is gone."""
        try:
            await self._context.cloud.terminate(node.provider_id)
        except MachineNotFound:
            return True
        return False

    def _claim(self, node: NodeRecord) -> Kept[ClaimRecord] | None:
        claims = self._context.claims_of(node)
        return claims[0] if claim_of([each.record for each in claims]) is not None else None

    def _on_node(
        self, _: str, before: Kept[NodeRecord] | None, after: Kept[NodeRecord] | None
    ) -> None:
        del before
        if after is not None:
            self._add(after.record)

    def _on_claim(
        self, _: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        kept = after or before
        if kept is not None:
            for node in self._context.nodes_of(kept.record):
                self._add(node.record)

    def _add(self, node: NodeRecord) -> None:
        if is_terminating(node):
            self._queue.add(node.name)
