"""JSON patches (RFC 6902): a list of operations on paths."""

from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import msgspec

from karpy.codec.fields import JsonObject
from karpy.codec.limits import DEPTH_MAX, is_too_deep
from karpy.errors import BadRequest, Invalid

_UNPROCESSABLE: Final = 422
_TOO_LARGE: Final = 413
_OPERATIONS_MAX: Final = 10_000
_COPIED_MAX: Final = 3 * 2**20
"""Most bytes that the operations `copy` and `move` of a patch may add up to."""
_COPIES: Final = ("copy", "move")
_APPEND: Final = "-"
_INDEX_MAX: Final = 10
"""Most digits of an index."""
Value: TypeAlias = object


def apply_json_patch(obj: JsonObject, operations: Sequence[JsonObject]) -> JsonObject:
    """
    Return an object with the operations applied one after the other.

    Raise Invalid, or BadRequest for more operations than an API server takes.
    """
    if len(operations) > _OPERATIONS_MAX:
        raise BadRequest(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{_OPERATIONS_MAX}, got {len(operations)}",
            status=_TOO_LARGE,
            hint="divide the patch",
        )
    result: Value = obj
    copied = 0
    for operation in operations:
        if operation.get("op") in _COPIES:
            copied += _size(_get(result, _parts(operation, "from")))
            if copied > _COPIED_MAX:
                raise _refusal(f"its copies add up to more than {_COPIED_MAX} bytes")
        result = _apply(result, operation)
    if not isinstance(result, dict):
        raise _refusal("the patch leaves no object")
    if is_too_deep(result):
        raise _refusal(f"the patch leaves an object that is nested more than {DEPTH_MAX} deep")
    return result


def _size(value: Value) -> int:
    """Return the size of a value in bytes; raise Invalid if it nests too deeply to be copied."""
    if is_too_deep(value):
        raise _refusal(f"it copies what is nested more than {DEPTH_MAX} deep")
    return len(msgspec.json.encode(value))


def _apply(obj: Value, operation: JsonObject) -> Value:
    name = operation.get("op")
    path = _parts(operation, "path")
    match name:
        case "add":
            return _put(obj, path, _value(operation), is_new=True)
        case "replace":
            _get(obj, path)
            return _put(obj, path, _value(operation), is_new=False)
        case "remove":
            return _remove(obj, path)
        case "test":
            if not _holds(obj, path, operation.get("value")):
                raise _refusal(f"testing value {operation['path']} failed")
            return obj
        case "copy":
            return _put(obj, path, _get(obj, _parts(operation, "from")), is_new=True)
        case "move":
            source = _parts(operation, "from")
            return _put(_remove(obj, source), path, _get(obj, source), is_new=True)
        case _:
            raise _refusal(
                f"`{name}` is no operation; use add, remove, replace, move, copy or test"
            )


def _parts(operation: JsonObject, field: str) -> list[str]:
    path = operation.get(field)
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise _refusal(f"`{field}` is `{path}`, not a path such as `/spec/replicas`")
    if path.count("/") > DEPTH_MAX:
        raise _refusal(f"`{field}` leads more than {DEPTH_MAX} deep")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _value(operation: JsonObject) -> Value:
    if "value" not in operation:
        raise _refusal(f"the operation on `{operation['path']}` has no value")
    return operation["value"]


def _get(obj: Value, path: list[str]) -> Value:
    for part in path:
        if isinstance(obj, dict) and part in obj:
            obj = obj[part]
        elif isinstance(obj, list):
            obj = obj[_index(obj, part, len(obj) - 1)]
        else:
            raise _refusal(f"there is nothing at `/{'/'.join(path)}`")
    return obj


def _holds(obj: Value, path: list[str], expected: Value) -> bool:
    parent = _get(obj, path[:-1])
    if path and isinstance(parent, dict) and path[-1] not in parent:
        return expected is None
    found = _get(obj, path)
    # In Python True equals 1, in JSON it does not.
    return found == expected and isinstance(found, bool) == isinstance(expected, bool)


def _put(obj: Value, path: list[str], value: Value, *, is_new: bool) -> Value:
    if not path:
        return value
    first, *rest = path
    if isinstance(obj, dict):
        if rest and first not in obj:
            raise _refusal(f"there is nothing at `{first}` of the path")
        changed = _put(obj[first], rest, value, is_new=is_new) if rest else value
        return {**obj, first: changed}
    if not isinstance(obj, list):
        raise _refusal(f"`{first}` of the path leads into a value that has no parts")
    items = list(cast("list[Value]", obj))
    if rest or not is_new:
        index = _index(items, first, len(items) - 1)
        items[index] = _put(items[index], rest, value, is_new=is_new)
    else:
        items.insert(len(items) if first == _APPEND else _index(items, first, len(items)), value)
    return items


def _remove(obj: Value, path: list[str]) -> Value:
    if not path:
        raise _refusal("an object cannot be removed from itself")
    first, *rest = path
    if isinstance(obj, dict):
        if first not in obj:
            raise _refusal(f"there is nothing to remove at `{first}` of the path")
        if rest:
            return {**obj, first: _remove(obj[first], rest)}
        return {key: value for key, value in obj.items() if key != first}
    if not isinstance(obj, list):
        raise _refusal(f"`{first}` of the path leads into a value that has no parts")
    items = list(cast("list[Value]", obj))
    index = _index(items, first, len(items) - 1)
    if rest:
        items[index] = _remove(items[index], rest)
    else:
        del items[index]
    return items


def _index(items: list[Value], part: str, most: int) -> int:
    is_number = part.isascii() and part.isdecimal() and (part == "0" or part[0] != "0")
    if not is_number or len(part) > _INDEX_MAX or int(part) > most:
        raise _refusal(f"`{part}` is no index of a list of {len(items)}")
    return int(part)


def _refusal(problem: str) -> Invalid:
    return Invalid(
        "the server rejected our request due to an error in our request",
        status=_UNPROCESSABLE,
        hint=f"{problem}; read the object again and make the patch anew",
    )
