"""The admission of custom resources by their CustomResourceDefinition, as in an API server."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from karpy.codec.fields import JsonObject
from karpy.codec.validation.correlation import NOTHING
from karpy.codec.validation.definitions import definition_faults
from karpy.codec.validation.faults import RULES_NOT_CHECKED, Fault, FaultKind, refuse
from karpy.codec.validation.gates import gate
from karpy.codec.validation.listtypes import list_faults, only_list_types
from karpy.codec.validation.ruletree import RuleTree
from karpy.codec.validation.schemafaults import SchemaPlace, schema_faults
from karpy.codec.validation.shaping import Schema, shaped

STATUS: Final = "status"
_EVERYTHING: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NAMES: Final = ("name", "generateName")
_INT32_MAX: Final = 2**31 - 1
_DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"
_NOT_EVALUATED: Final = (AttributeError, KeyError, TypeError, ValueError)
"""Exceptions of rules that are evaluated on values of the wrong type."""
_NEEDED: Final = ("spec.group", "spec.names.kind", "spec.names.plural", "spec.versions")
_GO_TYPES: Final = {
    bool: "bool",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class Validator(Protocol):
    """Admits objects of one kind: prunes them, adds defaults, and validates them."""

    def admit(
        self, obj: JsonObject, old: JsonObject | None, *, subresource: str = ""
    ) -> JsonObject:
        """
        Return the object pruned and with defaults; raise Invalid if it may not be stored.

        `old` is the stored object, as `admit` returned it. `obj` is always the whole object: for a
        subresource, it is `old` with the part that the subresource writes.
        """


class CrdValidator:
    """Admits the objects of one CustomResourceDefinition, in all its versions."""

    def __init__(self, crd: JsonObject) -> None:
        """Take a definition; raise Invalid if a needed field is missing or a pattern is invalid."""
        _check_definition(crd)
        spec = crd["spec"]
        self._kind = f"{spec['names']['kind']}.{spec['group']}"
        self._versions = {f"{spec['group']}/{each['name']}": each for each in spec["versions"]}
        self._compiled: dict[str, _Version] = {}

    def admit(
        self, obj: JsonObject, old: JsonObject | None, *, subresource: str = ""
    ) -> JsonObject:
        """Return the object pruned and with defaults; raise Invalid if it may not be stored."""
        version = self._version(obj)
        made = shaped(obj, version.schema)
        faults = list(version.faults(made, old, is_status=subresource == STATUS))
        if faults:
            name = obj.get("metadata", {}).get("name", "")
            raise refuse(self._kind, name, faults)
        return made

    def faults(self, obj: JsonObject) -> list[Fault]:
        """
        List all faults of a new object that can be found at once.

        An API server evaluates no rule before all types are right. Here rules are evaluated anyway;
        a rule that fails because of a wrong type gives no fault.
        """
        version = self._version(obj)
        return version.all_faults(shaped(obj, version.schema))

    def schema(self, obj: JsonObject) -> Schema:
        """Return the schema of an object, by its version."""
        return self._version(obj).schema

    def complete(self, obj: JsonObject) -> JsonObject:
        """Prune and default a stored object; call this after the definition has changed."""
        return shaped(obj, self._version(obj).schema)

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The CEL rules with unsupported functions, which docs/crds.md lists."""
        versions = [self._version({"apiVersion": each}) for each in self._versions]
        return tuple(rule for each in versions for rule in each.rules.unknown)

    def _version(self, obj: JsonObject) -> "_Version":
        name = obj.get("apiVersion", "")
        found = self._compiled.get(name)
        if found is None:
            if name not in self._versions:
                known = " or ".join(sorted(self._versions))
                fault = Fault(FaultKind.INVALID, "apiVersion", name, f"must be {known}")
                raise refuse(self._kind, obj.get("metadata", {}).get("name", ""), [fault])
            found = self._compiled[name] = _Version(self._versions[name])
        return found


