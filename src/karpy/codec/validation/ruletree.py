"""All CEL rules of a schema, evaluated on the values that they are about."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from karpy.codec.validation.celrules import CelRule, compile_conjunction, compile_rule
from karpy.codec.validation.celvalues import converter
from karpy.codec.validation.correlation import NOTHING, OldItems, old_field
from karpy.codec.validation.faults import Fault
from karpy.codec.validation.shaping import Schema

_RULES: Final = "x-kubernetes-validations"
_REMEMBERED_MAX: Final = 2048
_REMEMBERED_BYTES: Final = 1024
_SCALARS: Final = (str, int, float, bool)


class _Visit(Struct, frozen=True, gc=False):
    """One value to evaluate rules on."""

    value: object
    old: object
    path: str
    is_same: bool
    """Whether the enclosing value is unchanged."""


class RuleTree:
    """The rules of one place in a schema and of all places below it."""

    def __init__(self, schema: Schema, spine: Schema | None = None) -> None:
        """Compile the rules; `spine` has the structure if `schema` itself is part of an `allOf`."""
        self._schema = spine if spine is not None else schema
        self._convert = converter(self._schema)
        sources = list(schema.get(_RULES, ()))
        type_ = self._schema.get("type", "")
        compiled = [(each, compile_rule(each, type_)) for each in sources]
        self.unknown = [each["rule"] for each, rule in compiled if rule is None]
        """Rules that cannot be compiled here, and are not enforced."""
        self._rules = [rule for _, rule in compiled if rule is not None]
        self._quick = _quick_test(self._rules)
        self._passed: dict[object, None] = {}
        self._properties = _below(schema.get("properties", {}), self._schema)
        self._others = _tree(schema, self._schema, "additionalProperties")
        self._items = _tree(schema, self._schema, "items")
        self._all_of = [
            tree for each in schema.get("allOf", ()) if (tree := RuleTree(each, self._schema))
        ]
        parts = [*self._properties.values(), self._others, self._items, *self._all_of]
        below = [each for each in parts if each is not None]
        for each in below:
            self.unknown += each.unknown
        self._is_used = bool(self._rules or self.unknown or below)
        self._has_transitions = any(rule.is_transition for rule in self._rules)
        self.compares: bool = bool(self._has_transitions or any(each.compares for each in below))
        """Whether even an unchanged value must be checked."""

    def __bool__(self) -> bool:
        """Say whether there is any rule here or below."""
        return self._is_used

    def faults(self, value: object, old: object) -> list[Fault]:
        """Evaluate all rules on a value; faults of an unchanged value are not returned."""
        found: list[Fault] = []
        self.collect(_Visit(value, old, "", is_same=False), found)
        return found

    def collect(self, visit: "_Visit", found: list[Fault]) -> None:
        """Append the faults of one value to `found`."""
        value = visit.value
        if value is None:
            return
        is_same = visit.is_same or visit.old == value
        if is_same and not self.compares:
            return
        if self._rules:
            self._evaluate(visit, found, is_same=is_same)
        for tree in self._all_of:
            tree.collect(visit, found)
        if isinstance(value, dict):
            self._collect_fields(value, visit, found, is_same=is_same)
        elif isinstance(value, list) and self._items is not None:
            items = OldItems(self._schema, visit.old)
            for index, each in enumerate(value):
                below = _Visit(each, items.of(each), f"{visit.path}[{index}]", is_same)
                self._items.collect(below, found)

    def _collect_fields(
        self, value: Mapping[str, Any], visit: "_Visit", found: list[Fault], *, is_same: bool
    ) -> None:
        path, old = visit.path, visit.old
        for key, tree in self._properties.items():
            if key in value:
                place = f"{path}.{key}" if path else key
                tree.collect(_Visit(value[key], old_field(old, key), place, is_same), found)
        if self._others is not None:
            known = self._schema.get("properties", ())
            for key, each in value.items():
                if key not in known:
                    below = _Visit(each, old_field(old, key), f"{path}[{key}]", is_same)
                    self._others.collect(below, found)

    def _evaluate(self, visit: "_Visit", found: list[Fault], *, is_same: bool) -> None:
        value, old = visit.value, visit.old
        if self._convert:
            value = self._convert(value)
            old = old if old is NOTHING else self._convert(old)
        is_fine = is_same or self._passes(value)
        if is_fine and not self._has_transitions:
            return
        for rule in self._rules:
            if rule.is_transition or not is_fine:
                fault = rule.fault(value, old, visit.path, visit.value)
                if fault is not None:
                    found.append(fault)

    def _passes(self, value: object) -> bool:
        """Say whether all rules without `oldSelf` hold; remember values for which they do."""
        if self._quick is None:
            return False
        mark = value if isinstance(value, _SCALARS) else msgspec.json.encode(value)
        if mark in self._passed:
            return True
        if self._quick({"self": value}) is not True:
            return False
        if len(self._passed) >= _REMEMBERED_MAX:
            self._passed.clear()
        if not isinstance(mark, bytes) or len(mark) <= _REMEMBERED_BYTES:
            self._passed[mark] = None
        return True


def _quick_test(rules: list[CelRule]) -> Callable[..., object] | None:
    plain = [rule.source for rule in rules if not rule.is_transition]
    return compile_conjunction(plain) if plain else lambda _: True


def _below(properties: Mapping[str, Schema], spine: Schema) -> dict[str, RuleTree]:
    known = spine.get("properties", {})
    return {
        key: tree
        for key, each in properties.items()
        if key in known and (tree := RuleTree(each, known[key]))
    }


def _tree(schema: Schema, spine: Schema, key: str) -> RuleTree | None:
    below = schema.get(key)
    if not isinstance(below, dict) or not isinstance(spine.get(key), dict):
        return None
    return RuleTree(below, spine[key]) or None
