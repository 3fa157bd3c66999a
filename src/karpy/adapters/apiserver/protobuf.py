"""Objects in protobuf, as Go programs send them, in an envelope with apiVersion and kind."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

import msgspec

from karpy.adapters.apiserver.shapes import LIST, MAP, Field, shapes
from karpy.codec.fields import JsonObject
from karpy.codec.jsontext import parse_json

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_VARINT: Final = 0
_FIXED_64: Final = 1
_BYTES: Final = 2
_FIXED_32: Final = 5
_VARINT_MAX: Final = 10
_LAST_BYTE_MAX: Final = 0x7F
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Raw = int | bytes
"""A value on the wire: a number, or bytes whose meaning depends on the field."""


class Malformed(ValueError):
    """Bytes are not a message of the expected type."""


def read_envelope(body: bytes, type_of: Callable[[str, str], str]) -> JsonObject:
    """
    Return the object in an envelope; raise Malformed.

    `type_of` returns the name of the type for an API version and a kind.
    """
    if not body.startswith(_MAGIC):
        msg = "it does not begin as objects do"
        raise Malformed(msg)
    parts = dict(_fields(body[len(_MAGIC) :]))
    meta = dict(_fields(_bytes(parts.get(1, b""))))
    version, kind = (_bytes(meta.get(number, b"")).decode() for number in (1, 2))
    obj = _message(_bytes(parts.get(2, b"")), type_of(version, kind))
    named = {"apiVersion": version, "kind": kind}
    return {**{key: value for key, value in named.items() if value}, **obj}


def _fields(data: bytes) -> Iterator[tuple[int, Raw]]:
    """Yield number and value of each field of a message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in {_FIXED_64, _FIXED_32}:
            size = 8 if wire == _FIXED_64 else 4
        else:
            msg = f"there is no wire type {wire}"
            raise Malformed(msg)
        if at + size > len(data):
            msg = "it ends too early"
            raise Malformed(msg)
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(_VARINT_MAX):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte <= _LAST_BYTE_MAX:
            return value, at
    msg = "it ends too early"
    raise Malformed(msg)


@cache
def _numbered(type_: str) -> Mapping[int, Field]:
    return {field.number: field for field in shapes()[type_].fields.values() if field.number}


def _message(data: bytes, type_: str) -> JsonObject:
    """Read a message; leave out zero values, which protobuf may send for unset fields."""
    if type_ not in shapes():
        msg = f"{type_} is not known in this form"
        raise Malformed(msg)
    known, inlined = _numbered(type_), shapes()[type_].inlined
    made: JsonObject = {}
    for number, raw in _fields(data):
        field = known.get(number)
        if field is not None:
            _add(made, field, raw)
        elif number in inlined:
            made.update(_message(_bytes(raw), inlined[number]))
    return made


def _add(made: JsonObject, field: Field, raw: Raw) -> None:
    type_ = field.type
    if type_.startswith(LIST):
        made.setdefault(field.name, []).append(_value(raw, type_[2:]))
        return
    if type_.startswith(MAP):
        parts = dict(_fields(_bytes(raw)))
        key = _bytes(parts.get(1, b"")).decode()
        value = parts.get(2, 0 if type_[2:] in _NUMBERS else b"")
        made.setdefault(field.name, {})[key] = _value(value, type_[2:])
        return
    found = _value(raw, type_)
    if found or field.is_required or (field.is_pointer and found is not None):
        made[field.name] = found


def _value(raw: Raw, type_: str) -> object:
    if type_.startswith(LIST):
        # A list within a map is encoded as a message with one repeated field.
        return [_value(each, type_[2:]) for number, each in _fields(_bytes(raw)) if number == 1]
    read = _SCALARS.get(type_)
    return read(raw) if read is not None else _message(_bytes(raw), type_)


def _bytes(raw: Raw) -> bytes:
    if not isinstance(raw, bytes):
        msg = "a number stands where a message should"
        raise Malformed(msg)
    return raw


def _integer(raw: Raw) -> int:
    if not isinstance(raw, int):
        msg = "a message stands where a number should"
        raise Malformed(msg)
    # Negative numbers are encoded as 64-bit two's complement.
    return raw - 2**64 if raw >= 2**63 else raw


def _text(raw: Raw) -> str:
    return _bytes(raw).decode()


def _base64(raw: Raw) -> object:
    encoded: object = msgspec.to_builtins(_bytes(raw))
    return encoded


def _time(raw: Raw) -> str | None:
    moment = _moment(raw)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(raw: Raw) -> str | None:
    moment = _moment(raw)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(raw: Raw) -> datetime | None:
    parts = dict(_fields(_bytes(raw)))
    if not parts:
        return None
    seconds, nanos = (_integer(parts.get(number, 0)) for number in (1, 2))
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        msg = f"there is no date {seconds} seconds from 1970 on"
        raise Malformed(msg) from error


def _quantity(raw: Raw) -> str:
    return _text(dict(_fields(_bytes(raw))).get(1, b""))


def _int_or_text(raw: Raw) -> object:
    parts = dict(_fields(_bytes(raw)))
    return _text(parts.get(3, b"")) if parts.get(1) else _integer(parts.get(2, 0))


def _json(raw: Raw) -> object:
    text = dict(_fields(_bytes(raw))).get(1, b"")
    return parse_json(_bytes(text)) if text else None


_NUMBERS: Final = frozenset({"bool", "int32", "int64"})
_SCALARS: Final[Mapping[str, Callable[[Raw], object]]] = {
    "string": _text,
    "bytes": _base64,
    "bool": lambda raw: bool(_integer(raw)),
    "int32": _integer,
    "int64": _integer,
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "IntOrString": _int_or_text,
    "object": _json,
    "any": _json,
}
