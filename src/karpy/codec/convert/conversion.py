"""What a conversion returns: objects of today, and what became of each field that differs."""

from enum import Enum

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.errors import ManifestInvalid


class Change(Enum):
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
    change: Change
    text: str
    """One sentence: what stands there now, and why."""


class Conversion(Struct, frozen=True):
    """Objects of today, what became of fields that differ, and what cannot be converted at all."""

    objects: tuple[JsonObject, ...] = ()
    notes: tuple[Note, ...] = ()
    problems: tuple[ManifestInvalid, ...] = ()
    converted: int = 0
    """How many objects of the input are others today."""
    unchanged: int = 0
    """How many objects of the input are returned as they are."""
    failed: int = 0
    """How many objects or documents of the input are not among those returned."""

    @property
    def is_lossless(self) -> bool:
        """Whether nothing is lost."""
        return not self.problems and all(each.change is not Change.LOST for each in self.notes)


def join(*parts: Conversion) -> Conversion:
    """Return several conversions as one, in their order."""
    return Conversion(
        tuple(each for part in parts for each in part.objects),
        tuple(each for part in parts for each in part.notes),
        tuple(each for part in parts for each in part.problems),
        sum(part.converted for part in parts),
        sum(part.unchanged for part in parts),
        sum(part.failed for part in parts),
    )
