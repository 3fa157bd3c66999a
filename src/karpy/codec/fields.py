"""Plain objects read field by field; faults have a path and a hint."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn, TypeAlias

from karpy.model.requirements import INT64_MAX
from karpy.model.resources import CPU, parse_quantity
from karpy.model.times import parse_duration, parse_moment

JsonObject: TypeAlias = dict[str, Any]
"""An object as `json.loads` returns it."""

_SHORT: Final = 8
"""Most characters of a quantity that is surely smaller than the largest one."""
_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_TEXTS_MAX: Final = 4096
_RESOURCES_MAX: Final = 64
_SHOWN_MAX: Final = 60
_NEVER: Final = "Never"
NO_AMOUNT: Final = (AttributeError, TypeError, ValueError)
"""Exceptions of reading a value that is no quantity."""


class FieldInvalid(ValueError):
    """A field cannot be read; callers turn it into an error that names the file or object."""

    def __init__(self, path: str, problem: str, hint: str) -> None:
        super().__init__(f"`{path}` {problem}" if path else problem)
        self.path = path
        self.problem = problem
        self.hint = hint
        self.others: tuple[FieldInvalid, ...] = ()
        """Other faults of the same object."""

    def within(self, prefix: str) -> "FieldInvalid":
        """Return the error with its path from an enclosing object at `prefix`."""
        if not prefix:
            return self
        path = f"{prefix}.{self.path}" if self.path else prefix
        return FieldInvalid(path, self.problem, self.hint)


class Fields:
    """An object within a document; an absent field and null are the same, as in Kubernetes."""

    __slots__ = ("_key", "_parent", "obj")

    def __init__(self, obj: object, key: str = "", parent: "Fields | None" = None) -> None:
        self._key = key
        self._parent = parent
        if not isinstance(obj, dict):
            raise FieldInvalid(
                self.path, f"is {describe(obj)}, not an object", "write it as `name: value` pairs"
            )
        self.obj: JsonObject = obj

    @property
    def path(self) -> str:
        """The path of this object in its document, as `spec.containers[0]`."""
        above = self._parent.path if self._parent else ""
        if not above or self._key.startswith("["):
            return above + self._key
        return f"{above}.{self._key}" if self._key else above

    def __contains__(self, key: str) -> bool:
        """Say whether the field is there and not null."""
        return self.obj.get(key) is not None

    def fail(self, key: str, problem: str, hint: str) -> NoReturn:
        """Raise the fault of a field; an empty key means the object itself."""
        path = self.path
        if key:
            path = f"{path}{key}" if key.startswith("[") or not path else f"{path}.{key}"
        raise FieldInvalid(path, problem, hint)

    def child(self, key: str) -> "Fields":
        """Return the object of that name, or an empty one."""
        value = self.obj.get(key)
        return Fields({} if value is None else value, key, self)

    def with_field(self, key: str, value: object) -> "Fields":
        """Return a copy with one field changed."""
        return Fields({**self.obj, key: value}, self._key, self._parent)

    def items(self, key: str) -> list[Any]:
        """Return the list of that name, or an empty one."""
        value = self.obj.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(key, f"is {describe(value)}, not a list", "write it as a list, `- ...`")
        return value

    def children(self, key: str) -> Iterator["Fields"]:
        """Walk through a list of objects."""
        for index, each in enumerate(self.items(key)):
            yield Fields(each, f"{key}[{index}]", self)

    def text(self, key: str, default: str = "") -> str:
        value = self.obj.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            self.fail(key, f"is {describe(value)}, not text", text_hint(value))
        return value

    def needed(self, key: str) -> str:
        """Return a text that must be there and not be empty."""
        value = self.text(key)
        if not value:
            self.fail(key, "is missing", f"add `{key}`")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self.items(key)
        for index, each in enumerate(values):
            if not isinstance(each, str):
                what = f"is {describe(each)}, not text"
                self.fail(f"{key}[{index}]", what, text_hint(each))
        return tuple(values)

    def number(self, key: str, default: int | None = None) -> int | None:
        value = self.obj.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, f"is {describe(value)}, not a whole number", "write a whole number")
        if not -INT64_MAX - 1 <= value <= INT64_MAX:
            self.fail(key, "is more than 64 bits hold", "write a smaller number")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self.obj.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail(key, f"is {describe(value)}, not true or false", "write true or false")
        return value

    def choice(self, key: str, known: Collection[str], default: str = "") -> str:
        """Return one of the known words."""
        value = self.text(key, default)
        if value not in known:
            words = ", ".join(sorted(word for word in known if word))
            self.fail(key, f"is `{value}`" if value else "is missing", f"use one of: {words}")
        return value

    def labels(self, key: str) -> dict[str, str]:
        """Return a mapping of text to text."""
        value = self.obj.get(key)
        if value is None:
            return {}
        child = Fields(value, key, self)
        for name, each in child.obj.items():
            if type(name) is not str:
                child.fail("", f"has the key {describe(name)}, not text", f'quote it: `"{name}"`')
            if type(each) is not str:
                child.fail(f"[{name}]", f"is {describe(each)}, not text", text_hint(each))
        return child.obj

    def time(self, key: str) -> datetime | None:
        """Return a moment that is written as in RFC 3339."""
        value = self.text(key)
        if not value:
            return None
        moment = parse_moment(value)
        if moment is None:
            hint = "write it as `2026-01-31T12:00:00Z`"
            self.fail(key, f"is `{shown(value)}`, not a time", hint)
        return moment

    def quantities(self, key: str) -> dict[str, int]:
        """Return amounts by resource name."""
        value = self.obj.get(key)
        if not value:
            return {}
        amounts = read_amounts(value)
        if amounts is None or min(amounts.values()) < 0:
            child = Fields(value, key, self)
            return {name: child.quantity(name) for name in child.obj}
        return amounts

    def quantity(self, name: str) -> int:
        """Return one amount; a number stands for its decimal text."""
        value = self.obj[name]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(name, f"is {describe(value)}, not a quantity", _QUANTITY_HINT)
        try:
            amount = AMOUNTS[name][str(value)]
        except ValueError:
            self.fail(name, f"is `{shown(value)}`, not a quantity", _QUANTITY_HINT)
        if amount < 0:
            hint = "write a quantity of 0 or more"
            self.fail(name, f"is `{shown(value)}`, less than nothing", hint)
        return amount


_QUANTITY_HINT: Final = "write a quantity such as `500m`, `2` or `4Gi`"


class _Texts(dict[str, int]):
    """Amounts of one resource by their text; a look-up reads a new text."""

    __slots__ = ("_resource", "_scale", "_short", "_units", "_width")

    def __init__(self, resource: str) -> None:
        is_cpu = resource == CPU
        self._resource = resource
        self._scale = 1000 if is_cpu else 1
        self._units = {"m": 1} if is_cpu else _UNITS
        self._width = 1 if is_cpu else 2
        self._short = 0 if resource.endswith(".cpu") else _SHORT
        """Texts up to this length are read at once; resources that end in `.cpu` have none."""

    def __missing__(self, text: str) -> int:
        """Read whole numbers of the usual units at once, all others by the model's parser."""
        width = self._width
        unit = self._units.get(text[-width:])
        number = text if unit is None else text[:-width]
        if len(text) <= self._short and number.isdecimal() and text.isascii():
            amount = int(number) * (unit or self._scale)
        else:
            amount = _read_unusual(text, self._resource)
        if len(self) >= _TEXTS_MAX:
            self.clear()
        self[text] = amount
        return amount


