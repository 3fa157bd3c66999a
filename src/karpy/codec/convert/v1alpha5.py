"""Provisioner of karpenter.sh/v1alpha5."""

from typing import Final

from msgspec.structs import fields

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import AWS, AWS_GROUP, CORE, EC2_CLASS, ConversionContext, Converted
from karpy.codec.convert.kubelets import kubelet_of
from karpy.codec.convert.metadata import new_object, spec_of, template_metadata_of
from karpy.codec.convert.moves import Moves
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.convert.requirements import requirements_of, taints_of
from karpy.codec.convert.v1alpha1 import MOVES as CLASS_MOVES
from karpy.codec.convert.v1alpha1 import node_class_spec
from karpy.codec.crdhints import GONE_HINTS
from karpy.codec.fields import JsonObject, describe
from karpy.codec.schemas.ec2nodeclasses import EC2NodeClassSpec
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, normalise

_CATEGORY: Final = "karpenter.k8s.aws/instance-category"
_GENERATION: Final = "karpenter.k8s.aws/instance-generation"
_TYPE_KEYS: Final = frozenset(
    {INSTANCE_TYPE, _CATEGORY, _GENERATION, "karpenter.k8s.aws/instance-family"}
)
_HALF: Final = "build the whole object first, as `kustomize build` does, or add `providerRef`"
_SECONDS: Final = {"h": 3600, "m": 60}
_KUBELET: Final = "kubeletConfiguration"
_ELSEWHERE: Final = frozenset(
    {
        "consolidateAfter",
        "consolidationPolicy",
        "expireAfter",
        "replicas",
        "terminationGracePeriod",
        *GONE_HINTS,
        *(each.encode_name for each in fields(EC2NodeClassSpec)),
    }
)
"""Fields of other kinds and versions; any other name in a Provisioner is meant as a label."""
MOVES: Final[Moves] = {
    "spec.annotations": ("NodePool:spec.template.metadata.annotations",),
    "spec.consolidation": ("NodePool:spec.disruption",),
    "spec.consolidation.enabled": ("NodePool:spec.disruption.consolidationPolicy",),
    "spec.kubeletConfiguration": ("EC2NodeClass:spec.kubelet",),
    "spec.labels": ("NodePool:spec.template.metadata.labels",),
    "spec.limits": ("NodePool:spec.limits",),
    "spec.limits.resources": ("NodePool:spec.limits",),
    "spec.provider": ("EC2NodeClass:spec",),
    "spec.providerRef": ("NodePool:spec.template.spec.nodeClassRef",),
    "spec.requirements": ("NodePool:spec.template.spec.requirements",),
    "spec.startupTaints": ("NodePool:spec.template.spec.startupTaints",),
    "spec.taints": ("NodePool:spec.template.spec.taints",),
    "spec.ttlSecondsAfterEmpty": ("NodePool:spec.disruption.consolidateAfter",),
    "spec.ttlSecondsUntilExpired": ("NodePool:spec.template.spec.expireAfter",),
    **{path.replace("spec.", "spec.provider."): places for path, places in CLASS_MOVES.items()},
}
"""Where the fields of a Provisioner are today."""


def node_pool(root: OldFields, context: ConversionContext) -> Converted:
    """Return a Provisioner as a NodePool, and the EC2NodeClass of its `provider` if it has one."""
    made = new_object(root, CORE, "NodePool")
    spec = root.tried(None, spec_of)
    if spec is None:
        return Converted(())
    classes = spec.tried((), _class_of_provider, made["metadata"], context)
    ref = spec.tried({}, _class_ref, classes, context)
    inner: JsonObject = {
        "nodeClassRef": ref,
        "requirements": spec.tried([], _requirements, str(ref.get("group", AWS_GROUP))),
        **spec.tried({}, taints_of),
        "expireAfter": spec.tried("", _expiry),
    }
    template = {**spec.tried({}, template_metadata_of), "spec": inner}
    disruption = spec.tried({}, _disruption)
    made["spec"] = {"template": template, "disruption": disruption, **spec.tried({}, _limits)}
    made["spec"].update(spec.carry("weight"))
    kubelet = spec.tried({}, kubelet_of, _KUBELET)
    spec.drop_rest(_ELSEWHERE)
    root.drop_rest()
    if classes and kubelet:
        text = f"it is `spec.kubelet` of EC2NodeClass {ref['name']} today"
        spec.note(FieldChange.RENAMED, _KUBELET, text)
        classes[0]["spec"]["kubelet"] = kubelet
        return Converted((made, *classes))
    return Converted((made, *classes), kubelet, spec.path_of(_KUBELET))


def _class_of_provider(
    spec: OldFields, meta: JsonObject, context: ConversionContext
) -> tuple[JsonObject, ...]:
    if "provider" not in spec:
        return ()
    name = _free_name(str(meta.get("name") or ""), context)
    made: JsonObject = {
        "apiVersion": AWS,
        "kind": EC2_CLASS,
        "metadata": {"name": name},
        "spec": node_class_spec(spec.child("provider"), context),
    }
    spec.note(FieldChange.RENAMED, "provider", f"it is EC2NodeClass {name} today")
    return (made,)


