"""
The controllers that keep NodeClaims and instance types in step with what EC2 reports.

They are `capacityreservation.capacitytype`, `capacityreservation.expiration`, `nodeclaim.partition`
and `providers.instancetype.capacity`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpy.controllers.context import ControllerContext
from karpy.controllers.queue import barrier_of
from karpy.core.aws.capacity import memory_by_type
from karpy.core.aws.reservations import (
    demoted,
    expiring_reservations,
    is_expiring_with,
    is_reserved,
    lacks_partition,
    with_partition,
)
from karpy.core.lifecycle.changes import Changes, disruption_counts
from karpy.errors import MachineNotFound
from karpy.model.ec2 import Instance
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.kinds import EC2_NODE_CLASS
from karpy.model.labels import ON_DEMAND
from karpy.model.records import ClaimRecord, Identity
from karpy.ports.records import Kept

_RESERVATION_PERIOD: Final = timedelta(minutes=1)
_PARTITION_PERIOD: Final = timedelta(seconds=2)

Find = Callable[[str], Awaitable[Instance]]
"""Returns the present state of a machine, by its ID; raises MachineNotFound."""
Classes = Callable[[], Iterable[Ec2NodeClass]]
"""Returns the EC2NodeClasses of the cluster."""

_CAPACITY_PERIOD: Final = timedelta(seconds=30)

OnMemory = Callable[[str, tuple[str, ...], Mapping[str, int]], None]
"""Called with a node class, its images, and the memory of its nodes by instance type, in bytes."""


class ReservationTypeController:
    """Labels machines as on-demand once their capacity reservation has ended."""

    def __init__(self, context: ControllerContext, find: Find) -> None:
        self._context = context
        self._find = find

    async def run(self) -> None:
        """Check reserved machines every minute, until cancelled."""
        await self._context.every(_RESERVATION_PERIOD, self.look)

    async def look(self) -> None:
        """Label machines whose reservation has ended, in one round."""
        context = self._context
        for kept in list(context.records.claims.all()):
            claim = kept.record
            if not is_reserved(claim.meta) or not claim.provider_id or claim.meta.is_deleting:
                continue
            with barrier_of(context.on_failure, claim.name):
                found = await _found(self._find, claim)
                if found is not None and found.capacity_type == ON_DEMAND:
                    await _relabel(context, kept, demoted)


class ReservationExpirationController:
    """Deletes the NodeClaims of capacity blocks that end soon."""

    def __init__(self, context: ControllerContext, classes: Classes) -> None:
        self._context = context
        self._classes = classes

    async def run(self) -> None:
        """Check reserved machines every minute, until cancelled."""
        await self._context.every(_RESERVATION_PERIOD, self.look)

    async def look(self) -> None:
        """Delete the NodeClaims of capacity blocks that end soon, in one round."""
        context, expiring = self._context, expiring_reservations(self._classes())
        for kept in list(context.records.claims.all()) if expiring else ():
            claim = kept.record
            if is_expiring_with(claim, expiring):
                counts = disruption_counts(claim, "capacity_reservation_expiring", 0)
                with barrier_of(context.on_failure, claim.name):
                    changes = Changes(deletes_claim=True, counts=counts)
                    await context.writer.carry_out(changes, claim=kept)


class PartitionController:
    """Labels machines of a partition placement group with the partition that EC2 has chosen."""

    def __init__(self, context: ControllerContext, find: Find) -> None:
        self._context = context
        self._find = find

    async def run(self) -> None:
        """Check machines without a partition label every two seconds, until cancelled."""
        await self._context.every(_PARTITION_PERIOD, self.look)

    async def look(self) -> None:
        """Label the machines whose partition is known by now, in one round."""
        for kept in list(self._context.records.claims.all()):
            claim = kept.record
            if not lacks_partition(claim) or not claim.provider_id:
                continue
            with barrier_of(self._context.on_failure, claim.name):
                found = await _found(self._find, claim)
                if found is None or not found.partition:
                    continue
                label = partial(with_partition, partition=found.partition)
                await _relabel(self._context, kept, label)


async def _found(find: Find, claim: ClaimRecord) -> Instance | None:
    """Return the machine of a claim; None if it is gone: garbage collection deletes the claim."""
    try:
        return await find(claim.provider_id.rpartition("/")[2])
    except MachineNotFound:
        return None


async def _relabel(
    context: ControllerContext, kept: Kept[ClaimRecord], label: Callable[[Identity], Identity]
) -> None:
    """Change the labels of a claim and of its node."""
    for each in context.nodes_of(kept.record):
        node = replace(each.record, meta=label(each.record.meta))
        await context.writer.carry_out(Changes(node=node), node=each)
    claim = replace(kept.record, meta=label(kept.record.meta))
    await context.writer.carry_out(Changes(claim), claim=kept)


class CapacityController:
    """Learns from registered nodes how much memory machines of their type have."""

    def __init__(
        self,
        context: ControllerContext,
        classes: Callable[[], Iterable[Ec2NodeClass]],
        on_memory: OnMemory,
    ) -> None:
        self._context = context
        self._classes = classes
        self._on_memory = on_memory

    async def run(self) -> None:
        """Record the memory of nodes every 30 seconds, until cancelled."""
        await self._context.every(_CAPACITY_PERIOD, self.look)

    async def look(self) -> None:
        """Record the memory of all nodes; an instance type without nodes keeps its last value."""
        claims = [each.record for each in self._context.records.claims.all()]
        for each in self._classes():
            pairs = (
                (claim, kept.record)
                for claim in claims
                if (claim.node_class.kind, claim.node_class.name)
                == (EC2_NODE_CLASS.name, each.name)
                for kept in self._context.nodes_of(claim)
            )
            images = tuple(sorted(image.id for image in each.status.images))
            self._on_memory(each.name, images, memory_by_type(each, pairs))
