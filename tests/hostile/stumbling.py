"""A feed with an object that makes its reader run out of stack."""

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from karpy.ports.objects import EVERYTHING, Change, Feed, Query, Reader, Synced

T = TypeVar("T")


class Stumbling:
    """Tells everything as usual, but that one object cannot be read."""

    def __init__(self, feed: Feed, name: str) -> None:
        self._feed = feed
        self._name = name

    def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[T] | Synced]:
        """Tell everything as usual, but for objects of that name."""
        return self._feed.follow(kind, _StumblingReader(reader, self._name), query)


class _StumblingReader(Generic[T]):
    def __init__(self, reader: Reader[T], name: str) -> None:
        self._reader = reader
        self._name = name

    def from_object(self, obj: JsonObject) -> T:
        if obj["metadata"]["name"] == self._name:
            raise RecursionError
        return self._reader.from_object(obj)

    def from_bytes(self, data: bytes) -> T:
        return self._reader.from_bytes(data)