class _Amounts(dict[str, _Texts]):
    """Amounts by resource, then by text."""

    def __missing__(self, resource: str) -> _Texts:
        if len(self) >= _RESOURCES_MAX:
            self.clear()
        texts = self[resource] = _Texts(resource)
        return texts


AMOUNTS: Final = _Amounts()
"""Amounts by resource and text; looking up a text that is no amount raises NO_AMOUNT."""
# `lru_cache` would do as well, but takes twice the memory, and time to allocate it.


def read_amounts(quantities: JsonObject) -> dict[str, int] | None:
    """Read quantities that are all written as text; None if one of them is not."""
    try:
        return {name: AMOUNTS[name][text] for name, text in quantities.items()}
    except NO_AMOUNT:
        return None


def _read_unusual(text: str, resource: str) -> int:
    amount = parse_quantity(text, resource)
    # Rounding up must not turn a negative amount into zero.
    is_negative = text.startswith("-") and any(digit in text for digit in "123456789")
    return min(amount, -1) if is_negative else amount


def caught(check: Callable[[], object]) -> Iterator[FieldInvalid]:
    """Yield the fault that a check raises, if it raises one."""
    try:
        check()
    except FieldInvalid as fault:
        yield fault


def describe(value: object) -> str:
    """Describe a value of the wrong type for a message."""
    match value:
        case None:
            return "nothing"
        case bool() | int() | float():
            return f"`{str(value).lower() if isinstance(value, bool) else value}`"
        case str():
            return f"the text `{shown(value)}`"
        case list():
            return "a list"
        case dict():
            return "an object"
    return f"a {type(value).__name__}"


def shown(value: object) -> str:
    """Write the beginning of a value, so that a message stays short."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def text_hint(value: object) -> str:
    """Say what to do about a value that is to be text."""
    if isinstance(value, list | dict | None):
        return "write one text"
    return f'quote it: `"{shown(value)}"`'


def read_duration(fields: Fields, key: str) -> timedelta | None:
    """
    Read a duration as Go writes it, `1h30m`; None if there is none, or it is `Never`.

    A duration beyond Go's longest one, of 292 years, becomes that one.
    """
    text = fields.text(key)
    if not text or text == _NEVER:
        return None
    duration = parse_duration(text, saturates=True)
    if duration is None:
        fields.fail(key, f"is `{shown(text)}`, not a duration", "write it as `1h30m`")
    return duration
