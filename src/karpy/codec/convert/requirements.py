"""Requirements and taints, which all versions write alike but for a few fields."""

from typing import Final

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.oldfields import OldFields, as_text
from karpy.codec.convert.workloads import OLD_POOL_LABEL
from karpy.codec.fields import JsonObject
from karpy.codec.placeholders import placeholders_in
from karpy.model.labels import NODE_POOL

_GONE: Final = frozenset({"karpenter.k8s.aws/instance-pods", "karpenter.k8s.aws/instance-ami-id"})
_TAINTS: Final = ("taints", "startupTaints")


def requirements_of(spec: OldFields) -> list[JsonObject]:
    """Return requirements in their order; one on the pool itself is left out."""
    made = []
    for each in spec.children("requirements"):
        key = each.text("key") or each.fail("key", "is missing", "name a label")
        if key in {OLD_POOL_LABEL, NODE_POOL}:
            text = f"nodes of the pool have the label `{NODE_POOL}` already"
            spec.notes.add(FieldChange.DROPPED, each.path, text)
            continue
        if key in _GONE:
            text = f"today no instance type has the label `{key}`; the requirement is left out"
            spec.notes.add(FieldChange.LOST, each.path, text)
            continue
        made.append({"key": key, **_condition(each)})
    return made


def _condition(each: OldFields) -> JsonObject:
    made = each.carry("operator")
    values = each.take("values")
    if isinstance(values, list):
        made["values"] = [as_text(value) for value in values]
    elif isinstance(values, str) and placeholders_in(values):
        made["values"] = values  # The placeholder may stand for a list.
    elif values is not None:
        each.fail("values", "is no list", "write the values as a list, `- ...`")
    made.update(each.carry("minValues"))
    each.drop_rest()
    return made


def taints_of(spec: OldFields) -> JsonObject:
    """Return taints and startup taints, as far as they are there."""
    return {key: [_taint(each) for each in spec.children(key)] for key in _TAINTS if key in spec}


def _taint(each: OldFields) -> JsonObject:
    made = each.carry("key", "effect", "timeAdded")
    if "value" in each:
        made["value"] = as_text(each.take("value"))
    each.drop("operator", "a taint has no operator; tolerations have")
    each.drop_rest()
    return made
