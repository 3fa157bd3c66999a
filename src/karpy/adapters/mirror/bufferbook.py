"""CapacityBuffers and the objects they refer to, as watches deliver them: their virtual pods."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.json import Decoder

from karpy.adapters.mirror.records import FieldReader, OnFailure, Shelf, raise_at_once
from karpy.barriers import Barrier
from karpy.codec.buffers import read_buffer_record, read_pod_source
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.pods import PodReader
from karpy.core.buffers import SOURCES, allow, pods_wanted, room_of
from karpy.errors import NotFound
from karpy.model.buffers import BufferRecord, PodSource
from karpy.model.kinds import CAPACITY_BUFFER, Kind
from karpy.model.pods import Pod
from karpy.ports.clock import Clock
from karpy.ports.objects import Feed, Follow, Reader, Synced
from karpy.ports.records import Kept

_AGAIN_SECONDS: Final = 30.0
"""Seconds until a kind whose CRD is not installed is listed again."""
_decoder: Final = Decoder()


class _Room(Struct, frozen=True):
    """The virtual pods of a buffer, and the state that they were derived from."""

    uid: str
    generation: int
    source: PodSource | None
    allowed: int
    pods: tuple[Pod, ...]


class BufferBook:
    """
    The port Buffers on top of a Feed.

    The virtual pods of a buffer are derived from its specification, not from its status, so that a
    new leader has them for its first decision.
    """

    def __init__(self, feed: Feed, clock: Clock, on_failure: OnFailure = raise_at_once) -> None:
        self._feed = feed
        self._on_failure = on_failure
        self._clock = clock
        self.buffers: Shelf[Kept[BufferRecord]] = Shelf()
        self.sources: Mapping[str, Shelf[PodSource]] = {kind.name: Shelf() for kind in SOURCES}
        self._rooms: dict[str, _Room] = {}
        """Virtual pods of each buffer, by key."""
        self._allowed: Mapping[str, int] = {}
        self._allowed_at: tuple[int, ...] = ()
        """The versions of the shelves from which `_allowed` was computed."""
        shelves: list[Shelf[Any]] = [self.buffers, *self.sources.values()]
        for shelf in shelves:
            shelf.on_failure = on_failure
        self._news = asyncio.Event()
        self.buffers.listen(self._on_buffer)

    async def run(self) -> None:
        """Watch buffers and the objects that they may refer to, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name, follow in self.follows():
                tasks.create_task(follow(), name=name)

    def follows(self) -> Iterator[tuple[str, Follow]]:
        """Return the watch of each kind with its name; each may fail and be started again."""
        pods, kind = PodReader(), CAPACITY_BUFFER
        yield "buffers.capacitybuffer", partial(self._follow, kind, self.buffers, _BufferReader())
        for kind in SOURCES:
            reader = source_reader(kind, pods)
            yield (
                f"buffers.{kind.name.lower()}",
                partial(self._follow, kind, self.sources[kind.name], reader),
            )

    @property
    def is_listed(self) -> bool:
        """Whether every kind has been listed."""
        is_known = all(shelf.is_synced for shelf in self.sources.values())
        return is_known and self.buffers.is_synced

    async def wait_until_listed(self) -> None:
        """Return once every kind is listed."""
        while not self.is_listed:
            self._news.clear()
            await self._news.wait()

    def note_absent(self, kind: Kind) -> None:
        """Count CapacityBuffers as listed, because their CRD is not installed."""
        if kind == CAPACITY_BUFFER:
            self._sync(self.buffers)

    def virtual_pods(self) -> tuple[Pod, ...]:
        """Return the virtual pods of all buffers."""
        rooms: list[tuple[Pod, ...]] = []
        for key in self.buffers.values:
            with Barrier(partial(self._on_failure, key)):
                rooms.append(self.room_of(key))
        return tuple(chain.from_iterable(rooms))

    def allowed_of(self, key: str) -> int:
        """Return how many virtual pods a CapacityBuffer may have, considering all other buffers."""
        versions = (self.buffers.version, *(each.version for each in self.sources.values()))
        if versions != self._allowed_at:
            wanted = {}
            for name, kept in self.buffers.values.items():
                with Barrier(partial(self._on_failure, name)):
                    wanted[name] = pods_wanted(kept.record, self._source_of(kept.record))
            self._allowed, self._allowed_at = allow(wanted), versions
        return self._allowed.get(key, 0)

    def room_of(self, key: str) -> tuple[Pod, ...]:
        """Return the virtual pods of a CapacityBuffer, the same tuple until it changes."""
        kept = self.buffers.get(key)
        if kept is None:
            return ()
        source, allowed = self._source_of(kept.record), self.allowed_of(key)
        uid, generation = kept.record.meta.uid, kept.record.meta.generation
        known = self._rooms.get(key)
        facts = (uid, generation, allowed)
        is_known = known is not None and (known.uid, known.generation, known.allowed) == facts
        if known is None or not is_known or known.source is not source:
            pods = room_of(kept.record, source, self._clock.now(), allowed)
            known = self._rooms[key] = _Room(uid, generation, source, allowed, pods)
        return known.pods

    def _source_of(self, buffer: BufferRecord) -> PodSource | None:
        kind, name = buffer.source
        shelf = self.sources.get(kind)
        return None if shelf is None else shelf.get(name)

    def _on_buffer(
        self, key: str, before: Kept[BufferRecord] | None, after: Kept[BufferRecord] | None
    ) -> None:
        del before
        if after is None:
            self._rooms.pop(key, None)

    async def _follow(self, kind: Kind, shelf: Shelf[Any], reader: Reader[Any]) -> None:
        while True:
            # A feed reports deletions that happen while it runs, not earlier ones: whatever the
            # first list lacks is gone.
            left = set(shelf.values)
            try:
                async for change in self._feed.follow(kind, reader):
                    if isinstance(change, Synced):
                        for key in sorted(left):
                            shelf.put(key, None)
                        left.clear()
                        self._sync(shelf)
                        continue
                    left.discard(change.key)
                    with Barrier(partial(self._on_failure, change.key)):
                        shelf.take(change)
            except NotFound:
                self.note_absent(kind)
            await asyncio.sleep(_AGAIN_SECONDS)

    def _sync(self, shelf: Shelf[Any]) -> None:
        shelf.is_synced = True
        self._news.set()


class _BufferReader:
    """Reads buffers, and keeps the object as it was delivered."""

    def from_object(self, obj: JsonObject) -> Kept[BufferRecord]:
        return Kept(read_buffer_record(Fields(obj)), obj)

    def from_bytes(self, data: bytes) -> Kept[BufferRecord]:
        return self.from_object(_decoder.decode(data))


def source_reader(kind: Kind, pods: PodReader) -> FieldReader[PodSource]:
    """Return a reader of the objects of one kind that CapacityBuffers may refer to."""
    return FieldReader(lambda fields: read_pod_source(fields, kind.name, pods))
