"""All fields of a cluster's objects, to compare two moments field by field."""

import json
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.codec.fields import JsonObject
from karpy.model.times import parse_duration

KINDS: Final = ("nodepools", "nodeclaims", "nodes", "pods", "deployments")
Portrait = dict[str, object]
"""The value of every relevant field, by object and path."""

_RESTLESS: Final = frozenset({"resourceVersion", "managedFields", "lastHeartbeatTime"})
_WHENEVER: Final = frozenset({"Consolidatable", "ConsistentStateFound"})
_NAMED_BY: Final = {"conditions": "type", "requirements": "key", "taints": "key"}
"""Lists whose order does not matter, and the keys of their items."""


def look(plane: ControlPlane) -> list[JsonObject]:
    """Return all objects that an operator reads or writes."""
    found: list[JsonObject] = json.loads(
        plane.kubectl("get", ",".join(KINDS), "--all-namespaces", "-o", "json")
    )["items"]
    return found


def portray(objects: list[JsonObject]) -> Portrait:
    """Return the portrait of objects."""
    return {
        f"{each['kind']}/{each['metadata']['name']} {path}": value
        for each in objects
        for path, value in _fields(each, "")
    }


class Difference(Struct, frozen=True):
    """A field that has changed; None stands for a missing field."""

    path: str
    before: object
    after: object

    def __str__(self) -> str:
        return f"{self.path}: {self.before!r} -> {self.after!r}"


def differences(before: Portrait, after: Portrait) -> list[Difference]:
    """List every field that has changed."""
    return [
        Difference(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


def _fields(value: object, path: str) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            for key, each in value.items():
                if key not in _RESTLESS:
                    yield from _fields(each, f"{path}.{key}")
        case list():
            for number, each in enumerate(value):
                yield from _fields(each, f"{path}[{_name(path, number, each)}]")
        case _:
            yield path.removeprefix("."), value


def _name(path: str, number: int, item: object) -> object:
    key = _NAMED_BY.get(path.rpartition(".")[2])
    if key is None or not isinstance(item, dict):
        return number
    # A key may occur twice, as in `Gt` and `Lt`.
    return " ".join(str(item[name]) for name in (key, "operator", "effect") if name in item)


def shape(obj: JsonObject) -> dict[str, object]:
    """
    Return the fields of an object that objects of the same kind have in common.

    Conditions that appear at any time are left out, too.
    """
    metadata, spec, status = obj["metadata"], obj["spec"], obj["status"]
    return {
        "labels": sorted(metadata.get("labels", {})),
        "annotations": sorted(metadata.get("annotations", {})),
        "finalizers": metadata.get("finalizers", []),
        "owners": [(each["kind"], each.get("name")) for each in _owners(metadata)],
        "spec": sorted(spec),
        "requirements": sorted(_requirement(each) for each in spec.get("requirements", [])),
        "taints": sorted(f"{each['key']}:{each['effect']}" for each in spec.get("taints", [])),
        "startup taints": spec.get("startupTaints", []),
        "expiry": [_duration(spec.get(key)) for key in ("expireAfter", "terminationGracePeriod")],
        "status": sorted(status),
        "conditions": sorted(
            _condition(each)
            for each in status.get("conditions", [])
            if each["type"] not in _WHENEVER
        ),
    }


def _owners(metadata: JsonObject) -> list[JsonObject]:
    owners = metadata.get("ownerReferences", [])
    return [{**each, "name": _only_pools(each)} for each in owners]


def _only_pools(owner: JsonObject) -> str:
    """Return the name of a NodePool only; names of NodeClaims always differ."""
    return str(owner["name"]) if owner["kind"] == "NodePool" else ""


def _duration(text: str | None) -> object:
    """Read a duration: `1h` equals `1h0m0s`, as Go writes it."""
    return parse_duration(text) or text if text else text


def _requirement(each: JsonObject) -> str:
    return f"{each['key']} {each['operator']} minValues={each.get('minValues')}"


def _condition(each: JsonObject) -> str:
    return f"{each['type']}={each['status']} ({each['reason']})"
