"""Pruning and defaulting: unknown fields are removed, and defaults are added."""

from collections.abc import Mapping
from typing import Any, Final

from karpy.codec.fields import JsonObject

Schema = Mapping[str, Any]

_KEPT: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_META: Final = frozenset({"apiVersion", "kind", "metadata"})
_NO_SCHEMA: Final[Schema] = {}


def shaped(obj: JsonObject, schema: Schema) -> JsonObject:
    """Return a copy of a whole object, pruned and with defaults; its metadata is left alone."""
    return _object(obj, {**schema, _EMBEDDED: True})


def _shape(value: object, schema: Schema) -> object:
    if isinstance(value, dict):
        return _object(value, schema)
    if isinstance(value, list):
        return _list(value, schema)
    return value


def _object(value: JsonObject, schema: Schema) -> JsonObject:
    properties = schema.get("properties", _NO_SCHEMA)
    others = schema.get("additionalProperties")
    is_kept = schema.get(_KEPT, False)
    is_embedded = schema.get(_EMBEDDED, False)
    made: JsonObject = {}
    for key, each in value.items():
        below = properties.get(key)
        if is_embedded and key in _META:
            made[key] = each
        elif below is not None:
            _put(made, key, each, below)
        elif others is not None and others is not False:
            _put(made, key, each, others if isinstance(others, dict) else _NO_SCHEMA)
        elif is_kept:
            made[key] = each
    for key, below in properties.items():
        if "default" in below and key not in made:
            made[key] = _shape(_copied(below["default"]), below)
    return made


def _put(made: JsonObject, key: str, value: object, schema: Schema) -> None:
    """Add a field; null in a field that is not nullable counts as absent."""
    if value is not None or schema.get("nullable", False):
        made[key] = _shape(value, schema)
    elif "default" in schema:
        made[key] = _shape(_copied(schema["default"]), schema)
    elif not schema:
        made[key] = None


def _list(value: list[Any], schema: Schema) -> list[Any]:
    items = schema.get("items")
    if items is None:
        return value if schema.get(_KEPT, False) else [_shape(each, _NO_SCHEMA) for each in value]
    if schema.get(_KEPT, False):
        items = {**items, _KEPT: True}
    default = items.get("default") if not items.get("nullable", False) else None
    return [
        _shape(_copied(default) if each is None and default is not None else each, items)
        for each in value
    ]


def _copied(value: object) -> object:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value
