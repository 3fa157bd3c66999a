"""
What a NodePool or NodeOverlay must obey beyond its types.

The API server refuses some of it; such an object cannot exist, and `check_pool` raises. The rest
Karpenter finds later, and the NodePool is then there but not ready: `find_faults` says why.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from karpy.codec.constraints import (
    EFFECTS,
    KEY_HINT,
    POOL_OPERATORS,
    VALUE_HINT,
    check_label,
    label_key,
    read_requirement,
)
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
    for fault in find_overlay_faults(fields, well_known):
        raise fault


def find_overlay_faults(fields: Fields, well_known: frozenset[str]) -> Iterator[FieldInvalid]:
    """List all that keeps a NodeOverlay from being applied."""
    for each in fields.child("spec").children("requirements"):
        if each.text("operator") == "NotIn" and not each.items("values"):
            hint = "add at least one value"
            yield FieldInvalid(f"{each.path}.values", "is empty", hint)
        # An overlay may well be about the nodes of some NodePools.
        if normalise(each.text("key")) != NODE_POOL:
            yield from _requirement_faults(each, well_known)


def find_faults(fields: Fields, well_known: frozenset[str]) -> tuple[FieldInvalid, ...]:
    """List all that keeps Karpenter from calling a NodePool ready."""
    # Parity: karpenter pkg/apis/v1 RuntimeValidate.
    template = fields.child("spec").child("template")
    inner = template.child("spec")
    labels = template.child("metadata").child("labels")
    taints = (*inner.children("taints"), *inner.children("startupTaints"))
    return (
        *(fault for key in sorted(labels.obj) for fault in _label_faults(labels, key, well_known)),
        *_taint_faults(taints),
        *(
            fault
            for each in inner.children("requirements")
            for fault in _requirement_faults(each, well_known)
        ),
    )


def why_not_ready(fields: Fields, well_known: frozenset[str]) -> FieldInvalid | None:
    """Say what keeps Karpenter from calling a NodePool ready before all else, or None."""
    return next(iter(find_faults(fields, well_known)), None)


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


def _label_faults(labels: Fields, key: str, well_known: frozenset[str]) -> Iterator[FieldInvalid]:
    yield from _caught(partial(check_label, labels, key))
    yield from _restricted(labels, f"[{key}]", key, well_known)


def _requirement_faults(fields: Fields, well_known: frozenset[str]) -> Iterator[FieldInvalid]:
    key, values = normalise(fields.text("key")), fields.texts("values")
    yield from _restricted(fields, "key", key, well_known)
    is_choice, least = fields.text("operator") == "In", fields.number("minValues") or 0
    if is_choice and key == CAPACITY_TYPE and values:
        known = CAPACITY_TYPES.intersection(values)
        if len(known) < max(least, 1):
            hint = f"use one of: {', '.join(sorted(CAPACITY_TYPES))}"
            what = f"is [{', '.join(values)}]; too few of them exist"
            yield FieldInvalid(f"{fields.path}.values", what, hint)
    for index, value in enumerate(values):
        if not is_label_value(value):
            what = f"is `{value}`, which is no label value"
            yield FieldInvalid(f"{fields.path}.values[{index}]", what, VALUE_HINT)
    yield from _caught(partial(read_requirement, fields, POOL_OPERATORS))
    if is_choice and 0 < len(values) < least:
        what = f"is {least}, more than there are values"
        yield FieldInvalid(f"{fields.path}.minValues", what, "add values")


def _restricted(
    fields: Fields, at: str, key: str, well_known: frozenset[str]
) -> Iterator[FieldInvalid]:
    if key == NODE_POOL or is_restricted(key, well_known):
        path = f"{fields.path}{at}" if at.startswith("[") else f"{fields.path}.{at}"
        yield FieldInvalid(path, f"is `{key}`, which may not be asked for", _RESERVED_HINT)


def _taint_faults(taints: Iterable[Fields]) -> Iterator[FieldInvalid]:
    seen: set[tuple[str, str]] = set()
    for each in taints:
        yield from _caught(partial(label_key, each, "key"))
        if each.text("value") and not is_label_key(each.text("value")):
            what = f"is `{each.text('value')}`, which is no taint value"
            yield FieldInvalid(f"{each.path}.value", what, KEY_HINT)
        yield from _caught(partial(each.choice, "effect", EFFECTS | {""}))
        pair = (each.text("key"), each.text("effect"))
        if pair in seen:
            what = f"repeats {':'.join(pair)}"
            yield FieldInvalid(each.path, what, "remove one of the two taints")
        seen.add(pair)


def _caught(check: Callable[[], object]) -> Iterator[FieldInvalid]:
    """Return what a check raises."""
    try:
        check()
    except FieldInvalid as fault:
        yield fault
