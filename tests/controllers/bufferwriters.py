"""Worlds with CapacityBuffers, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from msgspec import Struct

from karpy.adapters.mirror.bufferbook import BufferBook
from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.controllers.buffers import BufferController
from karpy.controllers.clusterstate import ClusterState, Commands, Promises
from karpy.controllers.context import ControllerContext
from karpy.controllers.disruption import DisruptionController
from karpy.controllers.evictionqueue import EvictionQueue
from karpy.controllers.nodeclaimdisruption import NodeClaimDisruptionController, PodEventController
from karpy.controllers.nodeclaimlifecycle import LifecycleController
from karpy.controllers.nodetermination import TerminationController
from karpy.controllers.nominations import ClaimNominations, NodeNominations
from karpy.controllers.provisioning import Batcher, ProvisioningController, Triggers
from karpy.controllers.writer import Writer
from karpy.errors import KarpyError
from karpy.model.kinds import CAPACITY_BUFFER
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot, VainLaunches
from karpy.model.verdicts import Launch, Nomination, Verdict
from karpy.ports.objects import Objects
from karpy.sim.world import World
from tests.controllers.operators import Heard


class Audience:
    """Passes decisions on to the controller of CapacityBuffers."""

    def __init__(self, nominations: NodeNominations, buffers: BufferController) -> None:
        self._nominations = nominations
        self._buffers = buffers
        self.verdicts: list[Verdict] = []
        self.awaited: list[str] = []

    def deciding(self, snapshot: Snapshot) -> None:
        del snapshot

    def decided(self, snapshot: Snapshot, verdict: Verdict, duration: timedelta) -> None:
        del snapshot, duration
        self.verdicts.append(verdict)
        self._buffers.record(verdict)

    def vain_launches(self, snapshot: Snapshot) -> tuple[VainLaunches, ...]:
        del snapshot
        return ()

    def nominated(self, nomination: Nomination, claim: str) -> None:
        del claim
        self.awaited.append(nomination.node)
        self._nominations.note(nomination.node)

    def launched(self, claim: str, launch: Launch) -> None:
        del launch
        self._nominations.note(claim)

    def failed(self, launch: Launch, error: KarpyError) -> None:
        raise AssertionError(launch.name) from error


class Room(Struct):
    """What a story about buffers has at hand."""

    book: BufferBook
    buffers: BufferController
    audience: Audience


@asynccontextmanager
async def keeping_room(
    world: World, heard: Heard, objects: Objects | None = None
) -> AsyncIterator[Room]:
    """Run the controllers that keep room for buffers, until they are cancelled."""
    objects, clock = objects or world.objects, world.clock
    mirror = Mirror(world.objects, clock, kwok_catalog, Settings())
    book = BufferBook(world.objects, clock)
    watching = [asyncio.create_task(each.run()) for each in (mirror, book)]
    await mirror.wait_until_listed()
    await book.wait_until_listed()
    writer = Writer(objects, heard, heard)
    context = ControllerContext(
        mirror.records, objects, world.cloud, writer, clock, on_failure=heard.fail
    )
    commands, nominations, batcher = Commands(), NodeNominations(clock), Batcher()
    buffers, evictions = BufferController(context, book, batcher.trigger), EvictionQueue(context)
    audience = Audience(nominations, buffers)
    state = ClusterState(
        MirroredCluster(mirror, objects),
        Promises(commands, nominations, ClaimNominations(mirror.records, clock)),
        virtual_pods=book.virtual_pods,
        buffer_pods=buffers.pods_on,
    )
    parts = (
        buffers,
        Triggers(mirror.records, batcher),
        ProvisioningController(state, batcher, heard, clock, audience),
        DisruptionController(
            context, state, commands, nominations, lambda: mirror.consolidation_version
        ),
        LifecycleController(context),
        TerminationController(context, evictions),
        evictions,
        NodeClaimDisruptionController(context),
        PodEventController(context),
    )
    tasks = [*watching, *(asyncio.create_task(each.run()) for each in parts)]
    try:
        yield Room(book, buffers, audience)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def template(cpu: str) -> JsonObject:
    """Build what pods look like that ask for some CPUs."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}


def pod_template(cpu: str = "3") -> JsonObject:
    return {"metadata": {"name": "web", "namespace": "default"}, "template": template(cpu)}


def deployment(replicas: int, cpu: str = "3") -> JsonObject:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(cpu),
        },
    }


def buffer(**spec: object) -> JsonObject:
    """Build the buffer `spare`, of the Deployment `web` unless a template is named."""
    ref = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    made = spec if "podTemplateRef" in spec else {"scalableRef": ref, **spec}
    return {"metadata": {"name": "spare", "namespace": "default"}, "spec": made}


def status_of(world: World) -> JsonObject:
    """Return what the buffer says."""
    found = world.store.get(CAPACITY_BUFFER, "spare", "default")
    return dict(found.get("status") or {})


def said(world: World) -> dict[str, tuple[str, str]]:
    """Return status and reason of the buffer's conditions."""
    told = status_of(world).get("conditions") or ()
    return {each["type"]: (each["status"], each["reason"]) for each in told}
