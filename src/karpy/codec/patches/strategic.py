"""Strategic merge patches: merge patches that know which lists have keys."""

from typing import Any, Final

from karpy.codec.fields import JsonObject
from karpy.codec.patches.schemas import PLAIN, Schema
from karpy.errors import BadRequest

_BAD_REQUEST: Final = 400
_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DROP: Final = "$deleteFromPrimitiveList/"


def merge_strategically(target: JsonObject, patch: JsonObject, schema: Schema) -> JsonObject:
    """Return the target with the patch merged in; what it leaves alone is shared."""
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return _plain({key: value for key, value in patch.items() if key != _DIRECTIVE})
    if directive == "delete":
        return {}
    _check_directive(directive)
    result, orders = _begun(target, patch)
    for key, value in patch.items():
        if key[:1] == "$":
            continue
        if value is None:
            result.pop(key, None)
            continue
        result[key] = _merged(result.get(key), value, schema.field(key), orders.get(key))
    for name, order in orders.items():
        if name not in patch and isinstance(result.get(name), list):
            result[name] = _ordered(result[name], order, schema.field(name))
    return result


def _begun(target: JsonObject, patch: JsonObject) -> tuple[JsonObject, dict[str, list[Any]]]:
    """Return what the directives of a patch leave of its target, and the orders they ask for."""
    if not any(key[:1] == "$" for key in patch):
        return dict(target), {}
    kept = set(patch.get(_RETAIN) or target)
    result = {key: value for key, value in target.items() if key in kept}
    for name, values in _with_prefix(patch, _DROP).items():
        result[name] = [each for each in result.get(name) or () if each not in values]
    return result, _with_prefix(patch, _ORDER)


def _with_prefix(patch: JsonObject, prefix: str) -> dict[str, list[Any]]:
    return {key[len(prefix) :]: value for key, value in patch.items() if key.startswith(prefix)}


def _merged(old: object, new: object, schema: Schema, order: list[Any] | None) -> object:
    if isinstance(new, dict):
        base = old if isinstance(old, dict) and not schema.is_replaced else {}
        return merge_strategically(base, new, schema)
    if not isinstance(new, list):
        return new
    if schema.key:
        before = old if isinstance(old, list) else []
        merged = _merge_items(before, new, schema)
        return _ordered(merged, order, schema) if order is not None else merged
    if schema.is_merged_set and isinstance(old, list):
        merged = [*old, *(each for each in new if each not in old)]
        return _ordered(merged, order, schema) if order is not None else merged
    return [_plain(each) if isinstance(each, dict) else each for each in new]


def _merge_items(old: list[Any], new: list[Any], schema: Schema) -> list[Any]:
    key = schema.key
    if any(each.get(_DIRECTIVE) == "replace" for each in new if isinstance(each, dict)):
        return [_plain(each) for each in new if _DIRECTIVE not in each]
    result = list(old)
    for each in new:
        if not isinstance(each, dict) or key not in each:
            raise BadRequest(
                f"map: {each} does not contain declared merge key: {key}",
                status=_BAD_REQUEST,
                hint=f"give every item of the list its `{key}`",
            )
        at = next((i for i, item in enumerate(result) if item.get(key) == each[key]), None)
        if each.get(_DIRECTIVE) == "delete":
            result = [item for item in result if item.get(key) != each[key]]
        elif at is None:
            result.append(_plain(each))
        else:
            result[at] = merge_strategically(result[at], each, schema.item or PLAIN)
    return result


def _ordered(items: list[Any], order: list[Any], schema: Schema) -> list[Any]:
    """
    Bring items into the order of a patch.

    Items the order does not know stay behind the item that they followed.
    """
    key = schema.key
    wanted = [each[key] if key and isinstance(each, dict) else each for each in order]
    rank = {value: place for place, value in enumerate(wanted)}
    places: list[tuple[int, int, Any]] = []
    last = -1
    for index, item in enumerate(items):
        name = item.get(key) if key and isinstance(item, dict) else item
        last = rank.get(name, last)
        places.append((last, index, item))
    places.sort(key=lambda place: place[:2])
    return [item for _, _, item in places]


def _plain(value: JsonObject) -> JsonObject:
    """Return what is new without the directives and nulls that a patch may carry."""
    result: JsonObject = {}
    for key, each in value.items():
        if key[:1] == "$" or each is None:
            continue
        if isinstance(each, dict):
            result[key] = _plain(each)
        elif isinstance(each, list):
            result[key] = [
                _plain(item) if isinstance(item, dict) else item
                for item in each
                if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "delete")
            ]
        else:
            result[key] = each
    return result


def _check_directive(directive: object) -> None:
    if directive not in {None, "merge"}:
        raise BadRequest(
            f"Unknown patch type found: {directive}",
            status=_BAD_REQUEST,
            hint="use `$patch: replace`, `delete` or `merge`",
        )
