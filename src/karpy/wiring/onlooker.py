"""A cluster seen once from outside, and left as it is."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
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
from karpy.model.kinds import EC2_NODE_CLASS, Kind
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from karpy.ports.clock import Clock
from karpy.ports.objects import (
    EVERYTHING,
    Change,
    Objects,
    Query,
    Reader,
    Synced,
    as_unreadable,
)

T = TypeVar("T")

_PAGE: Final = 500
_CLASSES: Final = (EC2_NODE_CLASS,)
"""Kinds of node class that a catalog is made from."""


class Sight(Struct, frozen=True):
    """What an onlooker has seen, and what it could not see."""

    snapshot: Snapshot
    """Without a catalog: what the cloud sells cannot be seen in a cluster."""
    unreadable: tuple[tuple[Kind, str, str], ...] = ()
    """Objects that cannot be read: kind, key and problem."""
    withheld: tuple[Kind, ...] = ()
    """Kinds that the user may not list, and that decisions go on without."""
    node_classes: tuple[NodeClassFound, ...] = ()
    """For catalogs that know what their fields mean."""


async def look(access: Access, settings: Settings) -> Sight:
    """
    See a cluster over HTTP; raise what its API server says to that.

    Nothing is written: the connection lets reads pass alone.
    """
    async with Connection(access, fence=Fence()) as connection:
        return await see(connection.objects, WallClock(), settings)


async def see(objects: Objects, clock: Clock, settings: Settings) -> Sight:
    """List everything that decisions read; raise the first error."""
    catalog = Catalog()
    listing = _Listing(objects)
    mirror = Mirror(listing, clock, lambda: catalog, settings)
    await _list_all(mirror)
    snapshot = mirror.snapshot()
    classes = await _find_classes(objects, snapshot)
    return Sight(snapshot, tuple(listing.unreadable), tuple(listing.withheld), tuple(classes))


async def _find_classes(objects: Objects, snapshot: Snapshot) -> list[NodeClassFound]:
    """Return the node classes that NodePools name, as far as they can be had."""
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
    """Return once everything is listed; raise the first error."""
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
    """The port Feed for one look: what is there is told, what comes later is not."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
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
            return kind in OPTIONAL
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
