"""The controller `interruption`: act on machine events that a cloud announces."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from karpy.barriers import Barrier
from karpy.controllers.context import ControllerContext
from karpy.core.lifecycle.changes import count_reschedulable
from karpy.core.lifecycle.interruption import Announcement, interrupt
from karpy.errors import KarpyError
from karpy.model.records import ClaimRecord
from karpy.ports.cloud import EventfulCloud, MachineEvent, MachineFate
from karpy.ports.observers import ReconcileResult
from karpy.ports.records import Kept

_WORKERS: Final = 10
"""Events handled at a time: a spot interruption may leave hundreds of machines two minutes."""
_ANNOUNCEMENTS: Final[Mapping[MachineFate, tuple[str, str]]] = {
    MachineFate.SPOT_INTERRUPTED: ("SpotInterrupted", "Spot interruption warning was triggered"),
    MachineFate.REBALANCE_RECOMMENDED: (
        "SpotRebalanceRecommendation",
        "Spot rebalance recommendation was triggered",
    ),
    MachineFate.STOPPED: ("InstanceStopping", "Instance is stopping"),
    MachineFate.TERMINATED: ("InstanceTerminating", "Instance is terminating"),
    MachineFate.SCHEDULED_CHANGE: ("InstanceUnhealthy", "An unhealthy warning was triggered"),
    MachineFate.RESERVATION_INTERRUPTED: (
        "CapacityReservationInstanceInterrupted",
        "Capacity reservation instance interruption warning was triggered",
    ),
    MachineFate.INSTANCE_STATUS: ("InstanceUnhealthy", "The status check of the instance failed"),
    MachineFate.SYSTEM_STATUS: ("InstanceUnhealthy", "The status check of its host failed"),
    MachineFate.EVENT_STATUS: ("InstanceUnhealthy", "An event is scheduled for the instance"),
}
"""Reason and text of the Kubernetes event, by what happens to the machine."""


class InterruptionController:
    """Observe, decide, apply. core.lifecycle decides what happens to a NodeClaim."""

    def __init__(self, context: ControllerContext, cloud: EventfulCloud) -> None:
        self._context = context
        self._cloud = cloud

    async def run(self) -> None:
        """Act on machine events, several at a time, until cancelled."""
        self._context.observer.set_workers(_WORKERS)
        free = asyncio.Semaphore(_WORKERS)
        async with asyncio.TaskGroup() as group:
            async for event in self._cloud.machine_events():
                await free.acquire()
                task = group.create_task(self._serve(event))
                task.add_done_callback(lambda _: free.release())

    async def _serve(self, event: MachineEvent) -> None:
        context, failed = self._context, list[KarpyError]()
        key = f"{event.fate.value} {','.join(event.machines)}"
        context.observer.take(key)
        with Barrier(failed.append):
            await self.handle(event)
            context.observer.finish(key, ReconcileResult.SUCCESS)
        for each in failed:
            context.observer.finish(key, ReconcileResult.of(each))
            context.on_failure(event.fate.value, each)

    async def handle(self, event: MachineEvent) -> None:
        """Act on one machine event, then acknowledge it; a failed event is announced again."""
        reason, note = _ANNOUNCEMENTS[event.fate]
        announcement = Announcement(
            event.fate.value, reason, note, event.fate.is_advice, event.fate.is_forceful
        )
        for kept in self._claims_of(event):
            await self._interrupt(kept, announcement)
        await self._cloud.acknowledge(event)

    async def _interrupt(self, kept: Kept[ClaimRecord], announcement: Announcement) -> None:
        context = self._context
        nodes = [each.record for each in context.nodes_of(kept.record)]
        pods = sum(count_reschedulable(context.records.pods.by_index(each.name)) for each in nodes)
        changes = interrupt(kept.record, nodes, announcement, context.clock.now(), pods)
        await context.writer.carry_out(changes, claim=kept)

    def _claims_of(self, event: MachineEvent) -> Iterator[Kept[ClaimRecord]]:
        wanted = frozenset(event.machines)
        for kept in self._context.records.claims.all():
            machine = kept.record.provider_id.rpartition("/")[2]
            if machine in wanted and self._context.is_ours(kept.record):
                yield kept
