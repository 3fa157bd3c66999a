"""The check that lists of type set or map have no repeated entries."""

from collections.abc import Iterator
from typing import Any, Final

from karpy.codec.fields import JsonObject
from karpy.codec.validation.faults import Fault, FaultKind
from karpy.codec.validation.shaping import Schema

_TYPE: Final = "x-kubernetes-list-type"
_KEYS: Final = "x-kubernetes-list-map-keys"


def only_list_types(schema: Schema) -> Schema:
    """Return the parts of a schema that lead to lists whose entries may not repeat."""
    made: JsonObject = {}
    if schema.get(_TYPE) in {"set", "map"}:
        made = {key: schema[key] for key in (_TYPE, _KEYS) if key in schema}
    for key in ("items", "additionalProperties"):
        below = only_list_types(schema[key]) if isinstance(schema.get(key), dict) else {}
        if below:
            made[key] = below
    properties = {
        key: below
        for key, each in schema.get("properties", {}).items()
        if (below := only_list_types(each))
    }
    return {**made, "properties": properties} if properties else made


def list_faults(value: object, schema: Schema, path: str = "") -> Iterator[Fault]:
    """Find the entries that repeat an earlier one, the first repetition of each."""
    if isinstance(value, dict):
        yield from _below_object(value, schema, path)
    elif isinstance(value, list):
        match schema.get(_TYPE):
            case "set":
                yield from _repeated(value, path)
            case "map":
                keys = schema.get(_KEYS, ())
                yield from _map_faults(value, keys, path)
        items = schema.get("items")
        if items:
            for index, each in enumerate(value):
                yield from list_faults(each, items, f"{path}[{index}]")


def _below_object(value: dict[str, Any], schema: Schema, path: str) -> Iterator[Fault]:
    for key, below in schema.get("properties", {}).items():
        if key in value:
            yield from list_faults(value[key], below, f"{path}.{key}" if path else key)
    others = schema.get("additionalProperties")
    if others:
        for key, each in value.items():
            yield from list_faults(each, others, f"{path}[{key}]")


def _map_faults(value: list[Any], keys: tuple[str, ...], path: str) -> Iterator[Fault]:
    for index, each in enumerate(value):
        if each is not None and not isinstance(each, dict):
            detail = "must be an object for an array of list-type map"
            yield Fault(FaultKind.INVALID, f"{path}[{index}]", each, detail)
            return
    marks = [{key: each[key] for key in keys if key in each} if each else {} for each in value]
    yield from _repeated(marks, path)


def _repeated(value: list[Any], path: str) -> Iterator[Fault]:
    is_reported: dict[str, bool] = {}
    for index, each in enumerate(value):
        mark = repr(sorted(each.items())) if isinstance(each, dict) else repr(each)
        if is_reported.get(mark) is False:
            yield Fault(FaultKind.DUPLICATE, f"{path}[{index}]", each)
        is_reported[mark] = mark in is_reported
