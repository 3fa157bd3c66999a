"""Fields of an old manifest: each is taken once, and each that is left over gets a note."""

from collections.abc import Callable, Container, Iterator
from difflib import get_close_matches
from typing import Concatenate, Final, NoReturn, ParamSpec, TypeVar

from karpy.codec.convert.conversion import FieldChange, Note
from karpy.codec.fields import FieldInvalid, JsonObject, describe, text_hint
from karpy.codec.objectmeta import label_hint
from karpy.codec.placeholders import placeholder_faults

P = ParamSpec("P")
T = TypeVar("T")

_NEAR: Final = 0.75
_UNKNOWN: Final = "the old version has no such field, so that it had no effect"
_MISSPELT: Final = "is no field of the old version, so that it had no effect"


class Notes:
    """Collects notes, problems and faults during the conversion of one object."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.all: list[Note] = []
        self.problems: list[FieldInvalid] = []
        """Faults that the old version refuses, in an object that is converted nevertheless."""
        self.faults: list[FieldInvalid] = []
        """Faults that prevent the conversion."""

    def add(self, change: FieldChange, path: str, text: str) -> None:
        self.all.append(Note(self.where, path, change, text))


class OldFields:
    """An object within an old manifest; an absent field and null are the same."""

    def __init__(self, obj: object, path: str, notes: Notes) -> None:
        if not isinstance(obj, dict):
            problem, hint = f"is {describe(obj)}, not an object", "write it as `name: value` pairs"
            raise _unfilled(obj, path) or FieldInvalid(path, problem, hint)
        self.obj: JsonObject = obj
        self.path = path
        self.notes = notes
        self._left = [key for key, value in obj.items() if value is not None]
        self._known: set[str] = set()
        """The names that were looked up, whether or not there is such a field."""

    def __contains__(self, key: str) -> bool:
        self._known.add(key)
        return self.obj.get(key) is not None

    def path_of(self, key: str) -> str:
        return path_of(self.path, key)

    def is_left(self, key: str) -> bool:
        """Say whether a field is present and not yet converted."""
        return key in self._left

    def take(self, key: str) -> object:
        """Return a field, and mark it as converted."""
        self._known.add(key)
        if key in self._left:
            self._left.remove(key)
        return self.obj.get(key)

    def text(self, key: str) -> str:
        value = self.take(key)
        if value is not None and not isinstance(value, str):
            self.fail(key, f"is {describe(value)}, not text", text_hint(value))
        return value or ""

    def switch(self, key: str) -> bool:
        """Return a truth value; what is not there is false."""
        value = self.take(key)
        if value is not None and not isinstance(value, bool):
            self.fail(key, f"is {describe(value)}", "write `true` or `false`")
        return bool(value)

    def child(self, key: str) -> "OldFields":
        """Return the object of that name, or an empty one."""
        value = self.take(key)
        return OldFields({} if value is None else value, self.path_of(key), self.notes)

    def tried_child(self, key: str) -> "OldFields":
        """Return the object of that name; if it is none, keep the fault and return an empty one."""
        empty = OldFields({}, self.path_of(key), self.notes)
        return self.tried(empty, OldFields.child, key)

    def texts(self, key: str) -> dict[str, str]:
        """Return a mapping of text to text; numbers and truth values stand for their text."""
        child = self.child(key)
        return {str(name): child.one_text(name, each) for name, each in child.obj.items()}

    def amounts(self, key: str) -> JsonObject:
        """Return quantities by resource: whole numbers as they are, all else as text."""
        child = self.child(key)
        return {
            name: each if type(each) is int else child.one_text(name, each)
            for name, each in child.obj.items()
        }

    def one_text(self, key: str, value: object) -> str:
        """Return a value as the text that was meant; fail for a list or an object."""
        if isinstance(value, list | dict):
            self.fail(str(key), f"is {describe(value)}, not text", text_hint(value))
        return as_text(value)

    def children(self, key: str) -> Iterator["OldFields"]:
        """Walk through a list of objects."""
        value = self.take(key)
        if value is not None and not isinstance(value, list):
            self.fail(key, f"is {describe(value)}, not a list", "write it as a list, `- ...`")
        for index, each in enumerate(value or ()):
            yield OldFields(each, f"{self.path_of(key)}[{index}]", self.notes)

    def carry(self, *keys: str) -> JsonObject:
        """Return the fields of these names that are there, as they are."""
        return {key: self.take(key) for key in keys if key in self}

    def tried(
        self,
        otherwise: T,
        read: Callable[Concatenate["OldFields", P], T],
        *args: P.args,
        **more: P.kwargs,
    ) -> T:
        """Return what `read` returns; on a fault, keep it and return `otherwise`."""
        try:
            return read(self, *args, **more)
        except FieldInvalid as fault:
            self.notes.faults += [fault, *fault.others]
            return otherwise

    def note(self, change: FieldChange, key: str, text: str) -> None:
        self.notes.add(change, self.path_of(key), text)

    def drop(self, key: str, text: str) -> None:
        """Leave a field out, and say why, if it is there."""
        is_left = key in self._left
        self.take(key)
        if is_left:
            self.note(FieldChange.DROPPED, key, text)

    def drop_rest(self, elsewhere: Container[str] | None = None) -> None:
        """
        Note the fields that are left over: the old version has none of these names.

        `elsewhere` are the field names of other kinds; any other name is most likely a label.
        """
        for key in tuple(self._left):
            near = get_close_matches(str(key), self._known, 1, _NEAR)
            is_label = (
                elsewhere is not None
                and key not in elsewhere
                and not isinstance(self.obj[key], dict | list)
            )
            if near or is_label:
                self._left.remove(key)
                hint = label_hint(str(key))
                self.add_problem(
                    key, _MISSPELT, f"write `{near[0]}`, or remove it" if near else hint
                )
            else:
                self.drop(key, _UNKNOWN)

    def add_problem(self, key: str, problem: str, hint: str) -> None:
        """Add a problem that the old version refuses; the object is converted nevertheless."""
        self.notes.problems.append(FieldInvalid(self.path_of(key), problem, hint))

    def fail(self, key: str, problem: str, hint: str) -> NoReturn:
        """Raise the fault of a field; for a placeholder, that it is not filled in."""
        path = self.path_of(key)
        raise _unfilled(self.obj.get(key), path) or FieldInvalid(path, problem, hint)


def _unfilled(value: object, path: str) -> FieldInvalid | None:
    faults = placeholder_faults(value, path) if isinstance(value, str) else iter(())
    return next(faults, None)


def path_of(above: str, key: str) -> str:
    """Return the path of a field, or of a path below; a name that has a domain is in brackets."""
    if not key:
        return above
    name = f"[{key}]" if "/" in key and not key.endswith("]") else f".{key}"
    return f"{above}{name}".removeprefix(".")


def as_text(value: object) -> str:
    """Write a number or a truth value as the text that was meant; nothing is empty text."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
