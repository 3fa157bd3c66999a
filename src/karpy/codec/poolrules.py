"""
Rules for NodePools and NodeOverlays beyond their CustomResourceDefinitions.

The API server accepts an object that breaks them; Karpenter then makes it not ready, and
`find_faults` says why.
"""

from collections.abc import Iterable, Iterator
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
from karpy.codec.fields import FieldInvalid, Fields, caught
from karpy.codec.providers import namesake
from karpy.codec.syntax import is_label_key, is_label_value
from karpy.model.labels import (
    CAPACITY_TYPE,
    CAPACITY_TYPES,
    NODE_POOL,
    is_restricted,
    normalise,
)

_OWN_DOMAIN: Final = "karpenter.sh"
_ENTRIES_MAX: Final = 100
_RESERVED_HINT: Final = "remove it, or use a label of your own domain"


def find_overlay_faults(fields: Fields, well_known: frozenset[str]) -> Iterator[FieldInvalid]:
    """List all faults that keep a NodeOverlay from being applied."""
    for each in fields.child("spec").children("requirements"):
        if each.text("operator") == "NotIn" and not each.items("values"):
            hint = "add at least one value"
            yield FieldInvalid(f"{each.path}.values", "is empty", hint)
        # An overlay may select NodePools.
        if normalise(each.text("key")) != NODE_POOL:
            yield from _requirement_faults(each, well_known)


def find_faults(fields: Fields, well_known: frozenset[str]) -> tuple[FieldInvalid, ...]:
    """List all faults that make a NodePool not ready."""
    # Parity: what makes a NodePool not ready: the same rules as in Karpenter's pkg/apis/v1
    # RuntimeValidate.
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
    """Return the first fault that makes a NodePool not ready, or None."""
    return next(iter(find_faults(fields, well_known)), None)


def _label_faults(labels: Fields, key: str, well_known: frozenset[str]) -> Iterator[FieldInvalid]:
    yield from caught(partial(check_label, labels, key))
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
    yield from caught(partial(read_requirement, fields, POOL_OPERATORS))
    if is_choice and 0 < len(values) < least:
        what = f"is {least}, more than there are values"
        yield FieldInvalid(f"{fields.path}.minValues", what, "add values")


def _restricted(
    fields: Fields, at: str, key: str, well_known: frozenset[str]
) -> Iterator[FieldInvalid]:
    if key == NODE_POOL or is_restricted(key, well_known):
        path = f"{fields.path}{at}" if at.startswith("[") else f"{fields.path}.{at}"
        meant = namesake(key)
        hint = f"write `{meant}`" if meant else _RESERVED_HINT
        yield FieldInvalid(path, f"is `{key}`, which may not be asked for", hint)


def _taint_faults(taints: Iterable[Fields]) -> Iterator[FieldInvalid]:
    seen: set[tuple[str, str]] = set()
    for each in taints:
        yield from caught(partial(label_key, each, "key"))
        if each.text("value") and not is_label_key(each.text("value")):
            what = f"is `{each.text('value')}`, which is no taint value"
            yield FieldInvalid(f"{each.path}.value", what, KEY_HINT)
        yield from caught(partial(each.choice, "effect", EFFECTS | {""}))
        pair = (each.text("key"), each.text("effect"))
        if pair in seen:
            what = f"repeats {':'.join(pair)}"
            yield FieldInvalid(each.path, what, "remove one of the two taints")
        seen.add(pair)
