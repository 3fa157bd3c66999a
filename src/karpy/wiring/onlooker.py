"""Read-only views of a cluster for the command line: one list, or a watch."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, TypeVar

from msgspec import Struct

from karpy.adapters.clock import WallClock
from karpy.adapters.kube.access import Access
from karpy.adapters.kube.connection import Connection
from karpy.adapters.kube.fence import Fence
from karpy.adapters.mirror.bufferbook import source_reader
from karpy.adapters.mirror.mirror import DISPENSABLE, OPTIONAL, Mirror
from karpy.adapters.mirror.records import FieldReader
from karpy.barriers import Barrier
from karpy.codec.buffers import FoundBuffer, read_buffer_record
from karpy.codec.bystanders import NodeClassFound
from karpy.codec.fields import JsonObject
from karpy.codec.pods import PodReader
from karpy.core.buffers import SOURCES, why_unresolvable
from karpy.errors import Forbidden, KarpyError, NotFound
from karpy.model.buffers import BufferRecord, PodSource
from karpy.model.instances import Catalog
from karpy.model.kinds import CAPACITY_BUFFER, EC2_NODE_CLASS, NODE_CLAIM, NODE_POOL, Kind
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from karpy.ports.clock import Clock
from karpy.ports.objects import (
    EVERYTHING,
    Change,
    Feed,
    Objects,
    Query,
    Reader,
    Synced,
    as_unreadable,
)

T = TypeVar("T")

_PAGE: Final = 500
_LATELY: Final = timedelta(seconds=15)
"""Time for which an error of a watch counts as present: a feed retries within eight seconds."""
_CLASSES: Final = (EC2_NODE_CLASS,)
"""Kinds of node class that a catalog depends on."""
ANY_CLUSTER: Final = OPTIONAL | {NODE_POOL, NODE_CLAIM}
"""Kinds whose CRD a cluster without Karpy and Karpenter lacks."""


class Sight(Struct, frozen=True):
    """A snapshot of a cluster, with what could not be read."""

    snapshot: Snapshot
    """Has no catalog: the objects of a cluster do not say what the cloud sells."""
    unreadable: tuple[tuple[Kind, str, str], ...] = ()
    """Objects that cannot be read: kind, key and problem."""
    withheld: tuple[Kind, ...] = ()
    """Kinds that the user may not list, and without which there is an answer."""
    node_classes: tuple[NodeClassFound, ...] = ()
    """Node classes that NodePools refer to, for catalogs that read their fields."""
    buffers: tuple[FoundBuffer, ...] = ()
    """CapacityBuffers, whose virtual pods are not in the snapshot."""


async def look(access: Access, settings: Settings, optional: frozenset[Kind] = OPTIONAL) -> Sight:
    """
    List a cluster over HTTP; raise the first error.

    The connection allows reads alone. `optional` are kinds whose CRD need not be installed.
    """
    async with Connection(access, fence=Fence()) as connection:
        return await see(connection.objects, WallClock(), settings, optional)


@asynccontextmanager
async def watch(access: Access, settings: Settings) -> AsyncIterator["Watch"]:
    """
    Watch a cluster over HTTP, once every kind is listed; raise the first error before that.

    The connection allows reads alone.
    """
    troubles = _Troubles()
    async with Connection(
        access,
        fence=Fence(),
        on_unreadable=troubles.unreadable,
        on_trouble=troubles.unfollowed,
    ) as connection:
        feed = lenient(connection.objects, connection.feed)
        catalog = Catalog()
        mirror = Mirror(feed, WallClock(), lambda: catalog, settings)
        # Unreadable objects are reported by `on_unreadable`.
        following = asyncio.create_task(mirror.run(), name="mirror")
        listed = asyncio.create_task(mirror.wait_until_listed(), name="listed")
        tasks = (following, listed, troubles.first)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
            if not listed.done():
                raise troubles.first.result()
            yield Watch(connection.objects, mirror, troubles)
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def see(
    objects: Objects,
    clock: Clock,
    settings: Settings,
    optional: frozenset[Kind] = OPTIONAL,
) -> Sight:
    """List every kind that decisions read; raise the first error."""
    catalog = Catalog()
    listing = _Listing(objects, optional)
    mirror = Mirror(listing, clock, lambda: catalog, settings)
    await _list_all(mirror)
    snapshot = mirror.snapshot()
    classes = await _find_classes(objects, snapshot)
    room = _Rooms(objects)
    buffers = await room.find()
    return Sight(
        snapshot,
        (*listing.unreadable, *room.unreadable),
        (*listing.withheld, *room.withheld),
        tuple(classes),
        buffers,
    )


async def _find_classes(objects: Objects, snapshot: Snapshot) -> list[NodeClassFound]:
    """Return the node classes of the kinds that NodePools refer to, if they may be listed."""
    wanted = {(each.node_class.group, each.node_class.kind) for each in snapshot.pools}
    found = []
    for kind in _CLASSES:
        if (kind.group, kind.name) in wanted:
            with suppress(NotFound, Forbidden):
                page = await objects.list(kind)
                found += [_class_found(kind, each) for each in page.items]
    return found


def _class_found(kind: Kind, obj: JsonObject) -> NodeClassFound:
    name = obj["metadata"]["name"]
    return NodeClassFound(kind.group, kind.name, name, obj, f"{kind.name} {name}")


async def _list_all(mirror: Mirror) -> None:
    """Return once every kind is listed; raise the first error."""
    follows = [asyncio.create_task(follow(), name=name) for name, follow in mirror.follows()]
    listed = asyncio.create_task(mirror.wait_until_listed(), name="listed")
    try:
        await asyncio.wait((listed, *follows), return_when=asyncio.FIRST_COMPLETED)
        for each in follows:
            if each.done():
                each.result()
    finally:
        for each in (listed, *follows):
            each.cancel()
        await asyncio.gather(listed, *follows, return_exceptions=True)


class _Listing:
    """The port Feed for one snapshot: lists each kind and does not watch."""

    def __init__(
        self,
        objects: Objects,
        optional: frozenset[Kind],
        dispensable: frozenset[Kind] = DISPENSABLE,
    ) -> None:
        self._objects = objects
        self._optional = optional
        self._dispensable = dispensable
        self.unreadable: list[tuple[Kind, str, str]] = []
        self.withheld: list[Kind] = []

    async def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncGenerator[Change[T] | Synced, None]:
        token, is_last = "", False
        while not is_last:
            try:
                page = await self._objects.list(kind, query, limit=_PAGE, token=token)
            except (Forbidden, NotFound) as error:
                if not self._can_do_without(kind, error):
                    raise
                break
            for each in page.items:
                yield self._read(kind, reader, each)
            token = page.token
            is_last = not token
        yield Synced()

    def _can_do_without(self, kind: Kind, error: KarpyError) -> bool:
        if isinstance(error, NotFound):
            return kind in self._optional
        if kind in self._dispensable and kind not in self.withheld:
            self.withheld.append(kind)
        return kind in self._dispensable

    def _read(self, kind: Kind, reader: Reader[T], obj: JsonObject) -> Change[T]:
        meta = obj["metadata"]
        name, namespace = meta["name"], meta.get("namespace", "")
        key = f"{namespace}/{name}" if namespace else name
        version = meta.get("resourceVersion", "")
        problems: list[KarpyError] = []
        with Barrier(problems.append):
            return Change(key, reader.from_object(obj), version)
        error = problems[0].__cause__ or problems[0]
        assert isinstance(error, Exception)
        self.unreadable.append((kind, key, str(error)))
        return Change(key, None, version, as_unreadable(error, obj))


class _Rooms:
    """Lists CapacityBuffers, and of other kinds only the objects that they refer to."""

    def __init__(self, objects: Objects) -> None:
        kinds = frozenset({CAPACITY_BUFFER})
        self._listing = _Listing(objects, kinds, kinds | {*SOURCES})
        pods = PodReader()
        self._readers = {kind.name: (kind, source_reader(kind, pods)) for kind in SOURCES}

    @property
    def unreadable(self) -> list[tuple[Kind, str, str]]:
        return self._listing.unreadable

    @property
    def withheld(self) -> list[Kind]:
        return self._listing.withheld

    async def find(self) -> tuple[FoundBuffer, ...]:
        """Return the buffers, without those whose reference may not, or cannot, be read."""
        found = []
        for each in await self._list(CAPACITY_BUFFER, FieldReader(read_buffer_record)):
            source = await self._find_source(each)
            if source is not None or not self._is_unknown(each):
                found.append(FoundBuffer(each, source, f"{CAPACITY_BUFFER.name} {each.key}"))
        return tuple(found)

    async def _find_source(self, buffer: BufferRecord) -> PodSource | None:
        if why_unresolvable(buffer) is not None:
            return None
        kind_name, key = buffer.source
        kind, reader = self._readers[kind_name]
        # A list takes the right `list`, which the roles of the operator have; `get` is not in them.
        name = key.removeprefix(f"{buffer.namespace}/")
        query = Query(buffer.namespace, fields=f"metadata.name={name}")
        return next(iter(await self._list(kind, reader, query)), None)

    def _is_unknown(self, buffer: BufferRecord) -> bool:
        """Say whether it is unknown what a buffer without a source refers to."""
        broken = {(kind.name, key) for kind, key, _ in self.unreadable}
        return buffer.source in broken or buffer.source[0] in {each.name for each in self.withheld}

    async def _list(self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING) -> list[T]:
        changes = [each async for each in self._listing.follow(kind, reader, query)]
        values = (each.value for each in changes if isinstance(each, Change))
        return [each for each in values if each is not None]


class Watch:
    """A watched cluster, with a snapshot at any moment."""

    def __init__(self, objects: Objects, mirror: Mirror, troubles: "_Troubles") -> None:
        self._objects = objects
        self._mirror = mirror
        self._troubles = troubles
        self._classes: tuple[NodeClassFound, ...] = ()
        self._buffers: tuple[FoundBuffer, ...] = ()

    async def sight(self) -> Sight:
        """Return the cluster as of now; node classes and buffers as they were read last."""
        snapshot, rooms = self._mirror.snapshot(), _Rooms(self._objects)
        with suppress(KarpyError):
            self._classes = tuple(await _find_classes(self._objects, snapshot))
            self._buffers = await rooms.find()
        return Sight(
            snapshot,
            (*self._troubles.objects(), *rooms.unreadable),
            tuple(rooms.withheld),
            self._classes,
            self._buffers,
        )

    @property
    def trouble(self) -> str:
        """The last recent error of a watch; empty if there is none."""
        return self._troubles.lately(self._mirror.now())


class _Troubles:
    """Collects unreadable objects and errors of watches."""

    def __init__(self) -> None:
        self.first: asyncio.Future[KarpyError] = asyncio.get_running_loop().create_future()
        self._latest: tuple[datetime, str] | None = None
        self._unreadable: dict[tuple[Kind, str], str] = {}

    def unreadable(self, kind: Kind, key: str, error: Exception) -> None:
        """Record an unreadable object."""
        self._unreadable[kind, key] = str(error)

    def unfollowed(self, kind: Kind, error: KarpyError) -> None:
        """Record the error of a watch, which is retried."""
        self._latest = WallClock().now(), f"{kind.plural}: {error.message}"
        if not self.first.done():
            self.first.set_result(error)

    def objects(self) -> tuple[tuple[Kind, str, str], ...]:
        """Return the unreadable objects, with the problem of each."""
        return tuple((kind, key, problem) for (kind, key), problem in self._unreadable.items())

    def lately(self, now: datetime) -> str:
        """Return the latest error of a watch, if it is recent."""
        if self._latest is None or now - self._latest[0] > _LATELY:
            return ""
        return self._latest[1]


def lenient(objects: Objects, feed: Feed) -> Feed:
    """Return a feed for a cluster with or without the CRDs of Karpenter."""
    return _Lenient(objects, feed)


class _Lenient:
    """The port Feed for clusters without CRDs: a missing kind is empty, and retried."""

    def __init__(self, objects: Objects, feed: Feed) -> None:
        self._objects = objects
        self._feed = feed

    async def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncGenerator[Change[T] | Synced, None]:
        if kind in ANY_CLUSTER | DISPENSABLE and not await self._is_there(kind):
            yield Synced()
            return
        async for change in self._feed.follow(kind, reader, query):
            yield change

    async def _is_there(self, kind: Kind) -> bool:
        try:
            await self._objects.list(kind, limit=1)
        except NotFound:
            return False
        except Forbidden:
            return kind not in DISPENSABLE
        except KarpyError:
            # The feed reports the error and retries.
            return True
        return True
