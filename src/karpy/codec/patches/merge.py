"""Merge patches (RFC 7386): objects merge, null removes a field, other values replace it."""

from typing import Any

from karpy.codec.fields import JsonObject


def merge(target: JsonObject, patch: JsonObject) -> JsonObject:
    """Return the target with the patch merged in; unchanged parts are shared."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = merge(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result


def diff(before: JsonObject, after: JsonObject) -> JsonObject:
    """Return the merge patch that makes one object into another."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if old is value or old == value:
            continue
        is_nested = isinstance(old, dict) and isinstance(value, dict)
        patch[key] = diff(old or {}, value) if is_nested else value
    return patch
