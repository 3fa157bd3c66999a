"""The autoscaler inside an embedded cluster, in real time, without HTTP and without a lease."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.adapters.kube.events import EventRecorder
from karpy.adapters.telemetry.logs import Log, make_log, open_lines
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.documents import read_documents
from karpy.codec.fields import JsonObject
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import ManifestInvalid
from karpy.model.kinds import KWOK_NODE_CLASS
from karpy.model.settings import Options
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World, WorldSettings
from karpy.wiring.clouds.registry import Cloud, ProviderInputs, surface_of
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.surface import Voice

BRISK: Final = WorldSettings(
    timing=KubeletTiming(ready_seconds=0, start_seconds=0.5, stop_seconds=0.5, beat_seconds=10),
    taints_nodes=True,
)
"""Nodes are ready as soon as they register, as KWOK nodes are; kubelets renew their leases."""
_NAME: Final = "karpenter"

OpenCloud = Callable[[ProviderInputs], Awaitable[Cloud]]
"""Opens the cloud of a cluster."""

_LIVE: Final = WorldSettings(timing=KubeletTiming(beat_seconds=10), taints_nodes=True)
"""A cluster for kubectl: kubelets renew their leases."""


async def _kwok(site: ProviderInputs) -> Cloud:
    return Cloud(KwokProvider(site.objects, site.clock, kwok_catalog()), (KWOK_NODE_CLASS,))


@asynccontextmanager
async def operating(
    world: World,
    *,
    notices: Notices,
    voice: Voice,
    journal: Journal | None = None,
    options: Options | None = None,
    open_cloud: OpenCloud | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    """
    Run the operator in a cluster, as a task that ends early only by an error.

    Without `open_cloud` the cloud is KWOK.
    """
    objects = EmbeddedObjects(world.store, manager=_NAME)
    options = options or Options()
    site = ProviderInputs(objects, objects, world.clock, notices, options)
    cloud = await (_kwok if open_cloud is None else open_cloud)(site)
    operator = KarpyOperator(
        surface_of(site, cloud),
        options,
        notices=notices,
        voice=voice,
        journal=journal,
    )
    cloud.provider.start()
    task = asyncio.create_task(operator.run(), name="operator")
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait((task,))
        await cloud.provider.close()
        await cloud.close()
        if not task.cancelled():
            task.result()


@asynccontextmanager
async def autoscaled(world: World, log: Path) -> AsyncIterator[asyncio.Task[None]]:
    """Run the operator in a cluster, with events for kubectl and a log in a file."""
    lines = open_lines((str(log),), ())
    objects = EmbeddedObjects(world.store, manager=_NAME)
    recorder = EventRecorder(objects, world.clock, instance="karpy-cluster")
    writing = asyncio.create_task(recorder.run(), name="events")
    try:
        voice = _LogVoice(make_log(lines, world.clock))
        async with operating(world, notices=recorder, voice=voice) as task:
            yield task
    finally:
        writing.cancel()
        await asyncio.wait((writing,))
        lines.close()


def apply_manifests(world: World, documents: Iterable[tuple[str, str]]) -> list[JsonObject]:
    """Create the objects of manifests, given as file name and text; raise the first error."""
    kinds = {(each.kind.api_version, each.kind.name): each.kind for each in world.store.kinds}
    created = []
    for file, text in documents:
        for document in read_documents(file, text):
            if isinstance(document, ManifestInvalid):
                raise document
            value: JsonObject = document.value
            kind = kinds[value["apiVersion"], value["kind"]]
            created.append(world.store.create(kind, value))
    return created


class _LogVoice:
    """The Voice that writes to a log, without metrics."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def count(self, count: Count) -> None:
        """Ignore a count."""
        del count

    def remark(self, remark: Remark) -> None:
        """Write a remark as a line of the log."""
        log = self._log.bind(**remark.fields)
        if remark.is_error:
            log.error(remark.event)
        else:
            log.info(remark.event)

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        """Log the failed reconcile of an object."""
        self._log.error("Reconciler error", controller=controller, name=key, error=error)


@asynccontextmanager
async def embedded_world(
    settings: WorldSettings | None = None, *, seed: int = 0
) -> AsyncIterator[World]:
    """Run an embedded cluster on the running loop, in real time from now on."""
    # Objects keep whole seconds: the start is one, so that rounding is always the same.
    world = World(settings or _LIVE, seed=seed, start=datetime.now(UTC).replace(microsecond=0))
    world.start()
    try:
        yield world
    finally:
        world.stop()
