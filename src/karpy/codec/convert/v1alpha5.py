"""Provisioner of karpenter.sh/v1alpha5."""

from typing import Final

from karpy.codec.convert.conversion import Change
from karpy.codec.convert.drafts import AWS, AWS_GROUP, CORE, EC2_CLASS, Converted, Surroundings
from karpy.codec.convert.kubelets import kubelet_of
from karpy.codec.convert.metadata import new_object, template_metadata_of
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.convert.requirements import requirements_of, taints_of
from karpy.codec.convert.v1alpha1 import node_class_spec
from karpy.codec.fields import JsonObject, describe
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, normalise

_CATEGORY: Final = "karpenter.k8s.aws/instance-category"
_GENERATION: Final = "karpenter.k8s.aws/instance-generation"
_TYPE_KEYS: Final = frozenset(
    {INSTANCE_TYPE, _CATEGORY, _GENERATION, "karpenter.k8s.aws/instance-family"}
)
_HALF: Final = "build the whole object first, as `kustomize build` does, or add `providerRef`"
_SECONDS: Final = {"h": 3600, "m": 60}


def node_pool(root: OldFields, surroundings: Surroundings) -> Converted:
    """Return a Provisioner as a NodePool, and the EC2NodeClass of its `provider` if it has one."""
    made = new_object(root, CORE, "NodePool")
    spec = root.child("spec")
    classes = _class_of_provider(spec, made["metadata"], surroundings)
    ref = _class_ref(spec, classes, surroundings)
    inner: JsonObject = {
        "nodeClassRef": ref,
        "requirements": _requirements(spec),
        **taints_of(spec),
        "expireAfter": _expiry(spec),
    }
    template = {**template_metadata_of(spec), "spec": inner}
    made["spec"] = {"template": template, "disruption": _disruption(spec), **_limits(spec)}
    made["spec"].update(spec.carry("weight"))
    old_kubelet = spec.child("kubeletConfiguration")
    kubelet = kubelet_of(old_kubelet)
    spec.drop_rest()
    root.drop_rest()
    if classes and kubelet:
        told = f"it is `spec.kubelet` of EC2NodeClass {ref['name']} today"
        spec.note(Change.RENAMED, "kubeletConfiguration", told)
        classes[0]["spec"]["kubelet"] = kubelet
        return Converted((made, *classes))
    return Converted((made, *classes), kubelet, old_kubelet.path)


def _class_of_provider(
    spec: OldFields, meta: JsonObject, surroundings: Surroundings
) -> tuple[JsonObject, ...]:
    if "provider" not in spec:
        return ()
    name = _free_name(str(meta.get("name") or ""), surroundings)
    made: JsonObject = {
        "apiVersion": AWS,
        "kind": EC2_CLASS,
        "metadata": {"name": name},
        "spec": node_class_spec(spec.child("provider"), surroundings),
    }
    spec.note(Change.RENAMED, "provider", f"it is EC2NodeClass {name} today")
    return (made,)


def _free_name(name: str, surroundings: Surroundings) -> str:
    return f"{name}-provider" if name in surroundings.classes else name


def _class_ref(
    spec: OldFields, classes: tuple[JsonObject, ...], surroundings: Surroundings
) -> JsonObject:
    if classes:
        spec.drop("providerRef", "`provider` stands beside it; the old version refuses both")
        name = classes[0]["metadata"]["name"]
        return {"group": AWS_GROUP, "kind": EC2_CLASS, "name": name}
    if "providerRef" not in spec:
        spec.fail("providerRef", "is missing, and so is `provider`", _HALF)
    ref = spec.child("providerRef")
    name = ref.text("name") or ref.fail("name", "is missing", "name the AWSNodeTemplate")
    ref.carry("apiVersion", "kind")
    ref.drop_rest()
    group, kind = surroundings.classes.get(name, (AWS_GROUP, EC2_CLASS))
    spec.note(Change.RENAMED, "providerRef", "it is `spec.template.spec.nodeClassRef` today")
    return {"group": group, "kind": kind, "name": name}


def _requirements(spec: OldFields) -> list[JsonObject]:
    """Return the requirements, and after them what the old webhook added to them."""
    made = requirements_of(spec)
    keys = {normalise(each["key"]) for each in made}
    usual = [(OS, "linux"), (ARCH, "amd64"), (CAPACITY_TYPE, ON_DEMAND)]
    added = [_requirement(key, "In", value) for key, value in usual if key not in keys]
    if not keys & _TYPE_KEYS:
        added.append(_requirement(_CATEGORY, "In", "c", "m", "r"))
        added.append(_requirement(_GENERATION, "Gt", "2"))
    for each in added:
        shown = f"{each['key']} {each['operator']} {', '.join(each['values'])}"
        told = f"`{shown}`: the webhook of the old version added it"
        spec.note(Change.ADDED, "requirements", told)
    return [*made, *added]


def _requirement(key: str, operator: str, *values: str) -> JsonObject:
    return {"key": key, "operator": operator, "values": list(values)}


def _limits(spec: OldFields) -> JsonObject:
    limits = spec.child("limits")
    resources = limits.amounts("resources")
    limits.drop_rest()
    if not resources:
        return {}
    spec.note(Change.RENAMED, "limits.resources", "it is `spec.limits` today")
    return {"limits": resources}


def _expiry(spec: OldFields) -> str:
    path = "ttlSecondsUntilExpired"
    if path not in spec:
        told = "nodes never expired; today they do after 720h if nothing is written"
        spec.note(Change.ADDED, path, f"`expireAfter: Never`: {told}")
        return "Never"
    after = _seconds(spec, path)
    spec.note(Change.RENAMED, path, f"it is `spec.template.spec.expireAfter: {after}` today")
    return after


def _disruption(spec: OldFields) -> JsonObject:
    consolidation = spec.child("consolidation")
    is_on = consolidation.take("enabled") is True
    consolidation.drop_rest()
    path = "ttlSecondsAfterEmpty"
    after = _seconds(spec, path) if path in spec else ""
    policy = "WhenEmptyOrUnderutilized" if is_on else "WhenEmpty"
    if not is_on and not after:
        told = "nodes were never removed; today they are at once if nothing is written"
        spec.note(Change.ADDED, "consolidation", f"`consolidateAfter: Never`: {told}")
    if is_on or "consolidation" in spec:
        spec.note(Change.RENAMED, "consolidation.enabled", f"it is `{policy}` today")
    if after:
        told = f"it is `{policy}` with `consolidateAfter: {after}` today"
        spec.note(Change.RENAMED, path, told)
    return {
        "consolidationPolicy": policy,
        "consolidateAfter": after or ("0s" if is_on else "Never"),
    }


def _seconds(spec: OldFields, key: str) -> str:
    value = spec.take(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        spec.fail(key, f"is {describe(value)}, not a number of seconds", "write a whole number")
    for unit, length in _SECONDS.items():
        if value and value % length == 0:
            return f"{value // length}{unit}"
    return f"{value}s"
