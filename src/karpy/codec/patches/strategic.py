"""Strategic merge patches: merge patches that merge lists by the keys of their items."""

from collections import deque
from operator import itemgetter
from typing import Any, Final

from karpy.codec.fields import JsonObject
from karpy.codec.patches.schemas import PLAIN, Schema
from karpy.errors import BadRequest

_BAD_REQUEST: Final = 400
_DIRECTIVE: Final = "$patch"
_DIRECTIVES: Final = ["replace", "delete", "merge"]
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DROP: Final = "$deleteFromPrimitiveList/"


def merge_strategically(target: JsonObject, patch: JsonObject, schema: Schema) -> JsonObject:
    """Return the target with the patch merged in; unchanged parts are shared."""
    _check_directives(patch)
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return _plain({key: value for key, value in patch.items() if key != _DIRECTIVE})
    if directive == "delete":
        return {}
    result, orders = _with_directives(target, patch)
    for key, value in patch.items():
        if key[:1] == "$":
            continue
        if value is None:
            result.pop(key, None)
            continue
        result[key] = _merged(result.get(key), value, schema.field(key), orders.get(key))
    for name, order in orders.items():
        if name not in patch and isinstance(result.get(name), list):
            before = result[name]
            result[name] = _ordered(before, order, before, schema.field(name))
    return result


def _with_directives(
    target: JsonObject, patch: JsonObject
) -> tuple[JsonObject, dict[str, list[Any]]]:
    """Return the target after the directives of a patch, and the orders of lists that it sets."""
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
    before = old if isinstance(old, list) else []
    if schema.key:
        return _merge_items(before, new, schema, order)
    if schema.is_merged_set:
        merged = [*before, *(each for each in new if each not in before)]
        return _ordered(merged, new if order is None else order, before, schema)
    return [_plain(each) if isinstance(each, dict) else each for each in new]


def _merge_items(
    old: list[Any], new: list[Any], schema: Schema, order: list[Any] | None
) -> list[Any]:
    key = schema.key
    if not all(isinstance(each, dict) for each in new):
        raise _refusal("list element types are not identical", "give the list objects only")
    if any(each.get(_DIRECTIVE) == "replace" for each in new):
        return [_plain(each) for each in new if _DIRECTIVE not in each]
    result = list(old)
    for each in new:
        if key not in each:
            raise _refusal(
                f"map: {each} does not contain declared merge key: {key}",
                f"give every item of the list its `{key}`",
            )
        at = next((i for i, item in enumerate(result) if item.get(key) == each[key]), None)
        if each.get(_DIRECTIVE) == "delete":
            result = [item for item in result if item.get(key) != each[key]]
        elif at is None:
            result.append(_plain(each))
        else:
            result[at] = merge_strategically(result[at], each, schema.item or PLAIN)
    return _ordered(result, new if order is None else order, old, schema)


def _ordered(items: list[Any], wanted: list[Any], before: list[Any], schema: Schema) -> list[Any]:
    """
    Bring items into the order of a patch.

    Items that the patch does not name keep their order. Each stays before the first named item
    that it preceded already; without such an item it moves to the end.
    """
    rank = {_name(each, schema): place for place, each in enumerate(wanted)}
    place = {_name(each, schema): place for place, each in enumerate(before)}
    named = [(_name(item, schema), item) for item in items]
    chosen = [(rank[name], name, item) for name, item in named if name in rank]
    chosen.sort(key=itemgetter(0))
    others = deque((place.get(name), item) for name, item in named if name not in rank)
    result = []
    for _, name, item in chosen:
        limit = place.get(name, -1)
        while others and others[0][0] is not None and others[0][0] < limit:
            result.append(others.popleft()[1])
        result.append(item)
    return [*result, *(item for _, item in others)]


def _name(item: object, schema: Schema) -> object:
    name = item.get(schema.key) if schema.key and isinstance(item, dict) else item
    if isinstance(name, dict | list):
        raise _refusal(f"{name} is no name of an item", "name items by a text or a number")
    return name


def _plain(value: JsonObject) -> JsonObject:
    """Return a new value without the directives and nulls of its patch."""
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


def _check_directives(patch: JsonObject) -> None:
    for key, value in patch.items():
        if key == _DIRECTIVE and value not in _DIRECTIVES:
            what = f"Unknown patch type found: {value}"
            raise _refusal(what, "use `$patch: replace`, `delete` or `merge`")
        is_list = isinstance(value, list)
        if key.startswith((_ORDER, _DROP)) and not is_list:
            raise _refusal(f"invalid patch format of {key}", "give it a list")
        if key == _RETAIN and not (is_list and all(isinstance(each, str) for each in value)):
            raise _refusal(f"invalid patch format of {key}", "give it a list of names")


def _refusal(what: str, hint: str) -> BadRequest:
    """Return the error for an invalid patch; for some of these, API servers answer 500."""
    return BadRequest(what, status=_BAD_REQUEST, hint=hint)
