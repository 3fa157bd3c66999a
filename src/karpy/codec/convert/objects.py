"""The objects within documents: one, the items of a List, or of a plain JSON array."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from karpy.codec.convert.conversion import Change
from karpy.codec.convert.oldfields import Notes
from karpy.codec.documents import Document
from karpy.codec.fields import FieldInvalid, JsonObject, describe

_LIST: Final = "List"
_QUOTES: Final = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u2018\u2019"
"""What word processors and web pages make of quotation marks."""


class Found(Struct, frozen=True):
    """An object of the input, and where it is."""

    file: str
    where: str
    value: JsonObject
    path: str = ""
    """Where the value is, if it is a part of an object."""

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return _text(self.value.get("apiVersion"))

    @property
    def kind(self) -> str:
        return _text(self.value.get("kind"))

    @property
    def name(self) -> str:
        meta = self.value.get("metadata")
        return _text(meta.get("name")) if isinstance(meta, dict) else ""


def objects_in(document: Document) -> Iterator[Found | FieldInvalid]:
    """Find the objects of a document; what is none is a problem of its own."""
    for path, value in _values(document.value, ""):
        if not isinstance(value, dict):
            what = f"is {describe(value)}, not an object"
            yield FieldInvalid(path, what, "write it as `name: value` pairs")
            continue
        found = Found(document.file, document.where, value)
        place = f" {path}" if path else ""
        name = f"{found.kind} {found.name}".strip()
        where = f"{document.where}{place}, {name}" if name else f"{document.where}{place}"
        yield Found(document.file, where, value)


def _values(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _values(each, f"{path}[{index}]")
        return
    kind = _text(value.get("kind")) if isinstance(value, dict) else ""
    items = value.get("items") if isinstance(value, dict) else None
    if not kind.endswith(_LIST) or not isinstance(items, list) or not isinstance(value, dict):
        yield path, value
        return
    head = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix(_LIST)}
    for index, each in enumerate(items):
        whole = {**head, **each} if isinstance(each, dict) and head["kind"] else each
        yield from _values(whole, f"{path}{'.' if path else ''}items[{index}]")


def without_smart_quotes(value: object, path: str, notes: Notes) -> object:
    """Take off the quotation marks of a web page, which YAML does not know, from texts."""
    match value:
        case str():
            plain = _plain(value)
            if plain != value:
                told = f"`{plain}`: quotation marks of a web page are a part of the text in YAML"
                notes.add(Change.RENAMED, path, told)
            return plain
        case list():
            return [
                without_smart_quotes(each, f"{path}[{index}]", notes)
                for index, each in enumerate(value)
            ]
        case dict():
            return {
                _plain(key) if isinstance(key, str) else key: without_smart_quotes(
                    each, f"{path}.{key}" if path else str(key), notes
                )
                for key, each in value.items()
            }
    return value


def _plain(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES
    return text[1:-1] if is_quoted else text


def _text(value: object) -> str:
    return _plain(value) if isinstance(value, str) else ""
