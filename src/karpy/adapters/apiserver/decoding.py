"""Checks JSON objects against the built-in types, with the errors of Go's decoder."""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from karpy.adapters.apiserver.shapes import LIST, MAP, Shape, shapes
from karpy.codec.fields import JsonObject

_QUANTITY: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+|[KMGTPE]i|[numkMGTPE]?)")
_QUANTITY_RULE: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_TIME_RULE: Final = "2006-01-02T15:04:05Z07:00"
_RANGES: Final = {"int32": 2**31, "int64": 2**63}
_GO_SCALARS: Final = {"double": "float64", "bytes": "[]uint8", "object": "map[string]interface {}"}


class Mismatch(ValueError):
    """A value does not fit its type; the text is that of Go's decoder."""


class Decoder:
    """
    Reads objects of a type; unknown fields are dropped and listed in `unknown`.

    A patch may hold nulls, which delete fields, and directives, which begin with a dollar sign.
    """

    def __init__(self, *, is_patch: bool = False) -> None:
        self.unknown: list[str] = []
        self._is_patch = is_patch

    def read(self, value: object, shape: Shape, at: str = "") -> JsonObject:
        """Return an object, or a part of one, without unknown fields; raise Mismatch."""
        if not isinstance(value, dict):
            name = shape.name.rpartition(".")[2]
            msg = f"json: cannot unmarshal {_go_value(value)} into Go value of type v1.{name}"
            raise Mismatch(msg)
        return self._fields(value, shape, _Place("", at, at))

    def _fields(self, value: JsonObject, shape: Shape, place: "_Place") -> JsonObject:
        made: JsonObject = {}
        owner = shape.name.rpartition(".")[2]
        for key, each in value.items():
            field = shape.fields.get(key)
            if field is not None:
                if each is not None or self._is_patch:
                    made[key] = self._value(each, field.type, place.child(owner, key))
            elif self._is_patch and str(key).startswith("$"):
                made[key] = each
            else:
                self.unknown.append(place.child(owner, key).shown)
        return made

    def _value(self, value: object, type_: str, place: "_Place") -> object:
        if value is None:
            return "" if type_ == "string" and not self._is_patch else None
        if type_.startswith(LIST):
            if not isinstance(value, list):
                raise _mismatch(value, type_, place)
            return [
                self._value(each, type_[2:], place.item(index)) for index, each in enumerate(value)
            ]
        if type_.startswith(MAP):
            if not isinstance(value, dict):
                raise _mismatch(value, type_, place)
            return {
                str(key): self._value(each, type_[2:], place.child("", key))
                for key, each in value.items()
            }
        read = _SCALARS.get(type_)
        if read is not None:
            return read(value, type_, place)
        if not isinstance(value, dict):
            raise _mismatch(value, type_, place)
        return self._fields(value, shapes()[type_], place)


class _Place:
    """The place of a value: its path for messages, and Go's name of its field."""

    __slots__ = ("owner", "path", "shown")

    def __init__(self, owner: str, path: str, shown: str) -> None:
        self.owner = owner
        self.path = path
        self.shown = shown

    def child(self, owner: str, key: object) -> "_Place":
        path = f"{self.path}.{key}" if self.path else str(key)
        shown = f"{self.shown}.{key}" if self.shown else str(key)
        return _Place(owner or self.owner, path, shown)

    def item(self, index: int) -> "_Place":
        return _Place(self.owner, self.path, f"{self.shown}[{index}]")


def _text(value: object, type_: str, place: _Place) -> object:
    if not isinstance(value, str):
        raise _mismatch(value, type_, place)
    return value


def _bytes(value: object, type_: str, place: _Place) -> object:
    text = str(_text(value, type_, place))
    try:
        b64decode(text, validate=True)
    except binascii.Error as error:
        msg = f"illegal base64 data in {place.shown}"
        raise Mismatch(msg) from error
    return text


def _boolean(value: object, type_: str, place: _Place) -> object:
    if not isinstance(value, bool):
        raise _mismatch(value, type_, place)
    return value


def _integer(value: object, type_: str, place: _Place) -> object:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    most = _RANGES[type_]
    if isinstance(value, bool) or not isinstance(value, int) or not -most <= value < most:
        raise _mismatch(value, type_, place)
    return value


def _number(value: object, type_: str, place: _Place) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(value, type_, place)
    return value


def _time(value: object, type_: str, place: _Place) -> object:
    text = str(_text(value, type_, place))
    try:
        is_known = datetime.fromisoformat(text).tzinfo is not None and "T" in text
    except ValueError:
        is_known = False
    if not is_known:
        msg = f'parsing time "{text}" as "{_TIME_RULE}": cannot parse "{text}" as a time'
        raise Mismatch(msg)
    return text


def _quantity(value: object, _type: str, _place: _Place) -> object:
    text = value if isinstance(value, str) else str(value)
    if isinstance(value, bool | list | dict) or not _QUANTITY.fullmatch(text.strip()):
        raise Mismatch(_QUANTITY_RULE)
    return text.strip()


def _int_or_text(value: object, _type: str, place: _Place) -> object:
    return value if isinstance(value, str) else _integer(value, "int32", place)


def _object(value: object, type_: str, place: _Place) -> object:
    if not isinstance(value, dict):
        raise _mismatch(value, type_, place)
    return value


def _anything(value: object, _type: str, _place: _Place) -> object:
    return value


_SCALARS: Final[Mapping[str, Callable[[Any, str, _Place], object]]] = {
    "string": _text,
    "bytes": _bytes,
    "bool": _boolean,
    "int32": _integer,
    "int64": _integer,
    "double": _number,
    "Time": _time,
    "MicroTime": _time,
    "Quantity": _quantity,
    "IntOrString": _int_or_text,
    "object": _object,
    "any": _anything,
}


def _mismatch(value: object, type_: str, place: _Place) -> Mismatch:
    return Mismatch(
        f"json: cannot unmarshal {_go_value(value)} into Go struct field "
        f"{place.owner}.{place.path} of type {_go_type(type_)}"
    )


def _go_value(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "number"
        case float():
            return f"number {value}"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _go_type(type_: str) -> str:
    if type_.startswith(LIST):
        return f"[]{_go_type(type_[2:])}"
    if type_.startswith(MAP):
        return f"map[string]{_go_type(type_[2:])}"
    if type_ in _SCALARS:
        return _GO_SCALARS.get(type_, type_)
    return ".".join(type_.split(".")[-2:])
