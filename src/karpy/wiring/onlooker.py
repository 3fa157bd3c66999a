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
from karpy.adapters.mirror.mirror import DISPENSABLE, OPTIONAL, Mirror
from karpy.barriers import Barrier
from karpy.codec.bystanders import NodeClassFound
from karpy.codec.fields import JsonObject
from karpy.errors import Forbidden, KarpyError, NotFound
from karpy.model.instances import Catalog
from karpy.model.kinds import EC2_NODE_CLASS, NODE_CLAIM, NODE_POOL, Kind
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
    """Dispensable kinds that the user may not list."""
    node_classes: tuple[NodeClassFound, ...] = ()
    """Node classes that NodePools refer to, for catalogs that read their fields."""


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
    return Sight(snapshot, tuple(listing.unreadable), tuple(listing.withheld), tuple(classes))


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

    def __init__(self, objects: Objects, optional: frozenset[Kind]) -> None:
        self._objects = objects
        self._optional = optional
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
        if kind in DISPENSABLE:
            self.withheld.append(kind)
        return kind in DISPENSABLE

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


class Watch:
    """A watched cluster, with a snapshot at any moment."""

    def __init__(self, objects: Objects, mirror: Mirror, troubles: "_Troubles") -> None:
        self._objects = objects
        self._mirror = mirror
        self._troubles = troubles

    async def sight(self) -> Sight:
        """Return the cluster as of now."""
        snapshot = self._mirror.snapshot()
        with suppress(KarpyError):
            classes = tuple(await _find_classes(self._objects, snapshot))
            return Sight(snapshot, self._troubles.objects(), node_classes=classes)
        return Sight(snapshot, self._troubles.objects())

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
