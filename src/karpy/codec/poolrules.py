"""
What a NodePool or NodeOverlay must obey beyond its types.

The API server refuses some of it; such an object cannot exist, and `check_pool` raises. The rest
Karpenter finds later, and the NodePool is then there but not ready: `why_not_ready` says why.
"""

from collections.abc import Iterable
from typing import Final

from karpy.codec.constraints import KEY_HINT, VALUE_HINT, check_label
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.syntax import is_label_key, is_label_value
from karpy.model.labels import (
    CAPACITY_TYPE,
    CAPACITY_TYPES,
    HOSTNAME,
    NODE_POOL,
    is_restricted,
    normalise,
)
from karpy.model.resources import NODES

_OWN_DOMAIN: Final = "karpenter.sh"
_ENTRIES_MAX: Final = 100
_RESERVED_HINT: Final = "remove it, or use a label of your own domain"


def check_pool(fields: Fields) -> None:
    """Refuse a NodePool that the API server would refuse."""
    # Parity: karpenter.sh_nodepools.yaml, CEL rules.
    spec = fields.child("spec")
    template = spec.child("template")
    labels = template.child("metadata").child("labels")
    for key in sorted(template.child("metadata").labels("labels")):
        check_label(labels, key)
        _check_key(labels, f"[{key}]", key)
    inner = template.child("spec")
    if len(inner.items("requirements")) > _ENTRIES_MAX:
        inner.fail("requirements", "has more than 100 entries", "remove some")
    for each in inner.children("requirements"):
        _check_key(each, "key", each.text("key"))
    if "replicas" in spec:
        _check_static(spec)


def check_overlay(fields: Fields, well_known: frozenset[str]) -> None:
    """Refuse a NodeOverlay that the API server or Karpenter would refuse."""
    spec = fields.child("spec")
    for each in spec.children("requirements"):
        if each.text("operator") == "NotIn" and not each.items("values"):
            each.fail("values", "is empty", "add at least one value")
        fault = _requirement_fault(each, well_known)
        if fault:
            raise fault


def why_not_ready(fields: Fields, well_known: frozenset[str]) -> FieldInvalid | None:
    """Say what keeps Karpenter from calling a NodePool ready, or None."""
    # Parity: karpenter pkg/apis/v1 RuntimeValidate.
    template = fields.child("spec").child("template")
    inner = template.child("spec")
    labels = template.child("metadata").child("labels")
    faults: list[FieldInvalid | None] = [
        _restricted(labels, f"[{key}]", key, well_known) for key in sorted(labels.obj)
    ]
    faults += [_requirement_fault(each, well_known) for each in inner.children("requirements")]
    faults.append(_taint_fault((*inner.children("taints"), *inner.children("startupTaints"))))
    return next((fault for fault in faults if fault), None)


def _check_key(fields: Fields, at: str, key: str) -> None:
    domain = key.partition("/")[0] if "/" in key else ""
    if domain.endswith(_OWN_DOMAIN) and key != CAPACITY_TYPE:
        fields.fail(at, f"is `{key}`, which belongs to Karpenter", _RESERVED_HINT)
    if key == HOSTNAME:
        fields.fail(at, f"is `{key}`, which no NodePool can promise", "remove it")


def _check_static(spec: Fields) -> None:
    replicas = spec.number("replicas")
    if replicas is not None and replicas < 0:
        spec.fail("replicas", f"is {replicas}", "write a number of 0 or more")
    if "weight" in spec:
        spec.fail("weight", "is there next to replicas", "remove one of the two")
    if set(spec.child("limits").obj) - {NODES}:
        spec.fail("limits", "is there next to replicas", f"keep no limit but `{NODES}`")


def _requirement_fault(fields: Fields, well_known: frozenset[str]) -> FieldInvalid | None:
    key = normalise(fields.text("key"))
    values = fields.texts("values")
    if fault := _restricted(fields, "key", key, well_known):
        return fault
    for index, value in enumerate(values):
        if not is_label_value(value):
            what = f"is `{value}`, which is no label value"
            return FieldInvalid(f"{fields.path}.values[{index}]", what, VALUE_HINT)
    if key == CAPACITY_TYPE and fields.text("operator") == "In":
        known = CAPACITY_TYPES.intersection(values)
        if len(known) < (fields.number("minValues") or 1):
            hint = f"use one of: {', '.join(sorted(CAPACITY_TYPES))}"
            what = f"is [{', '.join(values)}]; too few of them exist"
            return FieldInvalid(f"{fields.path}.values", what, hint)
    return None


def _restricted(
    fields: Fields, at: str, key: str, well_known: frozenset[str]
) -> FieldInvalid | None:
    if key != NODE_POOL and not is_restricted(key, well_known):
        return None
    path = f"{fields.path}{at}" if at.startswith("[") else f"{fields.path}.{at}"
    return FieldInvalid(path, f"is `{key}`, which may not be asked for", _RESERVED_HINT)


def _taint_fault(taints: Iterable[Fields]) -> FieldInvalid | None:
    seen: set[tuple[str, str]] = set()
    for each in taints:
        if each.text("value") and not is_label_key(each.text("value")):
            what = f"is `{each.text('value')}`, which is no taint value"
            return FieldInvalid(f"{each.path}.value", what, KEY_HINT)
        pair = (each.text("key"), each.text("effect"))
        if pair in seen:
            what = f"repeats {':'.join(pair)}"
            return FieldInvalid(each.path, what, "remove one of the two taints")
        seen.add(pair)
    return None
