"""The controllers of an operator, each with its name; names are Karpenter's."""

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.overlaid import OverlaidCloud
from karpy.adapters.mirror.bufferbook import BufferBook
from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.controllers.batching import Batcher
from karpy.controllers.buffers import BufferController
from karpy.controllers.desk import Desk
from karpy.controllers.disruption import DisruptionController
from karpy.controllers.evictions import EvictionQueue
from karpy.controllers.expectations import Expectations
from karpy.controllers.garbage import GarbageCollector
from karpy.controllers.keeper import Keeper, Telling
from karpy.controllers.lifecycle import LifecycleController
from karpy.controllers.nodeclasses import NodeClasses
from karpy.controllers.nominations import Nominations
from karpy.controllers.overlays import OverlayController
from karpy.controllers.podevents import PodEventController
from karpy.controllers.pools import PoolController
from karpy.controllers.provisioning import ProvisioningController
from karpy.controllers.registrations import RegistrationController
from karpy.controllers.staticcapacity import StaticCapacityController
from karpy.controllers.termination import TerminationController
from karpy.controllers.triggers import Triggers
from karpy.controllers.upkeep import UpkeepController
from karpy.model.instances import Catalog
from karpy.model.kinds import KWOK_NODE_CLASS, Kind
from karpy.model.options import Options
from karpy.ports.clock import Clock
from karpy.ports.cloud import CloudProvider
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices
from karpy.ports.objects import Feed, Objects
from karpy.wiring.audiences import DecisionAudience


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


class Speech(Struct, frozen=True):
    """Everybody who is told something."""

    voice: Voice
    notices: Notices
    journal: Journal | None = None


class View(Struct, frozen=True):
    """The cluster as it is followed."""

    mirror: Mirror
    cluster: MirroredCluster
    classes: NodeClasses
    buffers: BufferBook | None = None
    """None if the gate is closed."""


class Part(Struct, frozen=True):
    """Something that runs for as long as the operator does."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


class Assembly:
    """Builds everything that acts, once."""

    def __init__(self, surface: Surface, options: Options, speech: Speech, view: View) -> None:
        self._surface = surface
        self._options = options
        self._speech = speech
        self._view = view
        self._keeper = Keeper(surface.objects, speech.notices, speech.voice, view.mirror)
        self._batcher = Batcher(
            idle_seconds=options.batch_idle.total_seconds(),
            longest_seconds=options.batch_max.total_seconds(),
        )
        self._expectations = Expectations(view.mirror.records)
        self._nominations = Nominations(surface.clock, options.batch_max)
        self._buffers = self._make_buffers()
        self._disruption = self._make_disruption()

    def parts(self) -> Iterator[Part]:
        """Give each controller to run."""
        yield from self._provisioning()
        yield from self._claims()
        yield Part("disruption", self._disruption.run)
        yield from self._pools()
        if self._buffers is not None:
            yield Part("capacitybuffer", self._buffers.run)
        if self._options.gates.node_overlay:
            overlays = OverlayController(self._desk("nodeoverlay.controller"))
            self._view.classes.listen(lambda _: overlays.wake())
            yield Part("nodeoverlay.controller", overlays.run)

    def _provisioning(self) -> Iterator[Part]:
        view, speech = self._view, self._speech
        buffers = self._buffers
        audience = DecisionAudience(
            speech.voice,
            expectations=self._expectations,
            journal=speech.journal,
            on_nomination=self._nominations.note,
            on_verdict=(lambda _: None) if buffers is None else buffers.record,
        )
        triggers = Triggers(view.mirror.records, self._batcher)
        provisioning = ProvisioningController(
            view.cluster, self._batcher, speech.notices, self._surface.clock, audience
        )
        yield Part("provisioner.trigger", triggers.run)
        yield Part("provisioner", provisioning.run)
        yield Part("state.nodeclaim", view.cluster.run)

    def _claims(self) -> Iterator[Part]:
        """Build those who look after NodeClaims and nodes."""
        workers, classes = self._options.workers, self._view.classes
        registrations = RegistrationController(
            self._desk("nodepool.registrationhealth"), classes.generation_of
        )
        classes.listen(registrations.hear_class)
        lifecycle = LifecycleController(
            replace(self._desk("nodeclaim.lifecycle"), cloud=self._launching_cloud()),
            pods_of=self._expectations.pods_of,
            on_attempt=registrations.record,
        )
        evictions = EvictionQueue(self._desk("eviction-queue"))
        termination = TerminationController(self._desk("node.termination"), evictions)
        upkeep = UpkeepController(self._desk("nodeclaim.disruption"))
        podevents = PodEventController(self._desk("nodeclaim.podevents"))
        garbage = GarbageCollector(self._desk("nodeclaim.garbagecollection"))
        yield Part("nodepool.registrationhealth", registrations.run)
        yield Part("nodeclaim.lifecycle", partial(lifecycle.run, workers(1000, 5000)))
        yield Part("eviction-queue", partial(evictions.run, workers(100, 5000)))
        yield Part("node.termination", partial(termination.run, workers(100, 5000)))
        yield Part("nodeclaim.disruption", partial(upkeep.run, workers(10, 1000)))
        yield Part("nodeclaim.podevents", podevents.run)
        yield Part("nodeclaim.garbagecollection", garbage.run)

    def _pools(self) -> Iterator[Part]:
        """Build those who look after NodePools."""
        view, marked = self._view, self._disruption.marked
        pools = PoolController(
            self._desk("nodepool"),
            view.classes,
            lambda: view.mirror.node_book.joined() if view.mirror.is_synced else None,
            marked=marked,
            well_known=self._surface.catalog().well_known,
        )
        yield Part("nodepool", partial(pools.run, self._options.workers(10, 1000)))
        if self._options.gates.static_capacity:
            static = StaticCapacityController(
                self._desk("static"),
                view.cluster,
                is_our_pool=view.classes.is_our_pool,
                is_listed=lambda: view.mirror.is_listed,
                disrupting=marked,
            )
            yield Part("static", static.run)

    def _make_buffers(self) -> BufferController | None:
        book = self._view.buffers
        if book is None:
            return None
        return BufferController(self._desk("capacitybuffer"), book, self._batcher.trigger)

    def _make_disruption(self) -> DisruptionController:
        cluster, buffers = self._view.cluster, self._buffers
        disruption = DisruptionController(
            self._desk("disruption"),
            cluster,
            self._nominations,
            buffer_pods=(lambda _: 0) if buffers is None else buffers.pods_on,
        )
        cluster.marked = disruption.marked
        return disruption

    def _launching_cloud(self) -> CloudProvider:
        """Return the cloud that launches see: with the overlays that were decided on."""
        cloud = self._surface.cloud
        return (
            OverlaidCloud(cloud, self._view.mirror) if self._options.gates.node_overlay else cloud
        )

    def _desk(self, name: str) -> Desk:
        """Return what a controller works with."""
        surface = self._surface
        return Desk(
            self._view.mirror.records,
            surface.objects,
            surface.cloud,
            self._keeper,
            surface.clock,
            is_ours=self._view.classes.is_ours,
            on_failure=partial(self._speech.voice.fail, name),
        )
