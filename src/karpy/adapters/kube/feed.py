"""List-then-watch streams that begin again after failures."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, Generic, TypeVar

from msgspec import DecodeError, Raw, Struct, ValidationError

from karpy.adapters.kube.api import IDLE_SECONDS
from karpy.adapters.kube.calls import list_call, watch_call
from karpy.adapters.kube.failures import refusal_in_stream
from karpy.adapters.kube.retry import DICE
from karpy.adapters.kube.transport import Transport
from karpy.adapters.kube.wire import (
    BY_TYPE,
    ERROR,
    Meta,
    bookmark_version,
    decode_event,
    decode_meta,
    decode_object,
    decode_page,
)
from karpy.codec.fields import JsonObject
from karpy.codec.simplifying import simplify
from karpy.errors import AnswerMalformed, ClusterError, CredentialsRefused, Expired, Unreachable
from karpy.model.backoff import Backoff, Dice
from karpy.model.kinds import Kind
from karpy.ports.objects import (
    EVERYTHING,
    Change,
    EventType,
    Query,
    Reader,
    Synced,
    as_unreadable,
)

T = TypeVar("T")

OnUnreadable = Callable[[Kind, str, Exception], None]
"""Called with kind and key of an object that cannot be read, and why; the key may be empty."""
OnTrouble = Callable[[Kind, ClusterError | CredentialsRefused], None]
"""Called with a kind and why its list or watch failed; the feed tries again."""

_OBJECTS_IN_A_ROW: Final = 100
"""Objects decoded before the feed yields to the event loop."""
_STEADY_SECONDS: Final = 5.0
"""A watch that lasts this long counts as a success, even without an event."""
_FAILURES_MAX: Final = 3
"""After this many failures in a row the server may not know the resource version: list again."""


class Pace(Struct, frozen=True):
    """Page size, timeouts and pauses of a feed; times in seconds."""

    page: int = 500
    watch: float = 300.0
    """Shortest `timeoutSeconds` of a watch; a random one up to twice that spreads their ends."""
    idle: float = IDLE_SECONDS
    first_pause: float = 0.5
    longest_pause: float = 8.0
    """Longest pause between tries, so that the feed resumes soon after an outage."""
    dice: Dice = DICE


PACE: Final = Pace()


class KubeFeed:
    """The port Feed, over HTTP: one connection per watched kind."""

    def __init__(
        self,
        transport: Transport,
        *,
        on_unreadable: OnUnreadable = lambda *_: None,
        on_trouble: OnTrouble = lambda *_: None,
        pace: Pace = PACE,
    ) -> None:
        self._transport = transport
        self._on_unreadable = on_unreadable
        self._on_trouble = on_trouble
        self._pace = pace

    async def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncGenerator[Change[T] | Synced, None]:
        delivered = _Delivered(kind, reader, self._on_unreadable)
        stream = _Stream(self._transport, kind, query, self._pace)
        backoff = Backoff(self._pace.first_pause, self._pace.longest_pause, self._pace.dice)
        is_synced = False
        while True:
            try:
                if not stream.version:
                    async with aclosing(stream.relist(delivered)) as changes:
                        async for change in changes:
                            yield change
                    if not is_synced:
                        is_synced = True
                        yield Synced()
                async with aclosing(stream.watch(delivered, backoff)) as changes:
                    async for change in changes:
                        yield change
            except Expired:
                stream.version = ""
                # An expired resource version is normal now and then: list at once, without a pause.
                is_usual = not backoff.failures
                pause = backoff.next_pause()
                pause = 0.0 if is_usual else pause
            except (ClusterError, CredentialsRefused) as error:
                self._on_trouble(kind, error)
                pause = backoff.next_pause()
                if backoff.failures >= _FAILURES_MAX and not isinstance(error, Unreachable):
                    stream.version = ""
            else:
                pause = backoff.next_pause() if stream.has_ended_at_once else 0.0
            await asyncio.sleep(pause)


class _Delivered(Generic[T]):
    """The objects that the feed has delivered, each with its resource version."""

    def __init__(self, kind: Kind, reader: Reader[T], on_unreadable: OnUnreadable) -> None:
        self._kind = kind
        self._reader = reader
        self._on_unreadable = on_unreadable
        self._versions: dict[str, str] = {}

    def meta(self, raw: Raw) -> Meta | None:
        """Return the metadata that identifies an object, or None if it cannot be read."""
        try:
            meta = decode_meta(raw)
        except Exception as error:
            self._on_unreadable(self._kind, "", error)
            return None
        if not meta.name:
            self._on_unreadable(self._kind, "", ValueError("it has no name"))
            return None
        return meta

    def put(self, meta: Meta, raw: Raw) -> Change[T] | None:
        """Record a version of an object; return the change to deliver, or None if it is known."""
        key, version = meta.key, meta.resource_version
        if self._versions.get(key) == version and version:
            return None
        self._versions[key] = version
        try:
            value = self._read(bytes(raw))
        except Exception as error:
            self._on_unreadable(self._kind, key, error)
            return Change(key, None, version, as_unreadable(error, _plain(meta, raw)))
        return Change(key, value, version)

    def drop(self, key: str, version: str) -> Change[T] | None:
        """Record that an object is deleted; return the change to deliver, or None if known."""
        if self._versions.pop(key, None) is None:
            return None
        return Change(key, None, version)

    def _read(self, data: bytes) -> T:
        try:
            return self._reader.from_bytes(data)
        except ValidationError:
            raise
        except (DecodeError, RecursionError):
            return self._reader.from_bytes(simplify(data))

    def vanished(self, seen: set[str]) -> list[str]:
        """List the keys that were delivered and are not in `seen`."""
        return sorted(self._versions.keys() - seen)


class _Stream:
    """The list and the watch of one kind, and the resource version that they have reached."""

    def __init__(self, transport: Transport, kind: Kind, query: Query, pace: Pace) -> None:
        self._transport = transport
        self._kind = kind
        self._query = query
        self._pace = pace
        self._is_paged = True
        self.version = ""
        """Empty if the kind must be listed again."""
        self.has_ended_at_once = False

    async def relist(self, delivered: _Delivered[T]) -> AsyncGenerator[Change[T], None]:
        """List the kind; yield objects that are new or changed, and keys that have vanished."""
        seen: set[str] = set()
        token, is_last, version = "", False, ""
        while not is_last:
            limit = self._pace.page if self._is_paged else 0
            call = list_call(self._kind, self._query, limit=limit, token=token)
            try:
                page = decode_page(call.what, await self._transport.send(call))
            except Expired:
                # The continue token expired while pages were read: list without pages next time.
                self._is_paged = False
                raise
            for number, raw in enumerate(page.items or ()):
                if number % _OBJECTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)
                if (meta := delivered.meta(raw)) is not None:
                    seen.add(meta.key)
                    if (change := delivered.put(meta, raw)) is not None:
                        yield change
            token, version = page.metadata.token, page.metadata.resource_version
            is_last = not token
        for key in delivered.vanished(seen):
            if (change := delivered.drop(key, version)) is not None:
                yield change
        self._is_paged = True
        self.version = version

    async def watch(
        self, delivered: _Delivered[T], backoff: Backoff
    ) -> AsyncGenerator[Change[T], None]:
        """Yield the changes after the last resource version, until the server ends the watch."""
        loop = asyncio.get_running_loop()
        began, count = loop.time(), 0
        self.has_ended_at_once = False
        seconds = int(self._pace.watch * (1 + self._pace.dice()))
        call = watch_call(self._kind, self._query, since=self.version, seconds=max(1, seconds))
        async with aclosing(self._transport.lines(call, self._pace.idle)) as lines:
            async for line in lines:
                event = decode_event(call.what, line)
                if event.type == ERROR:
                    raise refusal_in_stream(call.what, event.object)
                backoff.reset()
                count += 1
                if count % _OBJECTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)
                change = self._take(delivered, BY_TYPE.get(event.type), event.object)
                if change is not None:
                    yield change
        if loop.time() - began >= _STEADY_SECONDS:
            backoff.reset()
        elif not count:
            self.has_ended_at_once = True

    def _take(
        self, delivered: _Delivered[T], event: EventType | None, raw: Raw
    ) -> Change[T] | None:
        if event is None:
            return None
        if event is EventType.BOOKMARK:
            self.version = bookmark_version(raw) or self.version
            return None
        meta = delivered.meta(raw)
        if meta is None:
            return None
        self.version = meta.resource_version or self.version
        if event is EventType.DELETED:
            return delivered.drop(meta.key, meta.resource_version)
        return delivered.put(meta, raw)


def _plain(meta: Meta, raw: Raw) -> JsonObject:
    """Return the decoded object, or its name and namespace if it cannot be decoded."""
    try:
        return decode_object("read an object", raw)
    except AnswerMalformed:
        return {"metadata": {"name": meta.name, "namespace": meta.namespace}}
