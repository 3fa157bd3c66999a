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
"""Called with why a kind cannot be followed right now; that is tried again."""

_OBJECTS_IN_A_ROW: Final = 100
"""So many objects are read before others on the loop get their turn."""
_STEADY_SECONDS: Final = 5.0
"""A watch that lasted this long was a good one, though nothing happened."""
_FAILURES_MAX: Final = 3
"""A server that answers so often with a fault may not know our version: list everything anew."""


class Pace(Struct, frozen=True):
    """How a feed goes about it; times are seconds."""

    page: int = 500
    watch: float = 300.0
    """How long one watch is asked for at least; up to twice that, so that not all end at once."""
    idle: float = IDLE_SECONDS
    first_pause: float = 0.5
    longest_pause: float = 8.0
    """A fault of the server may last; work goes on soon after its end."""
    dice: Dice = DICE


PACE: Final = Pace()


class KubeFeed:
    """The port Feed, over HTTP: one connection per kind that is followed."""

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
        told = _Told(kind, reader, self._on_unreadable)
        stream = _Stream(self._transport, kind, query, self._pace)
        backoff = Backoff(self._pace.first_pause, self._pace.longest_pause, self._pace.dice)
        is_synced = False
        while True:
            try:
                if not stream.version:
                    async with aclosing(stream.relist(told)) as changes:
                        async for change in changes:
                            yield change
                    if not is_synced:
                        is_synced = True
                        yield Synced()
                async with aclosing(stream.watch(told, backoff)) as changes:
                    async for change in changes:
                        yield change
            except Expired:
                stream.version = ""
                # Now and then this is the usual course of things, and no reason to wait.
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


class _Told(Generic[T]):
    """What the follower knows: which objects, and as of which version each."""

    def __init__(self, kind: Kind, reader: Reader[T], on_unreadable: OnUnreadable) -> None:
        self._kind = kind
        self._reader = reader
        self._on_unreadable = on_unreadable
        self._versions: dict[str, str] = {}

    def meta(self, raw: Raw) -> Meta | None:
        """Return what identifies an object, or None if nothing does."""
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
        """Take down how an object is now; return what the follower must know."""
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
        """Take down that an object is gone; return what the follower must know."""
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
        """List the keys that were told and are not among those seen."""
        return sorted(self._versions.keys() - seen)


class _Stream:
    """The place in the server's history up to which everything was told."""

    def __init__(self, transport: Transport, kind: Kind, query: Query, pace: Pace) -> None:
        self._transport = transport
        self._kind = kind
        self._query = query
        self._pace = pace
        self._is_paged = True
        self.version = ""
        """Empty means that everything must be listed."""
        self.has_ended_at_once = False

    async def relist(self, told: _Told[T]) -> AsyncGenerator[Change[T], None]:
        """Tell what is new, what has changed and what has vanished."""
        seen: set[str] = set()
        token, is_last, version = "", False, ""
        while not is_last:
            limit = self._pace.page if self._is_paged else 0
            call = list_call(self._kind, self._query, limit=limit, token=token)
            try:
                page = decode_page(call.what, await self._transport.send(call))
            except Expired:
                # Reading the pages took longer than the server remembers: take all at once.
                self._is_paged = False
                raise
            for number, raw in enumerate(page.items or ()):
                if number % _OBJECTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)
                if (meta := told.meta(raw)) is not None:
                    seen.add(meta.key)
                    if (change := told.put(meta, raw)) is not None:
                        yield change
            token, version = page.metadata.token, page.metadata.resource_version
            is_last = not token
        for key in told.vanished(seen):
            if (change := told.drop(key, version)) is not None:
                yield change
        self._is_paged = True
        self.version = version

    async def watch(self, told: _Told[T], backoff: Backoff) -> AsyncGenerator[Change[T], None]:
        """Tell what happens from the last version on, until the server ends the watch."""
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
                change = self._take(told, BY_TYPE.get(event.type), event.object)
                if change is not None:
                    yield change
        if loop.time() - began >= _STEADY_SECONDS:
            backoff.reset()
        elif not count:
            self.has_ended_at_once = True

    def _take(self, told: _Told[T], event: EventType | None, raw: Raw) -> Change[T] | None:
        if event is None:
            return None
        if event is EventType.BOOKMARK:
            self.version = bookmark_version(raw) or self.version
            return None
        meta = told.meta(raw)
        if meta is None:
            return None
        self.version = meta.resource_version or self.version
        if event is EventType.DELETED:
            return told.drop(meta.key, meta.resource_version)
        return told.put(meta, raw)


def _plain(meta: Meta, raw: Raw) -> JsonObject:
    """Return an object as far as it can be decoded: its name at least."""
    try:
        return decode_object("read an object", raw)
    except AnswerMalformed:
        return {"metadata": {"name": meta.name, "namespace": meta.namespace}}
