"""The objects within documents: one, the items of a List, or of a plain JSON array."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.comments import Comment, Path, comments_in, within
from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.oldfields import Notes, path_of
from karpy.codec.documents import Document
from karpy.codec.fields import FieldInvalid, JsonObject, describe
from karpy.codec.treefiles import PATCH_HINT, is_patch

_LIST: Final = "List"
_QUOTES: Final = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u2018\u2019"
"""Typographic quotation marks, as word processors and web pages write them."""


class Found(Struct, frozen=True):
    """An object of the input, and where it is."""

    file: str
    where: str
    value: JsonObject
    path: str = ""
    """The path of the value, if it is a part of an object."""
    text: str = ""
    """The document as it is written, if the object is the whole of it."""
    comments: tuple[Comment, ...] = ()

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


def objects_in(
    document: Document, *, with_comments: bool = False
) -> Iterator[Found | FieldInvalid]:
    """Return the objects of a document, and a fault for each value that is no object."""
    if is_patch(document.value):
        yield FieldInvalid("", "is a patch, not an object", PATCH_HINT)
        return
    comments = comments_in(document.text) if with_comments else ()
    for steps, value in _values(document.value, ()):
        path = _shown(steps)
        if not isinstance(value, dict):
            what = f"is {describe(value)}, not an object"
            yield FieldInvalid(path, what, "write it as `name: value` pairs")
            continue
        found = Found(
            document.file,
            document.where,
            value,
            text="" if steps else document.text,
            comments=within(comments, steps),
        )
        place = f" {path}" if path else ""
        name = f"{found.kind} {found.name}".strip()
        where = f"{document.where}{place}, {name}" if name else f"{document.where}{place}"
        yield replace(found, where=where)


def _values(value: object, steps: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _values(each, (*steps, index))
        return
    kind = _text(value.get("kind")) if isinstance(value, dict) else ""
    items = value.get("items") if isinstance(value, dict) else None
    if not kind.endswith(_LIST) or not isinstance(items, list) or not isinstance(value, dict):
        yield steps, value
        return
    head = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix(_LIST)}
    for index, each in enumerate(items):
        whole = {**head, **each} if isinstance(each, dict) and head["kind"] else each
        yield from _values(whole, (*steps, "items", index))


def _shown(steps: Path) -> str:
    """Write a path as in `items[0]`."""
    text = "".join(f".{each}" if isinstance(each, str) else f"[{each}]" for each in steps)
    return text.removeprefix(".")


def has_smart_quotes(value: JsonObject) -> bool:
    """Say whether a manifest comes from a web page, which its kind or version shows."""
    heads = (value.get(key) for key in ("apiVersion", "kind"))
    return any(isinstance(each, str) and _plain(each) != each for each in heads)


def without_smart_quotes(value: JsonObject, path: str, notes: Notes) -> JsonObject:
    """Remove typographic quotation marks, which YAML takes for a part of the text."""
    return {
        _plain(str(key)): _without(each, path_of(path, str(key)), notes)
        for key, each in value.items()
    }


def _without(value: object, path: str, notes: Notes) -> object:
    match value:
        case str():
            plain = _plain(value)
            if plain != value:
                text = f"`{plain}`: quotation marks of a web page are a part of the text in YAML"
                notes.add(FieldChange.RENAMED, path, text)
            return plain
        case list():
            return [_without(each, f"{path}[{index}]", notes) for index, each in enumerate(value)]
        case dict():
            return without_smart_quotes(value, path, notes)
    return value


def _plain(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES
    return text[1:-1] if is_quoted else text


def _text(value: object) -> str:
    return _plain(value) if isinstance(value, str) else ""
