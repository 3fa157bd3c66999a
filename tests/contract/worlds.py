"""The worlds of the contract tests: embedded, embedded over HTTP, and a real control plane."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, TypeVar

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.kube.connection import connect
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.errors import AlreadyExists, NotFound
from karpy.model.kinds import (
    CONFIG_MAP,
    CUSTOM,
    CUSTOM_RESOURCE,
    NAMESPACE,
    NODE,
    POD,
    Kind,
)
from karpy.ports.objects import Feed, Objects, Query, Removal
from karpy.sim.world import WorldSettings
from karpy.wiring.embedded import embedded_world, serve

T = TypeVar("T")

EMBEDDED: Final = "embedded"
OVER_HTTP: Final = "http"
REAL: Final = "real"
WORLDS: Final = (EMBEDDED, OVER_HTTP, REAL)
SOON: Final = 30.0
_GLANCE: Final = 0.02
_REMEMBERED: Final = 500
"""Events of each kind that the embedded worlds keep for watches."""
_SHORT: Final = WorldSettings(history=_REMEMBERED, taints_nodes=True)


class World:
    """A world with a namespace for a test."""

    def __init__(
        self, objects: Objects, feed: Feed, namespace: str, plane: ControlPlane | None
    ) -> None:
        self.objects = objects
        self.feed = feed
        self.namespace = namespace
        self._plane = plane

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Create an object, in the test's namespace unless it names one."""
        place = (obj.get("metadata") or {}).get("namespace", self.namespace)
        return await self.objects.create(kind, self.placed(kind, obj, place))

    def placed(self, kind: Kind, obj: JsonObject, place: str = "") -> JsonObject:
        """Return an object in a namespace, by default the test's."""
        meta = dict(obj.get("metadata") or {})
        if kind.is_namespaced:
            meta["namespace"] = place or self.namespace
        return {"apiVersion": kind.api_version, "kind": kind.name, **obj, "metadata": meta}

    async def define(self, definition: JsonObject) -> None:
        """Install a missing CustomResourceDefinition, and wait until it is served."""
        with suppress(AlreadyExists):
            await self.objects.create(CUSTOM_RESOURCE, definition)
        spec = definition["spec"]
        kind = Kind(
            spec["group"],
            spec["versions"][0]["name"],
            spec["names"]["kind"],
            spec["names"]["plural"],
            spec["scope"] == "Namespaced",
        )
        await until(partial(_is_served, self.objects, kind))

    async def get(self, kind: Kind, name: str) -> JsonObject:
        return await self.objects.get(kind, name, self.namespace if kind.is_namespaced else "")

    async def pods(self, labels: str) -> list[JsonObject]:
        """List pods of the test's namespace."""
        return list((await self.objects.list(POD, Query(self.namespace, labels))).items)

    async def compact(self) -> str:
        """Forget old versions; return one of them."""
        page = await self.objects.list(CONFIG_MAP, Query(self.namespace))
        if self._plane is not None:
            await self.create(CONFIG_MAP, {"metadata": {"name": "event"}})
            await asyncio.to_thread(self._plane.halt)
            await asyncio.to_thread(self._plane.compact)
            await asyncio.to_thread(self._plane.resume)
            return page.version
        for number in range(2 * _REMEMBERED + 1):
            await self.create(CONFIG_MAP, {"metadata": {"name": f"event-{number}"}})
        return page.version

    async def until_gone(self, kind: Kind, name: str) -> None:
        """Wait until an object does not exist any more."""

        async def is_gone() -> bool:
            try:
                await self.get(kind, name)
            except NotFound:
                return True
            return False

        await until(is_gone)


@asynccontextmanager
async def closing(stream: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a stream at the end, if it can be closed."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


async def until(look: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until it returns something; return that."""
    async with asyncio.timeout(SOON):
        while True:
            if seen := await look():
                return seen
            await asyncio.sleep(_GLANCE)


@asynccontextmanager
async def open_world(name: str, plane: ControlPlane | None, namespace: str) -> AsyncIterator[World]:
    """Enter a world; delete the objects of the test's namespace afterwards."""
    async with _reach(name, plane) as (objects, feed):
        world = World(objects, feed, namespace, plane)
        await objects.create(
            NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        try:
            if name == REAL:
                await _install(world)
            yield world
        finally:
            if name == REAL:
                await _clean(objects, namespace)


@asynccontextmanager
async def _reach(name: str, plane: ControlPlane | None) -> AsyncIterator[tuple[Objects, Feed]]:
    if plane is not None:
        await asyncio.to_thread(plane.restart_ended)
        async with connect(kubeconfig=str(plane.kubeconfig)) as connection:
            yield connection.objects, connection.feed
    elif name == OVER_HTTP:
        async with (
            embedded_world(_SHORT) as embedded,
            serve(embedded) as face,
            connect(kubeconfig=str(face.kubeconfig)) as connection,
        ):
            yield connection.objects, connection.feed
    else:
        async with embedded_world(_SHORT) as embedded:
            yield embedded.objects, embedded.objects


async def _install(world: World) -> None:
    """Install Karpy's CRDs, which the embedded worlds have already."""
    for kind in CUSTOM_KINDS:
        await world.define(kind.to_json())


async def _is_served(objects: Objects, kind: Kind) -> bool:
    try:
        await objects.list(kind)
    except NotFound:
        return False
    return True


async def _clean(objects: Objects, namespace: str) -> None:
    """Clean up a real control plane."""
    # No kubelet runs the pods, so nothing would report that they have stopped.
    for obj in (await objects.list(POD, Query(namespace))).items:
        with suppress(NotFound):
            await objects.delete(
                POD,
                obj["metadata"]["name"],
                namespace=namespace,
                removal=Removal(grace_seconds=0),
            )
    await objects.delete(NAMESPACE, namespace)
    for kind in (NODE, *(each for each in CUSTOM if not each.is_namespaced)):
        for obj in (await objects.list(kind)).items:
            await objects.delete(kind, obj["metadata"]["name"])
