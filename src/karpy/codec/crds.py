"""Karpenter's own kinds from plain objects: NodePool, NodeClaim, NodeOverlay."""

import re
from typing import Final

from karpy.codec.constraints import POOL_OPERATORS, read_requirement, read_taints
from karpy.codec.disruption import read_policy
from karpy.codec.fields import Fields, shown
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.records import NodeClassRef
from karpy.model.requirements import Requirement
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

_WEIGHT_MAX: Final = 100
_OVERLAY_WEIGHT_MAX: Final = 10_000
_MIN_VALUES_MAX: Final = 50
PRICE_LENGTH_MAX: Final = 64
"""Longest price or price adjustment, in characters; a longer text is refused."""
_PRICE: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)
_ADJUSTMENT: Final = re.compile(r"[+-]\d*\.?\d+|\+\d*\.?\d+%|-\d{1,2}(\.\d+)?%|-100%", re.ASCII)
_BASIC: Final = (CPU, EPHEMERAL_STORAGE, MEMORY, PODS)


def read_pool(fields: Fields) -> NodePool:
    """Read a NodePool of karpenter.sh/v1; without a status it counts as ready."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    template = spec.child("template")
    inner, template_meta = template.child("spec"), template.child("metadata")
    return NodePool(
        name=meta.needed("name"),
        labels=template_meta.labels("labels"),
        annotations=template_meta.labels("annotations"),
        requirements=read_pool_requirements(inner),
        taints=read_taints(inner, "taints"),
        startup_taints=read_taints(inner, "startupTaints"),
        node_class=_node_class(inner),
        limits=spec.quantities("limits"),
        weight=_weight(spec, _WEIGHT_MAX),
        is_static="replicas" in spec,
        is_ready=not has_condition(fields, "Ready", "False"),
        is_deleting="deletionTimestamp" in meta,
        policy=read_policy(fields),
    )


def read_pool_requirements(fields: Fields) -> tuple[Requirement, ...]:
    """Read requirements with minValues."""
    return tuple(_pool_requirement(each) for each in fields.children("requirements"))


def read_overlay(fields: Fields) -> NodeOverlay:
    """Read a NodeOverlay of karpenter.sh/v1alpha1."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    if "price" in spec and "priceAdjustment" in spec:
        spec.fail("priceAdjustment", "is there next to price", "remove one of the two")
    capacity = spec.quantities("capacity")
    for name in _BASIC:
        if name in capacity:
            spec.fail(f"capacity.{name}", "may not be changed", f"remove `{name}`")
    return NodeOverlay(
        name=meta.needed("name"),
        requirements=read_pool_requirements(spec),
        price=_matching(spec, "price", _PRICE, "write dollars per hour, such as `0.5`"),
        price_adjustment=_matching(
            spec, "priceAdjustment", _ADJUSTMENT, "write a change such as `+0.1` or `-10%`"
        ),
        capacity=capacity,
        weight=_weight(spec, _OVERLAY_WEIGHT_MAX),
    )


def has_condition(fields: Fields, kind: str, status: str) -> bool:
    """Say whether the object has this condition with this status: True, False or Unknown."""
    conditions = fields.child("status").children("conditions")
    return any(each.text("type") == kind and each.text("status") == status for each in conditions)


def _pool_requirement(fields: Fields) -> Requirement:
    count = fields.number("minValues")
    if count is not None and not 1 <= count <= _MIN_VALUES_MAX:
        fields.fail("minValues", f"is {count}", "write a number from 1 to 50")
    requirement = read_requirement(fields, POOL_OPERATORS)
    if count is not None and 0 < len(requirement.values) < count and not requirement.complement:
        fields.fail("minValues", f"is {count}, more than there are values", "add values")
    return requirement


def _node_class(fields: Fields) -> NodeClassRef:
    ref = fields.child("nodeClassRef")
    # Before karpenter.sh/v1, `nodeClassRef` had an `apiVersion` instead of a `group`.
    group = ref.text("group") or ref.text("apiVersion").rpartition("/")[0]
    return NodeClassRef(group, ref.text("kind"), ref.text("name"))


def _weight(fields: Fields, most: int) -> int:
    weight = fields.number("weight")
    if weight is None:
        return 0
    if not 0 <= weight <= most:
        fields.fail("weight", f"is {weight}", f"write a weight from 1 to {most}")
    return weight


def _matching(fields: Fields, key: str, pattern: re.Pattern[str], hint: str) -> str | None:
    if key not in fields:
        return None
    text = fields.text(key)
    if len(text) > PRICE_LENGTH_MAX or not pattern.fullmatch(text):
        fields.fail(key, f"is `{shown(text)}`", hint)
    return text
