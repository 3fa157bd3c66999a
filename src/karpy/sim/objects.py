"""The port of an API server on the embedded store."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, TypeVar

from karpy.codec.fields import JsonObject
from karpy.errors import Expired
from karpy.model.kinds import Kind
from karpy.ports.objects import (
    EVERYTHING,
    GRACEFULLY,
    Change,
    EventType,
    Page,
    Patch,
    Query,
    Reader,
    Removal,
    Synced,
    WatchEvent,
    as_unreadable,
)
from karpy.sim.store.paging import key_of
from karpy.sim.store.store import Store

T = TypeVar("T")

BOOKMARK_SECONDS: Final = 60.0
_GONE: Final = 410
_INSTANT: Final = 1e-6
_LAG_MAX: Final = 200_000
"""A watcher further behind than this many events must list again."""
_FROM_THE_START: Final = frozenset({"", "0"})

OnUnreadable = Callable[[Kind, str, Exception], None]
"""Called with the kind and key of an object that cannot be read, and the error."""


class EmbeddedObjects:
    """Objects and Feed on a store in this process."""

    def __init__(
        self, store: Store, *, manager: str = "", unreadable: OnUnreadable = lambda *_: None
    ) -> None:
        self._store = store
        self._manager = manager
        self._on_unreadable = unreadable

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        """Return one object as it is now."""
        return self._store.get(kind, name, namespace)

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return objects in the order of namespace and name, all of them or page by page."""
        if not limit and not token:
            return Page(tuple(self._store.list(kind, query)), self._store.version)
        return self._store.page(kind, query, limit=limit, token=token)

    async def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        since: str,
        seconds: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Yield the events after a version, with bookmarks, until `seconds` have passed."""
        loop = asyncio.get_running_loop()
        stream = _Stream(self._store, kind, query, since)
        try:
            end = None if seconds is None else loop.time() + seconds
            bookmark = loop.time() + BOOKMARK_SECONDS
            while True:
                while (event := stream.next()) is not None:
                    yield event
                # A timer may fire a rounding error early; waiting for the rest would never end.
                now = loop.time() + _INSTANT
                if end is not None and now >= end:
                    yield _bookmark(kind, self._store.version)
                    return
                if now >= bookmark:
                    yield _bookmark(kind, self._store.version)
                    bookmark = now + BOOKMARK_SECONDS
                    continue
                await stream.wait(bookmark if end is None else min(end, bookmark))
        finally:
            stream.close()

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Add an object; evict a pod or bind one with a subresource."""
        return self._store.create(
            kind, obj, subresource=subresource, dry_run=dry_run, manager=self._manager
        )

    async def replace(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Write an object anew; with a `resourceVersion` only if that is still the current one."""
        return self._store.replace(
            kind, obj, subresource=subresource, dry_run=dry_run, manager=self._manager
        )

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Change an object; APPLY adds it if it is not there."""
        return self._store.patch(
            kind, name, patch, namespace=namespace, subresource=subresource, dry_run=dry_run
        )

    async def delete(
        self, kind: Kind, name: str, *, namespace: str = "", removal: Removal = GRACEFULLY
    ) -> None:
        """Delete an object, or mark it so while finalizers or its grace period hold it."""
        self._store.delete(kind, name, namespace=namespace, removal=removal)

    async def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[T] | Synced]:
        """Yield every object, then Synced, then every change; list again after a lost watch."""
        follower = _Follower(kind, reader, self._on_unreadable)
        is_synced = False
        while True:
            page = await self.list(kind, query)
            for change in follower.catch_up(page):
                yield change
            if not is_synced:
                is_synced = True
                yield Synced()
            try:
                async for event in self.watch(kind, query, since=page.version):
                    found = None if event.type is EventType.BOOKMARK else follower.change(event)
                    if found is not None:
                        yield found
            except Expired:
                continue


class _Follower(Generic[T]):
    """The versions of the objects that a follower of a kind has received."""

    def __init__(self, kind: Kind, reader: Reader[T], on_unreadable: OnUnreadable) -> None:
        self._kind = kind
        self._reader = reader
        self._on_unreadable = on_unreadable
        self._known: dict[str, str] = {}

    def catch_up(self, page: Page) -> list[Change[T]]:
        """Return how a list differs from the objects received so far."""
        changes: list[Change[T]] = []
        present = set()
        for obj in page.items:
            key, version = key_of(obj), obj["metadata"]["resourceVersion"]
            present.add(key)
            if self._known.get(key) == version:
                continue
            change = self.change(WatchEvent(EventType.MODIFIED, obj, version))
            if change is not None:
                changes.append(change)
        for key in [key for key in self._known if key not in present]:
            del self._known[key]
            changes.append(Change(key, None, page.version))
        return changes

    def change(self, event: WatchEvent) -> Change[T] | None:
        """Return the change of an event; the deletion of an object never received is none."""
        key, version = key_of(event.object), event.version
        if event.type is EventType.DELETED:
            is_known = self._known.pop(key, None) is not None
            return Change(key, None, version) if is_known else None
        self._known[key] = version
        try:
            return Change(key, self._reader.from_object(event.object), version)
        except Exception as error:
            self._on_unreadable(self._kind, key, error)
            return Change(key, None, version, as_unreadable(error, event.object))


class _Stream:
    """The events of one watch: from history, then live."""

    def __init__(self, store: Store, kind: Kind, query: Query, since: str) -> None:
        self._filter = store.filter(kind, query)
        self._kind = kind
        self._told: deque[WatchEvent] = deque()
        self._raw: deque[tuple[WatchEvent, JsonObject | None]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._is_lost = False
        if since in _FROM_THE_START:
            for obj in store.list(kind, query):
                version = obj["metadata"]["resourceVersion"]
                self._told.append(WatchEvent(EventType.ADDED, obj, version))
        else:
            self._told.extend(store.since(kind, query, since))
        self._end = store.subscribe(kind, self._on_event)

    def next(self) -> WatchEvent | None:
        """Return the next event that matches the query, None if there is none now."""
        if self._told:
            return self._told.popleft()
        while self._raw:
            event = self._filter.seen(*self._raw.popleft())
            if event is not None:
                return event
        if self._is_lost:
            raise Expired(f"the watch of {self._kind} is too many events behind", status=_GONE)
        return None

    async def wait(self, until: float) -> None:
        """Wait for an event, at most until a time of the loop."""
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_at(until, _wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def close(self) -> None:
        self._end()

    def _on_event(self, event: WatchEvent, before: JsonObject | None) -> None:
        if len(self._raw) < _LAG_MAX and not self._is_lost:
            self._raw.append((event, before))
        else:
            self._is_lost = True
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            _wake(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _bookmark(kind: Kind, version: str) -> WatchEvent:
    obj = {
        "kind": kind.name,
        "apiVersion": kind.api_version,
        "metadata": {"resourceVersion": version, "creationTimestamp": None},
    }
    return WatchEvent(EventType.BOOKMARK, obj, version)
