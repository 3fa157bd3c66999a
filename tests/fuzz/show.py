"""Prints snapshots as Python expressions, without defaults."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum

from msgspec import Struct
from msgspec.structs import fields

from karpy.model.requirements import Requirement
from tests.builders import NOON, WELL_KNOWN_HERE

_WIDTH = 96


def show(value: object, indent: int = 0) -> str:
    """Return a value as an expression over `tests.builders` and the model."""
    short = _show_flat(value)
    if len(short) + indent <= _WIDTH or not isinstance(value, Struct | tuple | list | Mapping):
        return short
    inner = " " * (indent + 4)
    opening, parts, closing = _pieces(value)
    lines = [f"{inner}{label}{show(part, indent + 4)}," for label, part in parts]
    return "\n".join([opening, *lines, " " * indent + closing])


def _pieces(value: object) -> tuple[str, list[tuple[str, object]], str]:
    if isinstance(value, Struct):
        return f"{type(value).__name__}(", _stated(value), ")"
    if isinstance(value, Mapping):
        return "{", [(f"{_show_flat(key)}: ", part) for key, part in value.items()], "}"
    assert isinstance(value, tuple | list)
    return "(", [("", part) for part in value], ")"


def _stated(value: Struct) -> list[tuple[str, object]]:
    stated = []
    for field in fields(value):
        part = getattr(value, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        if field.required or part != default:
            stated.append((f"{field.name}=", part))
    return stated


def _show_flat(value: object) -> str:
    if isinstance(value, Requirement):
        return _requirement(value)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, datetime):
        minutes = round((NOON - value).total_seconds() / 60)
        return f"NOON - timedelta(minutes={minutes})" if minutes else "NOON"
    if value == WELL_KNOWN_HERE:
        return "WELL_KNOWN_HERE"
    if isinstance(value, frozenset):
        return f"frozenset({sorted(value)})"
    if isinstance(value, Struct | Mapping | tuple | list):
        opening, parts, closing = _pieces(value)
        inside = ", ".join(f"{label}{_show_flat(part)}" for label, part in parts)
        comma = "," if opening == "(" and len(parts) == 1 else ""
        return f"{opening}{inside}{comma}{closing}"
    return repr(value)


def _requirement(value: Requirement) -> str:
    if (value.gte, value.lte, value.min_values) != (None, None, None):
        inside = ", ".join(f"{label}{_show_flat(part)}" for label, part in _stated(value))
        return f"Requirement({inside})"
    values = "".join(f", {each!r}" for each in sorted(value.values))
    names = {(False, True): "is_in", (False, False): "absent", (True, True): "not_in"}
    name = names.get((value.complement, bool(value.values)), "exists")
    return f"{name}({value.key!r}{values})"
