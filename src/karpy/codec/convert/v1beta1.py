"""NodePool and NodeClaim of karpenter.sh/v1beta1, EC2NodeClass of karpenter.k8s.aws/v1beta1."""

from typing import Any, Final

from msgspec.structs import fields

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import (
    AWS,
    AWS_GROUP,
    CORE,
    EC2_CLASS,
    ConversionContext,
    Converted,
)
from karpy.codec.convert.images import (
    disks_of,
    identity_of,
    images_of,
    metadata_options_of,
    tags_of,
)
from karpy.codec.convert.kubelets import kubelet_of
from karpy.codec.convert.metadata import (
    new_object,
    refuse_unknown,
    spec_of,
    template_metadata_of,
)
from karpy.codec.convert.moves import Moves
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.convert.requirements import requirements_of, taints_of
from karpy.codec.fields import JsonObject
from karpy.codec.providers import provider_of_key
from karpy.codec.schemas.ec2nodeclasses import EC2NodeClassSpec
from karpy.model.labels import NODE_POOL

_USUAL: Final = "WhenUnderutilized"
_POLICIES: Final = {_USUAL: "WhenEmptyOrUnderutilized"}
_KNOWN_POLICIES: Final = ("WhenEmpty", "WhenUnderutilized", "WhenEmptyOrUnderutilized", "Balanced")
_CONVERTED: Final = frozenset(
    {
        "amiFamily",
        "amiSelectorTerms",
        "blockDeviceMappings",
        "instanceProfile",
        "instanceStorePolicy",
        "kubelet",
        "metadataOptions",
        "role",
        "tags",
    }
)
_CARRIED: Final = tuple(
    each.encode_name for each in fields(EC2NodeClassSpec) if each.encode_name not in _CONVERTED
)
"""Fields of an EC2NodeClass that are the same today."""
_NETWORKS: Final = ("subnetSelectorTerms", "securityGroupSelectorTerms")
POOL_MOVES: Final[Moves] = {
    "spec.disruption.expireAfter": ("NodePool:spec.template.spec.expireAfter",),
    "spec.template.spec.nodeClassRef.apiVersion": (
        "NodePool:spec.template.spec.nodeClassRef.group",
    ),
}
"""Where the fields of a NodePool are today."""
CLASS_MOVES: Final[Moves] = {
    "spec.amiFamily": ("EC2NodeClass:spec.amiFamily", "EC2NodeClass:spec.amiSelectorTerms"),
}
"""Where the fields of an EC2NodeClass are today."""
_HALF: Final = "build the whole object first, as `kustomize build` does, or add it"
_METADATA_DEFAULTS: Final = {"httpPutResponseHopLimit": 2}
"""The old version's default for a field that `metadataOptions` omits; today's differs."""


def node_pool(root: OldFields, context: ConversionContext) -> Converted:
    """Return a NodePool of today."""
    made = new_object(root, CORE, "NodePool")
    spec = root.tried(None, spec_of)
    if spec is None:
        return Converted(())
    template = spec.tried_child("template")
    inner = template.tried_child("spec")
    disruption = spec.tried_child("disruption")
    kubelet = inner.tried({}, kubelet_of)
    inner.drop("resources", "it never had an effect in a NodePool")
    new_inner = {**_inner(inner, context), **_expiry(inner, disruption)}
    meta = template.tried_child("metadata")
    limits = spec.tried({}, OldFields.amounts, "limits")
    made["spec"] = {
        "template": {**meta.tried({}, template_metadata_of), "spec": new_inner},
        "disruption": disruption.tried({}, _disruption),
        **({"limits": limits} if limits else {}),
        **spec.carry("weight", "replicas"),
    }
    refuse_unknown(meta)
    for each in (inner, template, disruption, spec, root):
        each.drop_rest()
    return Converted((made,), kubelet, inner.path_of("kubelet"))


def node_claim(root: OldFields, context: ConversionContext) -> Converted:
    """Return a NodeClaim of today; one that no NodePool owns never expires, as before."""
    made = new_object(root, CORE, "NodeClaim")
    spec = root.tried(None, spec_of)
    if spec is None:
        return Converted(())
    kubelet = spec.tried({}, kubelet_of)
    made["spec"] = {**_inner(spec, context), **spec.carry("resources", "expireAfter")}
    if "expireAfter" not in made["spec"]:
        pool = (made["metadata"].get("labels") or {}).get(NODE_POOL, "")
        made["spec"].update(_claim_expiry(spec, pool, context))
    spec.drop_rest()
    root.drop_rest()
    return Converted((made,), kubelet, spec.path_of("kubelet"))


def node_class(root: OldFields, context: ConversionContext) -> Converted:
    """Return an EC2NodeClass of today."""
    made = new_object(root, AWS, EC2_CLASS)
    old = root.tried(None, spec_of)
    if old is None:
        return Converted(())
    spec = {
        **old.tried({}, _images),
        **old.tried({}, _networks),
        **old.tried({}, identity_of, context),
        "metadataOptions": old.tried({}, metadata_options_of, _METADATA_DEFAULTS),
        **old.tried({}, tags_of),
        **old.tried({}, disks_of),
    }
    if "kubelet" in old:
        spec["kubelet"] = old.tried({}, kubelet_of)
    if old.obj.get("instanceStorePolicy") == "RAID0":
        spec.update(old.carry("instanceStorePolicy"))
    old.drop("instanceStorePolicy", "RAID0 is the only policy there ever was")
    made["spec"] = {**spec, **old.carry(*_CARRIED)}
    old.drop_rest()
    root.drop_rest()
    return Converted((made,))