class _Version:
    """One version of a definition, compiled."""

    def __init__(self, version: JsonObject) -> None:
        self.schema: Schema = version.get("schema", {}).get("openAPIV3Schema") or _EVERYTHING
        self.rules = RuleTree(_with_metadata(self.schema))
        self._status: Schema = self.schema.get("properties", {}).get(STATUS, {})
        self._is_valid = gate(self.schema)
        self._is_valid_status = gate(self._status)
        self._lists = only_list_types(self.schema)
        self._scale = version.get("subresources", {}).get("scale", {})

    def faults(
        self, obj: JsonObject, old: JsonObject | None, *, is_status: bool
    ) -> Iterator[Fault]:
        """Find all faults of a new object, or of a change."""
        found = [
            *self._schema_faults(obj, old, is_status=is_status),
            *self._scale_faults(obj),
            *self._list_faults(obj, old),
        ]
        yield from found
        if not self.rules:
            return
        if any(fault.blocks_rules for fault in found):
            yield RULES_NOT_CHECKED
        else:
            before = NOTHING if old is None else _visible(old)
            yield from self.rules.faults(_visible(obj), before)

    def all_faults(self, obj: JsonObject) -> list[Fault]:
        """Find all faults of a new object; evaluate rules even if types are wrong."""
        found = [*self._schema_faults(obj, None, is_status=False), *self._list_faults(obj, None)]
        if not any(fault.blocks_rules for fault in found):
            return [*found, *self.rules.faults(_visible(obj), NOTHING)]
        try:
            rule_faults = self.rules.faults(_visible(obj), NOTHING)
        except _NOT_EVALUATED:
            rule_faults = []
        mistyped = [each.path for each in found if each.kind is FaultKind.TYPE_INVALID]
        return [*found, *(each for each in rule_faults if not _is_moot(each, mistyped))]

    def _schema_faults(
        self, obj: JsonObject, old: JsonObject | None, *, is_status: bool
    ) -> list[Fault]:
        if not is_status:
            if self._is_valid(obj):
                return []
            return schema_faults(obj, self.schema, SchemaPlace(), NOTHING if old is None else old)
        status = obj.get(STATUS)
        if STATUS not in obj or self._is_valid_status(status):
            return []
        before = NOTHING if old is None else old.get(STATUS, NOTHING)
        return schema_faults(status, self._status, SchemaPlace(outer=STATUS), before)

    def _list_faults(self, obj: JsonObject, old: JsonObject | None) -> list[Fault]:
        found = list(list_faults(obj, self._lists))
        # A list that has repeated entries already may keep them.
        return [] if found and old and any(list_faults(old, self._lists)) else found

    def _scale_faults(self, obj: JsonObject) -> Iterator[Fault]:
        for key in ("specReplicasPath", "statusReplicasPath"):
            path = self._scale.get(key)
            number = _at(obj, path) if path else None
            if number is None:
                continue
            if isinstance(number, bool) or not isinstance(number, int):
                what = _GO_TYPES.get(type(number), "")
                detail = f"{path} accessor error: {number} is of the type {what}, expected int64"
                yield Fault(FaultKind.INVALID, path, 0, detail)
            elif number < 0:
                yield Fault(FaultKind.INVALID, path, number, "should be a non-negative integer")
            elif number > _INT32_MAX:
                detail = f"should be less than or equal to {_INT32_MAX}"
                yield Fault(FaultKind.INVALID, path, number, detail)


def _is_moot(fault: Fault, mistyped: Sequence[str]) -> bool:
    """Say whether the evaluation of a rule failed, or was on a value of the wrong type."""
    return fault.is_broken or any(path.startswith(fault.path) for path in mistyped)


def _check_definition(crd: JsonObject) -> None:
    missing = [path for path in _NEEDED if not _at(crd, path)]
    if missing:
        faults = [Fault(FaultKind.REQUIRED, path) for path in missing]
        raise refuse(_DEFINITION, str(_at(crd, "metadata.name") or ""), faults)
    faults = list(definition_faults(crd["spec"]["versions"]))
    if faults:
        raise refuse(_DEFINITION, str(_at(crd, "metadata.name") or ""), faults)


def _with_metadata(schema: Schema) -> Schema:
    """Return the schema with those fields of metadata that `_visible` leaves."""
    if "properties" not in schema:
        return schema
    text = {"type": "string"}
    meta = {"type": "object", "properties": dict.fromkeys(_NAMES, text)}
    return {**schema, "properties": {**schema["properties"], "metadata": meta}}


def _visible(obj: JsonObject) -> JsonObject:
    """Keep only the metadata that rules may read; other metadata changes with each write."""
    meta = obj.get("metadata") or {}
    return {**obj, "metadata": {key: meta[key] for key in _NAMES if key in meta}}


def _at(obj: JsonObject, path: str) -> object:
    value: Any = obj
    for key in path.removeprefix(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
