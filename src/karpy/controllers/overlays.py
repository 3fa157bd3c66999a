"""The controller `nodeoverlay.controller`: the conditions of NodeOverlays."""

from typing import Final

from karpy.codec.crds import read_pool
from karpy.codec.overlays import overlay_writes
from karpy.controllers.context import AFTER_CONFLICT, ControllerContext, decide_aside, read, seconds
from karpy.controllers.queue import WorkQueue
from karpy.controllers.writer import write_status
from karpy.core.scheduling.overlays import PERIOD, find_conflicts, judge_overlay
from karpy.errors import KarpyError
from karpy.model.kinds import NODE_OVERLAY
from karpy.model.kinds import NODE_POOL as POOL
from karpy.model.pools import NodePool, OverlayRecord
from karpy.model.records import Identity, PoolRecord
from karpy.ports.records import Kept

_KEY: Final = "overlays"
"""The one key of the queue: conflicts are found among all overlays together."""


class OverlayController:
    """
    Observe, decide, apply. core.scheduling decides which overlays are applied.

    Decisions apply overlays without these conditions, which only inform users.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = WorkQueue(context.observer)
        context.records.overlays.listen(self._on_overlay)
        context.records.pools.listen(self._on_pool)
        self.wake()

    def wake(self) -> None:
        """Queue the reconciliation of all overlays, since a pool or an overlay has changed."""
        self._queue.add(_KEY)

    async def run(self) -> None:
        """Reconcile overlays, until cancelled."""
        await self._queue.run(self.reconcile, on_failure=self._context.on_failure)

    async def reconcile(self, key: str = _KEY) -> float | None:
        """Write the conditions of all overlays; return after how long to reconcile again."""
        del key
        overlays = sorted(self._context.records.overlays.all(), key=lambda kept: kept.record.name)
        if not overlays:
            return None
        (pools, trouble), catalog = self._pools(), self._context.cloud.catalog()
        valid = [kept.record.overlay for kept in overlays if kept.record.overlay is not None]
        conflicts = await decide_aside(lambda: find_conflicts(catalog, pools, valid))
        written = [
            await self._write(kept, is_conflicting=kept.record.name in conflicts)
            for kept in overlays
        ]
        if trouble is not None:
            # The conditions from the other pools are written; the error causes a retry.
            raise trouble
        return seconds(PERIOD) if all(written) else AFTER_CONFLICT

    async def _write(self, kept: Kept[OverlayRecord], *, is_conflicting: bool) -> bool:
        record, now = kept.record, self._context.clock.now()
        judged = judge_overlay(record, now, is_conflicting=is_conflicting)
        status = overlay_writes(record, judged).status
        return await write_status(self._context.objects, NODE_OVERLAY, record.meta, status)

    def _pools(self) -> tuple[list[NodePool], KarpyError | None]:
        """Return all pools that can be read, and the last error."""
        pools: list[NodePool] = []
        trouble = None
        for kept in self._context.records.pools.all():
            try:
                pools.append(read(read_pool, POOL, kept.obj))
            except KarpyError as error:
                trouble = error
        return pools, trouble

    def _on_overlay(
        self, _: str, before: Kept[OverlayRecord] | None, after: Kept[OverlayRecord] | None
    ) -> None:
        if before is None or after is None or _is_new(before.record.meta, after.record.meta):
            self.wake()

    def _on_pool(
        self, _: str, before: Kept[PoolRecord] | None, after: Kept[PoolRecord] | None
    ) -> None:
        if before is None or after is None or _is_new(before.record.meta, after.record.meta):
            self.wake()


def _is_new(before: Identity, after: Identity) -> bool:
    """Say whether more than the status of an object has changed."""
    return before.uid != after.uid or before.generation != after.generation