def _networks(old: OldFields) -> JsonObject:
    for key in _NETWORKS:
        selector = key.removesuffix("Terms")
        if key not in old and selector in old:
            old.take(selector)
            old.fail(selector, "is a field of AWSNodeTemplates", f"write `{key}: [{{tags: ...}}]`")
        if key not in old:
            old.fail(key, "is missing", _HALF)
    return old.carry(*_NETWORKS)


def _images(old: OldFields) -> JsonObject:
    terms: Any = old.take("amiSelectorTerms") or []
    if not isinstance(terms, list) or not all(isinstance(each, dict) for each in terms):
        old.fail("amiSelectorTerms", "is no list of objects", "write it as a list, `- ...`")
    if any("alias" in each for each in terms):
        return {**old.carry("amiFamily"), "amiSelectorTerms": terms}
    family = old.text("amiFamily") or old.fail("amiFamily", "is missing", _HALF)
    return images_of(old, family, terms, "amiSelectorTerms")


def _inner(spec: OldFields, context: ConversionContext) -> JsonObject:
    """Return what NodePools and NodeClaims have in common."""
    return {
        "nodeClassRef": spec.tried({}, _class_ref, context),
        "requirements": spec.tried([], requirements_of),
        **spec.tried({}, taints_of),
        **spec.carry("terminationGracePeriod"),
    }


def _class_ref(spec: OldFields, context: ConversionContext) -> JsonObject:
    if "nodeClassRef" not in spec:
        spec.fail("nodeClassRef", "is missing", _HALF)
    ref = spec.child("nodeClassRef")
    name = ref.text("name") or ref.fail("name", "is missing", "name the node class")
    version, group, kind = ref.text("apiVersion"), ref.text("group"), ref.text("kind")
    usual_group, usual_kind = context.classes.get(name) or _usual_class(spec)
    made = {
        "group": group or version.rpartition("/")[0] or usual_group,
        "kind": kind or usual_kind,
        "name": name,
    }
    if version:
        ref.note(FieldChange.RENAMED, "apiVersion", f"it is `group: {made['group']}` today")
    elif not group:
        ref.note(FieldChange.ADDED, "group", f"`{made['group']}`: today it must be written")
    if not kind:
        ref.note(FieldChange.ADDED, "kind", f"`{made['kind']}`: today it must be written")
    ref.drop_rest()
    return made


def _usual_class(spec: OldFields) -> tuple[str, str]:
    """Return group and kind of the node classes of the cloud that the requirements are about."""
    requirements = spec.obj.get("requirements")
    for each in requirements if isinstance(requirements, list) else ():
        key = each.get("key") if isinstance(each, dict) else None
        provider = provider_of_key(key) if isinstance(key, str) else None
        if provider is not None:
            return provider.classes[0]
    return AWS_GROUP, EC2_CLASS


def _expiry(inner: OldFields, disruption: OldFields) -> JsonObject:
    made = inner.carry("expireAfter")
    if "expireAfter" not in disruption:
        return made
    old = disruption.take("expireAfter")
    text = f"it is `spec.template.spec.expireAfter: {old}` today"
    disruption.note(FieldChange.RENAMED, "expireAfter", text)
    return {"expireAfter": old}


def _claim_expiry(spec: OldFields, pool: str, context: ConversionContext) -> JsonObject:
    after = context.expiries.get(pool, "720h") if pool else "Never"
    if not pool:
        text = "`Never`: a NodeClaim without a NodePool did not expire; today it does after 720h"
        spec.note(FieldChange.ADDED, "expireAfter", text)
    elif pool in context.expiries:
        text = f"`{after}`, as NodePool {pool} says: today each NodeClaim has it"
        spec.note(FieldChange.ADDED, "expireAfter", text)
    else:
        text = f"NodePool {pool} says it, and this call has none by that name; `{after}`, the "
        text += "default, is written; give both in one call"
        spec.note(FieldChange.LOST, "expireAfter", text)
    return {"expireAfter": after}


def _disruption(old: OldFields) -> JsonObject:
    policy = old.text("consolidationPolicy")
    if policy and policy not in _KNOWN_POLICIES:
        old.fail(
            "consolidationPolicy", f"is `{policy}`", "use one of: WhenEmpty, WhenUnderutilized"
        )
    after = old.obj.get("consolidateAfter")
    if (policy or _USUAL) == _USUAL and after not in (None, "Never"):
        what = f"is there next to `{_USUAL}`, which v1beta1 refuses"
        hint = "remove it, or convert: today they may be together"
        old.add_problem("consolidateAfter", what, hint)
    if policy == "WhenEmpty" and after is None:
        what = "is missing, and v1beta1 refuses `WhenEmpty` without it"
        old.add_problem("consolidateAfter", what, "add how long a node may be empty, such as `30s`")
    if policy in _POLICIES:
        text = f"it is `{_POLICIES[policy]}` today"
        old.note(FieldChange.RENAMED, "consolidationPolicy", text)
    if not policy:
        text = "`WhenEmptyOrUnderutilized`: the default of the old version, by today's name"
        old.note(FieldChange.ADDED, "consolidationPolicy", text)
    made: JsonObject = {
        "consolidationPolicy": _POLICIES.get(policy, policy) or "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s",
        **old.carry("consolidateAfter", "budgets"),
    }
    if "consolidateAfter" not in old:
        text = "`0s`: what the old version did where nothing is written"
        old.note(FieldChange.ADDED, "consolidateAfter", text)
    return made
