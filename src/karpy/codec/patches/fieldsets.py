"""
Sets of fields, in the form in which `managedFields` keeps them (FieldsV1).

`{"f:spec": {"f:replicas": {}}}` holds one field. A node without children is a member; one with
children is a member only if it has a `.` among them. Items of lists are named by their keys,
`k:{"name":"web"}`, those of sets by their value, `v:"a"`.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from karpy.codec.fields import JsonObject
from karpy.codec.patches.schemas import PLAIN, Schema

FieldSet: TypeAlias = dict[str, "FieldSet"]

_ITSELF: Final = "."


def applied_fields(value: JsonObject, schema: Schema) -> FieldSet:
    """Return the fields that a configuration sets."""
    return _fields(value, schema, is_owner_of_parents=False)


def all_fields(value: JsonObject, schema: Schema) -> FieldSet:
    """Return all fields of an object, the objects and lists that hold them included."""
    return _fields(value, schema, is_owner_of_parents=True)


def _fields(value: object, schema: Schema, *, is_owner_of_parents: bool) -> FieldSet:
    found: FieldSet = {}
    if isinstance(value, dict) and not schema.is_atomic:
        for key, each in value.items():
            child = schema.field(key)
            found[f"f:{key}"] = _node(each, child, is_owner_of_parents=is_owner_of_parents)
    elif isinstance(value, list) and schema.keys:
        item = schema.item or PLAIN
        for each in value:
            name = item_name(each, schema)
            children = _fields(each, item, is_owner_of_parents=is_owner_of_parents)
            found[name] = {_ITSELF: {}, **children} if children else {}
    elif isinstance(value, list) and schema.is_set:
        for each in value:
            found[item_name(each, schema)] = {}
    return found


def _node(value: object, schema: Schema, *, is_owner_of_parents: bool) -> FieldSet:
    children = _fields(value, schema, is_owner_of_parents=is_owner_of_parents)
    if children and is_owner_of_parents:
        return {_ITSELF: {}, **children}
    return children


def item_name(item: object, schema: Schema) -> str:
    """Return how a set of fields names an item of a list."""
    if not schema.keys:
        return f"v:{_json(item)}"
    given = item if isinstance(item, dict) else {}
    keys = {}
    for key in sorted(schema.keys):
        value = given.get(key, schema.usual.get(key))
        if value is not None:
            keys[key] = value
    return f"k:{_json(keys)}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def compare(old: JsonObject, new: JsonObject, schema: Schema) -> tuple[FieldSet, FieldSet]:
    """Return the fields that were added or changed, and those that were removed."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    before, after = _children(old, schema), _children(new, schema)
    for name, (value, child) in after.items():
        if name not in before:
            changed[name] = _node(value, child, is_owner_of_parents=True)
            continue
        before_value = before[name][0]
        if before_value is value or before_value == value:
            continue
        if _have_parts(before_value, value, child):
            inner_changed, inner_removed = compare(before_value, value, child)
            if inner_changed:
                changed[name] = inner_changed
            if inner_removed:
                removed[name] = inner_removed
        else:
            changed[name] = {}
    for name, (value, child) in before.items():
        if name not in after:
            removed[name] = _node(value, child, is_owner_of_parents=True)
    return changed, removed


def _children(value: object, schema: Schema) -> dict[str, tuple[Any, Schema]]:
    if isinstance(value, dict):
        return {f"f:{key}": (each, schema.field(key)) for key, each in value.items()}
    assert isinstance(value, list)
    item = schema.item or PLAIN
    return {item_name(each, schema): (each, item) for each in value}


def _have_parts(one: object, other: object, schema: Schema) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return not schema.is_atomic
    is_list = isinstance(one, list) and isinstance(other, list)
    return is_list and bool(schema.keys or schema.is_set)


def is_member(node: FieldSet) -> bool:
    """Say whether the field of a node is itself in the set."""
    return not node or _ITSELF in node


def children_of(node: FieldSet) -> FieldSet:
    """Return the fields below a node."""
    return {name: child for name, child in node.items() if name != _ITSELF}


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the fields of either."""
    result = dict(one)
    for name, node in other.items():
        if name not in result:
            result[name] = node
        elif result[name] is not node:
            present = result[name]
            below = union(children_of(present), children_of(node))
            result[name] = _set_node(below, is_in=is_member(present) or is_member(node))
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the fields of one that the other does not have."""
    result: FieldSet = {}
    for name, node in one.items():
        counterpart = other.get(name)
        if counterpart is None:
            result[name] = node
            continue
        below = difference(children_of(node), children_of(counterpart))
        is_in = is_member(node) and not is_member(counterpart)
        if below or is_in:
            result[name] = _set_node(below, is_in=is_in)
    return result


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the fields that both have."""
    result: FieldSet = {}
    for name, node in one.items():
        counterpart = other.get(name)
        if counterpart is None:
            continue
        below = intersection(children_of(node), children_of(counterpart))
        is_in = is_member(node) and is_member(counterpart)
        if below or is_in:
            result[name] = _set_node(below, is_in=is_in)
    return result


def _set_node(below: FieldSet, *, is_in: bool) -> FieldSet:
    return {_ITSELF: {}, **below} if below and is_in else below


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Walk through the paths of a set, as messages write them: `.spec.containers[name="a"]`."""
    named = sorted(children_of(fields).items())
    for name, node in named:
        if is_member(node):
            yield prefix + _path_part(name)
    for name, node in named:
        yield from paths(children_of(node), prefix + _path_part(name))


def _path_part(name: str) -> str:
    kind, _, text = name.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    keys = json.loads(text)
    return "[" + ",".join(f"{key}={_json(value)}" for key, value in keys.items()) + "]"
