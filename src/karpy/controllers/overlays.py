"""NodeOverlays: whether each is applied, or why not."""

from typing import Final

from karpy.codec.crds import read_pool
from karpy.codec.overlays import overlay_writes
from karpy.controllers.context import AFTER_CONFLICT, ControllerContext, read, seconds
from karpy.controllers.offloading import decide_aside
from karpy.controllers.queue import WorkQueue
from karpy.controllers.statuses import write_status
from karpy.core.overlays import PERIOD, judge_overlay
from karpy.core.scheduling.overlays import find_conflicts
from karpy.errors import KarpyError
from karpy.model.instances import Catalog, InstanceType
from karpy.model.kinds import NODE_OVERLAY
from karpy.model.kinds import NODE_POOL as POOL
from karpy.model.labels import WELL_KNOWN
from karpy.model.overlays import OverlayRecord
from karpy.model.pools import NodePool
from karpy.model.records import Identity, PoolRecord
from karpy.ports.records import Kept

_KEY: Final = "overlays"
"""All overlays are looked at together, for only together they contradict each other."""


class OverlayController:
    """
    Observe, decide, apply. Which overlays are applied is decided in core.scheduling.

    Decisions apply overlays themselves and need nobody's word for it; this tells people.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = WorkQueue(context.observer)
        context.records.overlays.listen(self._hear_overlay)
        context.records.pools.listen(self._hear_pool)
        self.wake()

    def wake(self) -> None:
        """Look at all overlays soon: what they are about may have changed."""
        self._queue.add(_KEY)

    async def run(self) -> None:
        """Keep up the statuses of overlays, until cancelled."""
        await self._queue.run(self.reconcile, on_failure=self._context.on_failure)

    async def reconcile(self, key: str = _KEY) -> float | None:
        """Write on all overlays whether they are applied; return after how long to look again."""
        del key
        overlays = sorted(self._context.records.overlays.all(), key=lambda kept: kept.record.name)
        if not overlays:
            return None
        pools, catalog, trouble = await self._market()
        valid = [kept.record.overlay for kept in overlays if kept.record.overlay is not None]
        conflicts = await decide_aside(lambda: find_conflicts(catalog, pools, valid))
        written = [
            await self._write(kept, is_conflicting=kept.record.name in conflicts)
            for kept in overlays
        ]
        if trouble is not None:
            # What was found out about the other pools is written; now try again.
            raise trouble
        return seconds(PERIOD) if all(written) else AFTER_CONFLICT

    async def _write(self, kept: Kept[OverlayRecord], *, is_conflicting: bool) -> bool:
        record, now = kept.record, self._context.clock.now()
        judged = judge_overlay(record, now, is_conflicting=is_conflicting)
        status = overlay_writes(record, judged).status
        return await write_status(self._context.objects, NODE_OVERLAY, record.meta, status)

    async def _market(self) -> tuple[list[NodePool], Catalog, KarpyError | None]:
        """Return all pools that are understood, what each may buy, and what went wrong."""
        pools: list[NodePool] = []
        types: dict[str, tuple[InstanceType, ...]] = {}
        well_known, trouble = WELL_KNOWN, None
        for kept in self._context.records.pools.all():
            try:
                pool = read(read_pool, POOL, kept.obj)
                catalog = await self._context.cloud.catalog(pool.name)
            except KarpyError as error:
                trouble = error
                continue
            pools.append(pool)
            types[pool.name] = catalog.types_for(pool.name)
            well_known |= catalog.well_known
        return pools, Catalog(by_pool=types, well_known=well_known), trouble

    def _hear_overlay(
        self, _: str, before: Kept[OverlayRecord] | None, after: Kept[OverlayRecord] | None
    ) -> None:
        if before is None or after is None or _is_new(before.record.meta, after.record.meta):
            self.wake()

    def _hear_pool(
        self, _: str, before: Kept[PoolRecord] | None, after: Kept[PoolRecord] | None
    ) -> None:
        if before is None or after is None or _is_new(before.record.meta, after.record.meta):
            self.wake()


def _is_new(before: Identity, after: Identity) -> bool:
    """Say whether more than the status of an object has changed."""
    return before.uid != after.uid or before.generation != after.generation
