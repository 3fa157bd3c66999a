"""Server-side apply: merge a configuration, and remove the fields that it no longer has."""

from typing import Any

from karpy.codec.fields import JsonObject
from karpy.codec.patches.fieldsets import FieldSet, children_of, is_member, item_name
from karpy.codec.patches.schemas import PLAIN, Schema


def merge_applied(live: JsonObject, config: JsonObject, schema: Schema) -> JsonObject:
    """Return the live object with a configuration merged in."""
    result = dict(live)
    for key, value in config.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(live.get(key), value, schema.field(key))
    return result


def _merged(live: object, config: object, schema: Schema) -> object:
    if isinstance(config, dict) and isinstance(live, dict) and not schema.is_atomic:
        return merge_applied(live, config, schema)
    if isinstance(config, list) and isinstance(live, list):
        if schema.keys:
            return _merge_items(live, config, schema)
        if schema.is_set:
            return [*live, *(each for each in config if each not in live)]
    return config


def _merge_items(live: list[Any], config: list[Any], schema: Schema) -> list[Any]:
    """Merge items by their keys; an item that only the live list has stays after its neighbour."""
    item = schema.item or PLAIN
    live_items = {item_name(each, schema): each for each in live}
    result = {
        name: _merged(live_items.get(name), each, item)
        for name, each in ((item_name(each, schema), each) for each in config)
    }
    order = list(result)
    neighbour = -1
    for name in live_items:
        if name in result:
            neighbour = order.index(name)
        else:
            neighbour += 1
            order.insert(neighbour, name)
    return [result.get(name, live_items.get(name)) for name in order]


def without_fields(obj: JsonObject, gone: FieldSet, kept: FieldSet, schema: Schema) -> JsonObject:
    """
    Return an object without the fields `gone`, except those below them that are `kept`.

    An object or list whose last field goes is removed, too.
    """
    result = dict(obj)
    for key, value in obj.items():
        name = f"f:{key}"
        if name not in gone:
            continue
        left = _left(value, gone[name], kept.get(name), schema.field(key))
        if left is None:
            del result[key]
        else:
            result[key] = left
    return result


def _left(value: object, gone: FieldSet, kept: FieldSet | None, schema: Schema) -> object | None:
    """Return the rest of a value without the fields `gone`; None if nothing is left."""
    if is_member(gone) and kept is None:
        return None
    below, kept = children_of(gone), kept or {}
    if isinstance(value, dict) and not schema.is_atomic:
        return without_fields(value, below, kept, schema) or None
    if not isinstance(value, list):
        return value
    items = []
    for item in value:
        name = item_name(item, schema) if schema.keys or schema.is_set else ""
        if name not in below:
            items.append(item)
            continue
        left = _left(item, below[name], kept.get(name), schema.item or PLAIN)
        if left is not None:
            items.append(left)
    return items or None
