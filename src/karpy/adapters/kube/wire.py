"""Answers of an API server, decoded no further than needed."""

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
    """A page of a list whose objects are not yet decoded."""

    metadata: _ListMeta
    items: list[Raw] | None = None


class PlainPage(Struct):
    """A page of a list with decoded objects."""

    metadata: _ListMeta
    items: list[JsonObject] | None = None


class RawEvent(Struct):
    """An event of a watch whose object is not yet decoded."""

    type: str
    object: Raw


class Meta(Struct, rename="camel", gc=False):
    """The metadata that identifies an object and its version."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Head(Struct, gc=False):
    """The part of an object that identifies it."""

    metadata: Meta


_pages: Final = msgspec.json.Decoder(ListPage)
_plain_pages: Final = msgspec.json.Decoder(PlainPage)
_events: Final = msgspec.json.Decoder(RawEvent)
_objects: Final = msgspec.json.Decoder(JsonObject)
_heads: Final = msgspec.json.Decoder(_Head)


def decode_page(what: str, body: bytes) -> ListPage:
    """Decode a page, but not its objects."""
    try:
        return _decoded(_pages, body)
    except msgspec.DecodeError as error:
        raise _malformed(what, "a list", error) from error


def decode_plain_page(what: str, body: bytes) -> PlainPage:
    """Decode a page and its objects."""
    try:
        return _decoded(_plain_pages, body)
    except msgspec.DecodeError as error:
        raise _malformed(what, "a list", error) from error


def decode_event(what: str, line: bytes) -> RawEvent:
    """Decode an event of a watch, but not its object."""
    try:
        return _decoded(_events, line)
    except msgspec.DecodeError as error:
        raise _malformed(what, "an event", error) from error


def decode_object(what: str, body: bytes | Raw) -> JsonObject:
    """Decode an object."""
    try:
        return _decoded(_objects, body)
    except msgspec.DecodeError as error:
        raise _malformed(what, "an object", error) from error


def decode_meta(raw: Raw) -> Meta:
    """Decode the metadata that identifies an object; raise DecodeError if it has none."""
    return _decoded(_heads, raw).metadata


def bookmark_version(raw: Raw) -> str:
    """Return the resource version of a bookmark; empty if it has none."""
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
        # The API server accepts objects that are nested deeper than a decoder's stack.
        return decoder.decode(simplify(bytes(data)))


def _malformed(what: str, wanted: str, error: msgspec.DecodeError) -> AnswerMalformed:
    return AnswerMalformed(f"cannot {what}: the answer is not {wanted}: {error}")
