"""Tables of custom resources, with the columns of their definition."""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from karpy.adapters.apiserver.structurals import version_of
from karpy.adapters.apiserver.tables.cells import INVALID, name_of, since
from karpy.adapters.apiserver.tables.jsonpaths import Path, PathInvalid, read_path
from karpy.adapters.apiserver.tables.printers import NAME, Printer, PrinterColumn
from karpy.codec.fields import JsonObject

_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_HUGE: Final = 1e21
"""Numbers from here on are written with an exponent."""


class _Custom(Struct, frozen=True):
    column: PrinterColumn
    path: Path | None

    def cell(self, obj: JsonObject, now: datetime) -> object:
        found = self.path.first(obj) if self.path is not None else ()
        if not found:
            return None
        return _CELLS.get(self.column.type, _as_text)(found[0], now)


def custom_printer(definition: JsonObject, version: str) -> Printer:
    """Return the printer for a version of a CustomResourceDefinition."""
    given = version_of(definition, version).get("additionalPrinterColumns") or [_AGE]
    return _printer(msgspec.json.encode(given))


@lru_cache(maxsize=256)
def _printer(given: bytes) -> Printer:
    customs = tuple(_custom(each) for each in msgspec.json.decode(given))

    def cells(obj: JsonObject, now: datetime) -> list[Any]:
        return [name_of(obj), *(each.cell(obj, now) for each in customs)]

    return Printer((NAME, *(each.column for each in customs)), cells)


def _custom(given: JsonObject) -> _Custom:
    text = given.get("jsonPath", "")
    about = given.get("description") or (
        f"Custom resource definition column (in JSONPath format): {text}"
    )
    column = PrinterColumn(
        given["name"],
        given.get("type", "string"),
        given.get("format", ""),
        given.get("priority", 0),
        about,
    )
    try:
        return _Custom(column, read_path(text))
    except PathInvalid:
        return _Custom(column, None)


def _as_text(value: object, _now: datetime) -> object:
    match value:
        case str():
            return value
        case None:
            return "<no value>"
        case float() if value.is_integer() and abs(value) < _HUGE:
            return str(int(value))
        case _:
            return msgspec.json.encode(value).decode()


def _as_integer(value: object, _now: datetime) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and isinstance(value, int | float) else None


def _as_number(value: object, _now: datetime) -> object:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_boolean(value: object, _now: datetime) -> object:
    return value if isinstance(value, bool) else None


def _as_date(value: object, now: datetime) -> object:
    if not isinstance(value, str):
        return None
    return since(value, now) if value else INVALID


_CELLS: Final[dict[str, Callable[[Any, datetime], object]]] = {
    "integer": _as_integer,
    "number": _as_number,
    "boolean": _as_boolean,
    "date": _as_date,
}
