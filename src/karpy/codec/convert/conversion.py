"""What a conversion returns: objects of today, and a note on each field that differs."""

from collections import Counter
from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from karpy.codec.comments import Comment
from karpy.codec.fields import JsonObject
from karpy.errors import ManifestInvalid


class FieldChange(Enum):
    """What became of a part of an old manifest."""

    ADDED = "added"
    """The old version implied it; today it must be written."""
    RENAMED = "renamed"
    """It has another name, place or form, and means the same."""
    DROPPED = "dropped"
    """It has no effect any more, so that nothing is lost."""
    LOST = "lost"
    """It had an effect that today's kinds cannot express, or that needs a value only users know."""


class Note(Struct, frozen=True, order=True):
    """What became of one field, and why."""

    where: str
    """The object: `NodePool default`, with file and document."""
    path: str
    """The field in the old manifest."""
    change: FieldChange
    text: str
    """One sentence: what stands there now, and why."""


class Product(Struct, frozen=True):
    """An object of today, with the source text or the comments of its author."""

    value: JsonObject
    text: str = ""
    """The document as its author wrote it; empty if it says something else now."""
    comments: tuple[Comment, ...] = ()


class FileCount(Struct, frozen=True):
    """Numbers of objects of one file, by the result of their conversion."""

    file: str
    converted: int = 0
    """How many objects of the input were changed."""
    unchanged: int = 0
    """How many objects of the input are returned as they are."""
    failed: int = 0
    """How many objects or documents of the input are not returned."""
    changes: Mapping[FieldChange, int] = {}
    """How many fields have each kind of change."""

    @property
    def read(self) -> int:
        return self.converted + self.unchanged + self.failed


class Conversion(Struct, frozen=True):
    """Objects of today, notes on fields that differ, and problems that prevent a conversion."""

    products: tuple[Product, ...] = ()
    notes: tuple[Note, ...] = ()
    problems: tuple[ManifestInvalid, ...] = ()
    files: tuple[FileCount, ...] = ()

    @property
    def objects(self) -> tuple[JsonObject, ...]:
        return tuple(each.value for each in self.products)

    @property
    def total(self) -> FileCount:
        """The sums over all files."""
        return FileCount(
            "",
            sum(each.converted for each in self.files),
            sum(each.unchanged for each in self.files),
            sum(each.failed for each in self.files),
            Counter(each.change for each in self.notes),
        )

    @property
    def repeated(self) -> tuple[str, ...]:
        """Kind and name of objects that occur more than once, as `NodePool default`."""
        names = Counter(map(_name, self.objects))
        return tuple(sorted(name for name, count in names.items() if name and count > 1))

    @property
    def is_lossless(self) -> bool:
        """Whether nothing is lost."""
        return not self.problems and all(each.change is not FieldChange.LOST for each in self.notes)


def _name(obj: JsonObject) -> str:
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not meta.get("name"):
        return ""
    namespace = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{obj.get('kind')} {namespace}{meta['name']}"
