"""The autoscaler, put together: the same in a real cluster, over HTTP and in memory."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import OPTIONAL, Mirror
from karpy.controllers.batching import Batcher
from karpy.controllers.desk import Desk
from karpy.controllers.disruption import DisruptionController
from karpy.controllers.evictions import EvictionQueue
from karpy.controllers.expectations import Expectations
from karpy.controllers.garbage import GarbageCollector
from karpy.controllers.keeper import Keeper, Telling
from karpy.controllers.lifecycle import LifecycleController
from karpy.controllers.nodeclasses import NodeClasses
from karpy.controllers.nominations import Nominations
from karpy.controllers.podevents import PodEventController
from karpy.controllers.pools import PoolController
from karpy.controllers.provisioning import ProvisioningController
from karpy.controllers.registrations import RegistrationController
from karpy.controllers.staticcapacity import StaticCapacityController
from karpy.controllers.termination import TerminationController
from karpy.controllers.triggers import Triggers
from karpy.controllers.upkeep import UpkeepController
from karpy.errors import NotFound
from karpy.model.instances import Catalog
from karpy.model.kinds import KWOK_NODE_CLASS, Kind
from karpy.model.options import Options
from karpy.ports.clock import Clock
from karpy.ports.cloud import CloudProvider
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices
from karpy.ports.objects import Feed, Objects
from karpy.wiring.audiences import DecisionAudience

_PROVISIONER: Final = "provisioner"


class Surface(Struct, frozen=True):
    """The world that an operator runs in."""

    objects: Objects
    feed: Feed
    clock: Clock
    cloud: CloudProvider
    catalog: Callable[[], Catalog]
    """What the cloud sells now, without waiting for it."""
    node_classes: tuple[Kind, ...] = (KWOK_NODE_CLASS,)
    """The kinds of node class that the cloud knows."""


class Voice(Telling, Protocol):
    """Where it is told what happened: metrics, logs."""

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        """Tell that a controller could not work on an object; it will try again."""


class Part(Struct, frozen=True):
    """Something that runs for as long as the operator does."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


class Operator:
    """
    Everything that keeps a cluster in the right size.

    `watch` follows the cluster and changes nothing; it may run while somebody else leads. `act` is
    for the leader alone. Either ends by cancellation, at any moment and without harm: whatever was
    begun can be read off the objects, and is finished by whoever comes next.
    """

    def __init__(
        self,
        surface: Surface,
        options: Options,
        *,
        notices: Notices,
        voice: Voice,
        journal: Journal | None = None,
    ) -> None:
        self._surface = surface
        self._options = options
        self._notices = notices
        self._voice = voice
        self._journal = journal
        self.mirror = Mirror(surface.feed, surface.clock, surface.catalog, options.settings())
        self.cluster = MirroredCluster(self.mirror, surface.objects)
        self._classes = NodeClasses(surface.feed, surface.node_classes)

    async def run(self) -> None:
        """Watch and act, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watch(), name="watch")
            group.create_task(self.act(), name="act")

    async def watch(self) -> None:
        """Follow the cluster, until cancelled."""
        for kind in OPTIONAL:
            try:
                await self._surface.objects.list(kind, limit=1)
            except NotFound:
                self.mirror.note_absent(kind)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.mirror.run(), name="mirror")
            group.create_task(self._classes.run(), name="node classes")

    async def act(self) -> None:
        """Keep the cluster in the right size, until cancelled."""
        await self.mirror.wait_until_listed()
        parts = list(self._parts())
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part.run(), name=part.name)

    def _parts(self) -> Iterator[Part]:
        """Build all controllers; names are Karpenter's, by which people know them."""
        records, options = self.mirror.records, self._options
        desk = self._desk()
        expectations = Expectations(records)
        batcher = Batcher(
            idle_seconds=options.batch_idle.total_seconds(),
            longest_seconds=options.batch_max.total_seconds(),
        )
        nominations = Nominations(self._surface.clock, options.batch_max)
        audience = DecisionAudience(
            self._voice,
            expectations=expectations,
            journal=self._journal,
            on_nomination=nominations.note,
        )
        triggers = Triggers(records, batcher)
        provisioning = ProvisioningController(
            self.cluster, batcher, self._notices, self._surface.clock, audience
        )
        yield Part("provisioner.trigger", triggers.run)
        yield Part(_PROVISIONER, provisioning.run)
        yield Part("state.nodeclaim", self.cluster.run)

        def named(name: str) -> Desk:
            return replace(desk, on_failure=partial(self._voice.fail, name))

        registrations = RegistrationController(
            named("nodepool.registrationhealth"), self._classes.generation_of
        )
        self._classes.listen(registrations.hear_class)
        lifecycle = LifecycleController(
            named("nodeclaim.lifecycle"),
            pods_of=expectations.pods_of,
            on_attempt=registrations.record,
        )
        evictions = EvictionQueue(named("eviction-queue"))
        termination = TerminationController(named("node.termination"), evictions)
        yield Part("nodepool.registrationhealth", registrations.run)
        yield Part("nodeclaim.lifecycle", partial(lifecycle.run, options.workers(1000, 5000)))
        yield Part("eviction-queue", partial(evictions.run, options.workers(100, 5000)))
        yield Part("node.termination", partial(termination.run, options.workers(100, 5000)))
        upkeep = UpkeepController(named("nodeclaim.disruption"))
        yield Part("nodeclaim.disruption", partial(upkeep.run, options.workers(10, 1000)))
        yield Part("nodeclaim.podevents", PodEventController(named("nodeclaim.podevents")).run)
        disruption = DisruptionController(named("disruption"), self.cluster, nominations)
        self.cluster.marked = disruption.marked
        yield Part("disruption", disruption.run)
        yield from self._pool_parts(named, disruption.marked)
        garbage = GarbageCollector(named("nodeclaim.garbagecollection"))
        yield Part("nodeclaim.garbagecollection", garbage.run)

    def _pool_parts(
        self, named: Callable[[str], Desk], marked: Callable[[], frozenset[str]]
    ) -> Iterator[Part]:
        """Build those who look after NodePools."""
        pools = PoolController(
            named("nodepool"),
            self._classes,
            lambda: self.mirror.node_book.joined() if self.mirror.is_synced else None,
            marked=marked,
            well_known=self._surface.catalog().well_known,
        )
        yield Part("nodepool", partial(pools.run, self._options.workers(10, 1000)))
        if self._options.gates.static_capacity:
            static = StaticCapacityController(
                named("static"),
                self.cluster,
                is_our_pool=self._classes.is_our_pool,
                is_listed=lambda: self.mirror.is_listed,
                disrupting=marked,
            )
            yield Part("static", static.run)

    def _desk(self) -> Desk:
        surface = self._surface
        return Desk(
            self.mirror.records,
            surface.objects,
            surface.cloud,
            Keeper(surface.objects, self._notices, self._voice, self.mirror),
            surface.clock,
            is_ours=self._classes.is_ours,
        )
