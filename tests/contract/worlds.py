"""The worlds that promises are held to: embedded, embedded over HTTP, and the real one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar


from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.kube.connection import connect
from karpy.codec.fields import JsonObject
from karpy.errors import NotFound
from karpy.model.kinds import (
    CUSTOM,
    CUSTOM_RESOURCE,
    NAMESPACE,
    NODE,
    POD,
    Kind,
)
from karpy.ports.objects import Feed, Objects, Query
from karpy.sim.world import World as Embedded
from tests.contract.crds import custom_resources

T = TypeVar("T")

EMBEDDED: Final = "embedded"
OVER_HTTP: Final = "http"
REAL: Final = "real"
WORLDS: Final = (EMBEDDED, OVER_HTTP, REAL)
SOON: Final = 30.0
_GLANCE: Final = 0.02


class World:
    """One world, and a namespace of it that is the test's own."""

    def __init__(self, name: str, objects: Objects, feed: Feed, namespace: str) -> None:
        self.name = name
        self.objects = objects
        self.feed = feed
        self.namespace = namespace

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Create an object, in the test's namespace unless it says where."""
        meta = dict(obj.get("metadata") or {})
        if kind.is_namespaced:
            meta.setdefault("namespace", self.namespace)
        whole = {"apiVersion": kind.api_version, "kind": kind.name, **obj, "metadata": meta}
        return await self.objects.create(kind, whole)

    async def get(self, kind: Kind, name: str) -> JsonObject:
        return await self.objects.get(kind, name, self.namespace if kind.is_namespaced else "")

    async def pods(self, labels: str) -> list[JsonObject]:
        """List pods of the test's namespace."""
        return list((await self.objects.list(POD, Query(self.namespace, labels))).items)

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
    """Close a stream in the end, if it is one that can be closed."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


async def until(look: Callable[[], Awaitable[T]]) -> T:
    """Look again and again until there is something to see."""
    async with asyncio.timeout(SOON):
        while True:
            if seen := await look():
                return seen
            await asyncio.sleep(_GLANCE)


@asynccontextmanager
async def open_world(name: str, plane: ControlPlane | None, namespace: str) -> AsyncIterator[World]:
    """Enter a world; what the test made in its namespace goes with it."""
    async with _reach(name, plane) as (objects, feed):
        world = World(name, objects, feed, namespace)
        await objects.create(
            NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        try:
            yield world
        finally:
            if name == REAL:
                await _clean(objects, namespace)


@asynccontextmanager
async def _reach(name: str, plane: ControlPlane | None) -> AsyncIterator[tuple[Objects, Feed]]:
    if plane is not None:
        async with connect(kubeconfig=str(plane.kubeconfig)) as connection:
            await _install(connection.objects)
            yield connection.objects, connection.feed
    elif name == OVER_HTTP:
        async with (
            embedded_world() as embedded,
            serve(embedded) as face,
            connect(kubeconfig=str(face.kubeconfig)) as connection,
        ):
            yield connection.objects, connection.feed
    else:
        embedded = Embedded()
        embedded.start()
        try:
            yield embedded.objects, embedded.objects
        finally:
            embedded.stop()


async def _install(objects: Objects) -> None:
    """Install our CRDs once; wait until they are served."""
    for crd in custom_resources():
        try:
            await objects.get(CUSTOM_RESOURCE, crd["metadata"]["name"])
        except NotFound:
            await objects.create(CUSTOM_RESOURCE, crd)
    for kind in CUSTOM:
        await until(partial(_is_served, objects, kind))


async def _is_served(objects: Objects, kind: Kind) -> bool:
    try:
        await objects.list(kind)
    except NotFound:
        return False
    return True


async def _clean(objects: Objects, namespace: str) -> None:
    """Leave a real control plane as it was found."""
    await objects.delete(NAMESPACE, namespace)
    for kind in (NODE, *(each for each in CUSTOM if not each.is_namespaced)):
        for obj in (await objects.list(kind)).items:
            await objects.delete(kind, obj["metadata"]["name"])
