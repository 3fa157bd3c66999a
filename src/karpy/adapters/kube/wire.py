"""What comes over the wire, decoded no further than needed."""

from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from karpy.codec.fields import JsonObject
from karpy.codec.simplifying import simplify
from karpy.errors import AnswerMalformed
from karpy.ports.objects import EventType

T = TypeVar("T")

BY_TYPE: Final = {each.value: each for each in EventType}
ERROR: Final = "ERROR"


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    token: str = field(default="", name="continue")
    remaining_item_count: int | None = None


class ListPage(Struct):
    """A page of a list whose objects are still bytes."""

    metadata: _ListMeta
    items: list[Raw] | None = None


class PlainPage(Struct):
    """A page of a list."""

    metadata: _ListMeta
    items: list[JsonObject] | None = None


class RawEvent(Struct):
    """A line of a watch whose object is still bytes."""

    type: str
    object: Raw


class Meta(Struct, rename="camel", gc=False):
    """What tells one object from another, and one state of it from the next."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Head(Struct, gc=False):
    """The beginning of every object."""

    metadata: Meta


_pages: Final = msgspec.json.Decoder(ListPage)
_plain_pages: Final = msgspec.json.Decoder(PlainPage)
_events: Final = msgspec.json.Decoder(RawEvent)
_objects: Final = msgspec.json.Decoder(JsonObject)
_heads: Final = msgspec.json.Decoder(_Head)


def decode_page(what: str, body: bytes) -> ListPage:
    """Read a page, its objects left as bytes."""
    try:
        return _decoded(_pages, body)
    except msgspec.DecodeError as error:
        raise _malformed(what, "a list", error) from error


def decode_plain_page(what: str, body: bytes) -> PlainPage:
    """Read a page with its objects."""
    try:
        return _decoded(_plain_pages, body)
    except msgspec.DecodeError as error:
        raise _malformed(what, "a list", error) from error


def decode_event(what: str, line: bytes) -> RawEvent:
    """Read a line of a watch, its object left as bytes."""
    try:
        return _decoded(_events, line)
    except msgspec.DecodeError as error:
        raise _malformed(what, "an event", error) from error


def decode_object(what: str, body: bytes | Raw) -> JsonObject:
    """Read an object."""
    try:
        return _decoded(_objects, body)
    except msgspec.DecodeError as error:
        raise _malformed(what, "an object", error) from error


def decode_meta(raw: Raw) -> Meta:
    """Read what identifies an object; raise DecodeError if nothing does."""
    return _decoded(_heads, raw).metadata


def bookmark_version(raw: Raw) -> str:
    """Return the version of a bookmark; empty if it has none."""
    try:
        return decode_meta(raw).resource_version
    except msgspec.DecodeError:
        return ""


def _decoded(decoder: msgspec.json.Decoder[T], data: bytes | Raw) -> T:
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, RecursionError):
        # The API server takes objects that are nested deeper than a decoder's stack.
        return decoder.decode(simplify(bytes(data)))


def _malformed(what: str, wanted: str, error: msgspec.DecodeError) -> AnswerMalformed:
    return AnswerMalformed(f"cannot {what}: the answer is not {wanted}: {error}")