def _free_name(name: str, context: ConversionContext) -> str:
    return f"{name}-provider" if name in context.classes else name


def _class_ref(
    spec: OldFields, classes: tuple[JsonObject, ...], context: ConversionContext
) -> JsonObject:
    if classes:
        spec.drop("providerRef", "`provider` stands beside it; the old version refuses both")
        name = classes[0]["metadata"]["name"]
        return {"group": AWS_GROUP, "kind": EC2_CLASS, "name": name}
    if "providerRef" not in spec:
        spec.fail("providerRef", "is missing, and so is `provider`", _HALF)
    ref = spec.child("providerRef")
    name = ref.text("name") or ref.fail("name", "is missing", "name the AWSNodeTemplate")
    group = ref.text("apiVersion").rpartition("/")[0]
    kind = ref.text("kind")
    ref.drop_rest()
    if not kind or group in ("", AWS_GROUP):
        group, kind = context.classes.get(name, (AWS_GROUP, EC2_CLASS))
    spec.note(FieldChange.RENAMED, "providerRef", "it is `spec.template.spec.nodeClassRef` today")
    return {"group": group, "kind": kind, "name": name}


def _requirements(spec: OldFields, class_group: str) -> list[JsonObject]:
    """Return the requirements, and after them what the old webhook added to them."""
    made = requirements_of(spec)
    keys = {normalise(each["key"]) for each in made}
    usual = [(OS, "linux"), (ARCH, "amd64"), (CAPACITY_TYPE, ON_DEMAND)]
    added = [_requirement(key, "In", value) for key, value in usual if key not in keys]
    if class_group == AWS_GROUP and not keys & _TYPE_KEYS:
        added.append(_requirement(_CATEGORY, "In", "c", "m", "r"))
        added.append(_requirement(_GENERATION, "Gt", "2"))
    for each in added:
        shown = f"{each['key']} {each['operator']} {', '.join(each['values'])}"
        text = f"`{shown}`: the webhook of the old version added it"
        spec.note(FieldChange.ADDED, "requirements", text)
    return [*made, *added]


def _requirement(key: str, operator: str, *values: str) -> JsonObject:
    return {"key": key, "operator": operator, "values": list(values)}


def _limits(spec: OldFields) -> JsonObject:
    limits = spec.child("limits")
    resources = limits.amounts("resources")
    for key in ("cpu", "memory"):
        if key in limits:
            limits.take(key)
            what = "is outside `resources`, so that it had no effect"
            limits.add_problem(key, what, "indent it below `resources`, or remove it")
    limits.drop_rest()
    if not resources:
        return {}
    spec.note(FieldChange.RENAMED, "limits.resources", "it is `spec.limits` today")
    return {"limits": resources}


def _expiry(spec: OldFields) -> str:
    path = "ttlSecondsUntilExpired"
    if path not in spec:
        text = "nodes never expired; today they do after 720h if nothing is written"
        spec.note(FieldChange.ADDED, path, f"`expireAfter: Never`: {text}")
        return "Never"
    after = _seconds(spec, path)
    text = f"it is `spec.template.spec.expireAfter: {after}` today"
    if after == "0s":
        text += "; nodes expire at once, in the old version too; without the field they never do"
    spec.note(FieldChange.RENAMED, path, text)
    return after


def _disruption(spec: OldFields) -> JsonObject:
    consolidation = spec.child("consolidation")
    is_on = consolidation.switch("enabled")
    consolidation.drop_rest()
    path = "ttlSecondsAfterEmpty"
    after = _seconds(spec, path) if path in spec else ""
    policy = "WhenEmptyOrUnderutilized" if is_on else "WhenEmpty"
    if not is_on and not after:
        text = "nodes were never removed; today they are at once if nothing is written"
        spec.note(FieldChange.ADDED, "consolidation", f"`consolidateAfter: Never`: {text}")
    if is_on or "consolidation" in spec:
        spec.note(FieldChange.RENAMED, "consolidation.enabled", f"it is `{policy}` today")
    if after and is_on:
        what = "is there next to `consolidation.enabled: true`, which v1alpha5 refuses"
        spec.add_problem(path, what, "remove one of both, or convert: today they may be together")
    if after:
        text = f"it is `{policy}` with `consolidateAfter: {after}` today"
        spec.note(FieldChange.RENAMED, path, text)
    return {
        "consolidationPolicy": policy,
        "consolidateAfter": after or ("0s" if is_on else "Never"),
    }


def _seconds(spec: OldFields, key: str) -> str:
    value = spec.take(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        spec.fail(key, f"is {describe(value)}, not a number of seconds", "write a whole number")
    for unit, length in _SECONDS.items():
        if value and value % length == 0:
            return f"{value // length}{unit}"
    return f"{value}s"
