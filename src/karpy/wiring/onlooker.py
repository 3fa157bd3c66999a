"""A cluster seen once from outside, and left as it is."""

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from karpy.adapters.clock import WallClock
from karpy.adapters.kube.access import Access
from karpy.adapters.kube.connection import Connection
from karpy.adapters.kube.fence import Fence
from karpy.adapters.mirror.mirror import DISPENSABLE, OPTIONAL, Mirror
from karpy.errors import ClusterError, CredentialsRefused, Forbidden, NotFound
from karpy.model.instances import Catalog
from karpy.model.kinds import Kind
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot


class Sight(Struct, frozen=True):
    """What an onlooker has seen, and what it could not see."""

    snapshot: Snapshot
    """Without a catalog: what the cloud sells cannot be seen in a cluster."""
    unreadable: tuple[tuple[Kind, str, str], ...] = ()
    """Objects that cannot be read: kind, key and problem."""
    withheld: tuple[Kind, ...] = ()
    """Kinds that the user may not list, and that decisions go on without."""


async def look(access: Access, settings: Settings) -> Sight:
    """
    List everything that decisions read; raise what the API server says to that.

    Nothing is written: the connection lets reads pass alone.
    """
    onlooker = _Onlooker()
    async with Connection(
        access,
        on_unreadable=onlooker.note_unreadable,
        on_trouble=onlooker.note_trouble,
        fence=Fence(),
    ) as connection:
        catalog = Catalog()
        mirror = Mirror(connection.feed, WallClock(), lambda: catalog, settings)
        onlooker.mirror = mirror
        await onlooker.list_all()
        return Sight(mirror.snapshot(), tuple(onlooker.unreadable), tuple(onlooker.withheld))


class _Onlooker:
    """Waits until every kind is listed, or one of them cannot be."""

    def __init__(self) -> None:
        self.mirror: Mirror | None = None
        self.unreadable: list[tuple[Kind, str, str]] = []
        self.withheld: list[Kind] = []
        self._trouble: ClusterError | CredentialsRefused | None = None
        self._is_over = asyncio.Event()

    async def list_all(self) -> None:
        assert self.mirror is not None
        follows = [
            asyncio.create_task(follow(), name=name) for name, follow in self.mirror.follows()
        ]
        waits = (self.mirror.wait_until_listed(), self._is_over.wait())
        ends = [asyncio.ensure_future(each) for each in waits]
        try:
            await asyncio.wait((*ends, *follows), return_when=asyncio.FIRST_COMPLETED)
            if self._trouble is not None:
                raise self._trouble
            for each in follows:
                if each.done():
                    each.result()
        finally:
            await _end((*ends, *follows))

    def note_unreadable(self, kind: Kind, key: str, error: Exception) -> None:
        self.unreadable.append((kind, key, str(error)))

    def note_trouble(self, kind: Kind, error: ClusterError | CredentialsRefused) -> None:
        assert self.mirror is not None
        if isinstance(error, NotFound) and kind in OPTIONAL:
            self.mirror.note_absent(kind)
        elif isinstance(error, Forbidden) and kind in DISPENSABLE:
            self.withheld.append(kind)
            self.mirror.note_absent(kind)
        else:
            self._trouble = self._trouble or error
            self._is_over.set()


async def _end(tasks: Sequence["asyncio.Future[Any]"]) -> None:
    """Cancel tasks, and wait until they are over."""
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
