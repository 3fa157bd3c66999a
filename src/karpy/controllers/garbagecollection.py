"""The controller `nodeclaim.garbagecollection`: delete claims and machines that lack each other."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from karpy.barriers import Barrier
from karpy.codec.unreadable import claim_record
from karpy.controllers.context import ControllerContext
from karpy.core.lifecycle.changes import count_reschedulable
from karpy.core.lifecycle.garbagecollection import (
    PERIOD,
    CloudMachine,
    collect_claim,
    find_live_machines,
    find_orphans,
)
from karpy.errors import MachineNotFound, NotFound
from karpy.model.kinds import NODE, NODE_CLAIM
from karpy.model.records import ClaimRecord
from karpy.ports.cloud import Machine
from karpy.ports.records import Kept


class GarbageCollector:
    """Observe, decide, apply. core.lifecycle decides."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    async def run(self) -> None:
        """Collect garbage every two minutes, until cancelled."""
        while True:
            with Barrier(partial(self._context.on_failure, "garbage collection")):
                await self.collect()
            await asyncio.sleep(PERIOD.total_seconds())

    async def collect(self) -> None:
        """Delete NodeClaims without a machine, and terminate machines without a NodeClaim."""
        # Read claims before the list of machines, so that each launched claim has its machine in
        # the list; and again after it, since a machine whose claim is newer is no orphan.
        claims = [kept for kept in self._context.records.claims.all() if self._is_kept(kept)]
        machines = [_cloud_machine(each) for each in await self._context.cloud.machines()]
        alive = find_live_machines(machines)
        for kept in claims:
            with Barrier(partial(self._context.on_failure, kept.record.name)):
                await self._collect_claim(kept, alive)
        await self._end_orphans(machines)

    async def collect_machines(self) -> None:
        """Terminate the machines without a NodeClaim; leave NodeClaims as they are."""
        await self._end_orphans([_cloud_machine(m) for m in await self._context.cloud.machines()])

    async def _collect_claim(self, kept: Kept[ClaimRecord], alive: frozenset[str]) -> None:
        nodes = [each.record for each in self._context.nodes_of(kept.record)]
        pods = [pod for node in nodes for pod in self._context.records.pods.by_index(node.name)]
        changes = collect_claim(kept.record, alive, nodes, count_reschedulable(pods))
        await self._context.writer.carry_out(changes, claim=kept)

    async def _end_orphans(self, machines: Sequence[CloudMachine]) -> None:
        known = [kept.record for kept in self._context.records.claims.all()]
        if not find_orphans(machines, known, self._context.clock.now()):
            return
        # The cache may lag, and termination cannot be undone: list the claims.
        page = await self._context.objects.list(NODE_CLAIM)
        claims = [claim_record(each) for each in page.items]
        orphans = find_orphans(machines, claims, self._context.clock.now())
        # Concurrently: clouds batch terminations into one call.
        await asyncio.gather(*map(self._end, orphans))

    async def _end(self, orphan: CloudMachine) -> None:
        """Terminate a machine, and delete its Nodes."""
        with Barrier(partial(self._context.on_failure, orphan.provider_id)):
            with suppress(MachineNotFound):
                await self._context.cloud.terminate(orphan.provider_id)
            for kept in self._context.records.nodes.by_index(orphan.provider_id):
                with suppress(NotFound):
                    await self._context.objects.delete(NODE, kept.record.name)

    def _is_kept(self, kept: Kept[ClaimRecord]) -> bool:
        return self._context.is_ours(kept.record)


def _cloud_machine(machine: Machine) -> CloudMachine:
    return CloudMachine(machine.provider_id, machine.claim, machine.created, machine.is_terminating)
