"""The controllers that write what disruption reads on NodeClaims: conditions, last pod event."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from karpy.codec.crds import read_pool
from karpy.codec.disruption import read_policy
from karpy.controllers.context import AFTER_CONFLICT, ControllerContext, only, read, seconds
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.changes import (
    Changes,
    count_reschedulable,
    hydrate_claim,
    hydrate_node,
    joined,
)
from karpy.core.lifecycle.conditions import INITIALIZED, LAUNCHED
from karpy.core.lifecycle.expiration import check_expiry
from karpy.core.lifecycle.initialization import check_consistency
from karpy.core.lifecycle.markers import (
    PodEvent,
    can_wait,
    find_drift,
    is_markable,
    is_type_check_due,
    mark_consolidatable,
    mark_drifted,
    note_pod_event,
)
from karpy.errors import MachineNotFound
from karpy.model.kinds import NODE_POOL as POOL
from karpy.model.labels import NODE_POOL
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeClassRef, NodeRecord, PoolRecord
from karpy.ports.records import Kept

WORKERS: Final = 10
_CLASS_KNOWN_SECONDS: Final = 1.0
"""Time for the watch of the cloud provider to deliver a changed node class, too."""
_LATER_SECONDS: Final = 1.0


class NodeClaimDisruptionController:
    """Observe, decide, apply. All changes of a claim are written in one patch."""

    def __init__(
        self,
        context: ControllerContext,
        is_awaited: Callable[[str], bool] = lambda _: False,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._context = context
        self._is_awaited = is_awaited
        """Says whether pods are nominated to the node of a claim."""
        self._is_busy = is_busy
        """Says whether pods are nominated to any node."""
        self._queue = WorkQueue(context.observer)
        self._types_checked: dict[str, datetime] = {}
        """When the instance type of a claim, by UID, was last found in the catalog."""
        context.records.claims.listen(self._on_claim)
        context.records.nodes.listen(self._on_node)
        context.records.pools.listen(self._on_pool)
        for kept in context.records.claims.all():
            self._queue.add(kept.record.name)

    def on_class(self, ref: NodeClassRef) -> None:
        """Reconcile the claims of a changed node class, once the provider has the change."""
        for kept in self._context.records.claims.all():
            used = kept.record.node_class
            if ref in {used, NodeClassRef(used.group, used.kind)}:
                self._queue.add_after(kept.record.name, _CLASS_KNOWN_SECONDS)

    async def run(self, workers: int = WORKERS) -> None:
        """Reconcile claims, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Reconcile one claim; return after how long to reconcile again."""
        kept = self._context.claim(name)
        if kept is None or kept.record.meta.is_deleting:
            return None
        node = only(self._context.nodes_of(kept.record))
        changes = await self._reconciled(kept.record, node)
        if not await self._context.writer.carry_out(changes, claim=kept, node=node):
            return AFTER_CONFLICT
        return seconds(changes.requeue_after)

    async def _reconciled(self, claim: ClaimRecord, node: Kept[NodeRecord] | None) -> Changes:
        now = self._context.clock.now()
        pods = () if node is None else self._context.records.pods.by_index(node.record.name)
        expiry = check_expiry(claim, now, count_reschedulable(pods))
        if expiry.deletes_claim or not claim.conditions.is_true(LAUNCHED):
            return expiry
        changes = joined(expiry, hydrate_claim(claim))
        if node is not None:
            changes = joined(changes, hydrate_node(node.record, claim))
        # Before initialization there is nothing to check, and a write here would conflict with that
        # of the lifecycle controller.
        if node is not None and claim.conditions.is_true(INITIALIZED):
            then = check_consistency(changes.claim or claim, node.record, now)
            changes = joined(changes, then)
        return joined(changes, await self._marked(changes.claim or claim, now))

    async def _marked(self, claim: ClaimRecord, now: datetime) -> Changes:
        pool = self._context.records.pools.get(claim.pool)
        if pool is None or not is_markable(claim):
            return Changes()
        changes = mark_drifted(claim, await self._drift(claim, pool, now), now)
        if pool.record.replicas is not None:
            return changes
        patience = read(read_policy, POOL, pool.obj).consolidate_after
        is_awaited, is_busy = self._is_awaited(claim.name), self._is_busy()
        claim = changes.claim or claim
        marked = mark_consolidatable(claim, patience, now, is_nominated=is_awaited, is_busy=is_busy)
        return joined(changes, marked)

    async def _drift(self, claim: ClaimRecord, pool: Kept[PoolRecord], now: datetime) -> str:
        """Return why a claim has drifted, or an empty text; call the provider last."""
        catalog, uid = None, claim.meta.uid
        if is_type_check_due(claim, self._types_checked.get(uid), now):
            catalog = self._context.cloud.catalog()
        requirements = read(read_pool, POOL, pool.obj).requirements
        reason = find_drift(claim, pool.record, requirements, catalog)
        if reason:
            return reason
        if catalog is not None:
            self._types_checked[uid] = now
        try:
            return await self._context.cloud.drift(claim)
        except MachineNotFound:
            return ""

    def _on_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        if after is not None:
            self._queue.add(key)
        elif before is not None:
            self._types_checked.pop(before.record.meta.uid, None)

    def _on_node(
        self, _: str, before: Kept[NodeRecord] | None, after: Kept[NodeRecord] | None
    ) -> None:
        if before is None and after is not None:
            for claim in self._context.claims_of(after.record):
                self._queue.add(claim.record.name)

    def _on_pool(
        self, key: str, before: Kept[PoolRecord] | None, after: Kept[PoolRecord] | None
    ) -> None:
        if after is None or (before is not None and _is_same(before.record, after.record)):
            return
        for claim in self._context.records.claims.all():
            if claim.record.meta.labels.get(NODE_POOL) == key:
                self._queue.add(claim.record.name)


def _is_same(before: PoolRecord, after: PoolRecord) -> bool:
    """Say whether only the status of a pool has changed."""
    annotations = before.meta.annotations == after.meta.annotations
    return annotations and before.meta.generation == after.meta.generation


class PodEventController:
    """Observe, decide, apply. core.lifecycle decides."""

    def __init__(
        self, context: ControllerContext, is_busy: Callable[[], bool] = lambda: False
    ) -> None:
        self._context = context
        self._is_busy = is_busy
        """Says whether pods wait for writes that are more urgent than pod events."""
        self._queue = WorkQueue(context.observer)
        self._noted: dict[str, PodEvent] = {}
        """The last unwritten event of each claim, by name."""
        self._since: dict[str, datetime] = {}
        """Since when each claim has an unwritten event."""
        context.records.pods.listen(self._on_pod)

    async def run(self, workers: int = WORKERS) -> None:
        """Write pod events, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    def holds(self, claim: str) -> bool:
        """Say whether an event of a claim is not written yet."""
        return claim in self._noted

    async def reconcile(self, name: str) -> float | None:
        """Write the last pod event of one claim."""
        kept, event = self._context.claim(name), self._noted.get(name)
        if kept is not None and event is not None and self._can_wait(kept.record):
            return _LATER_SECONDS
        self._noted.pop(name, None)
        self._since.pop(name, None)
        if kept is None or event is None:
            return None
        changes = note_pod_event(kept.record, event)
        if not await self._context.writer.carry_out(changes, claim=kept):
            self._noted.setdefault(name, event)
            self._since.setdefault(name, event.moment)
            return AFTER_CONFLICT
        return None

    def _can_wait(self, claim: ClaimRecord) -> bool:
        now = self._context.clock.now()
        return self._is_busy() and can_wait(claim, self._since.get(claim.name, now), now)

    def _on_pod(self, _: str, before: Pod | None, after: Pod | None) -> None:
        node = None if after is None else self._context.records.nodes.get(after.node_name)
        if after is None or node is None:
            return
        event = PodEvent(before, after, self._context.clock.now())
        for claim in self._context.claims_of(node.record):
            if note_pod_event(claim.record, event).claim is not None:
                self._noted[claim.record.name] = event
                self._since.setdefault(claim.record.name, event.moment)
                self._queue.add(claim.record.name)
