"""Auto Scaling groups, as `aws autoscaling describe-auto-scaling-groups` prints them."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import ConversionContext, Converted
from karpy.codec.convert.groupfields import (
    Written,
    note_rest,
    own_tags,
    requirement,
    size_of,
    subnet_ids,
    texts_in,
    types_of,
    whole_number,
    with_labels,
)
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.convert.proposals import (
    LATEST,
    name_of,
    pool_and_class,
    role_of,
    security_groups_of,
)
from karpy.codec.fields import JsonObject
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE

_AUTOSCALER: Final = "k8s.io/cluster-autoscaler/"
_TEMPLATE: Final = f"{_AUTOSCALER}node-template/"
_LABEL: Final = f"{_TEMPLATE}label/"
_TAINT: Final = f"{_TEMPLATE}taint/"
_RESOURCE: Final = f"{_TEMPLATE}resources/"
_OPTION: Final = f"{_TEMPLATE}autoscaling-options/"
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_OWNED: Final = "kubernetes.io/cluster/"
_EKS_CLUSTER: Final = "eks:cluster-name"
_ALL: Final = 100
_ABOUT: Final = "it is about the group"
_DROPPED: Final = {
    "AutoScalingGroupARN": _ABOUT,
    "CreatedTime": _ABOUT,
    "Status": _ABOUT,
    "ServiceLinkedRoleARN": _ABOUT,
    "EnabledMetrics": _ABOUT,
    "DefaultCooldown": "a NodePool has no cooldown",
    "DefaultInstanceWarmup": "a node counts once it is initialized",
    "HealthCheckType": "nodes are repaired with the feature gate NodeRepair",
    "HealthCheckGracePeriod": "nodes are repaired with the feature gate NodeRepair",
    "TerminationPolicies": "disruption chooses nodes by its cost",
    "AvailabilityZones": "the subnets say it",
    "AvailabilityZoneIds": "the subnets say it",
    "AvailabilityZoneImpairmentPolicy": "zones without capacity are left out at launch",
    "CapacityReservationSpecification": "see `capacityReservationSelectorTerms`",
    "DesiredCapacityType": "machines count by their resources",
    "InstanceMaintenancePolicy": "see the budgets in `spec.disruption`",
    "Instances": "they are machines of the group",
    "CapacityRebalance": "an interruption queue does that for all NodePools",
    "PredictedCapacity": _ABOUT,
    "AvailabilityZoneDistribution": "topology spread constraints of pods decide it",
    "TrafficSources": _ABOUT,
}
_TEMPLATE_LOST: Final = (
    "what it says is not in this answer; write its images, disks, user data and security groups "
    "as fields of the EC2NodeClass"
)
_LOST: Final = {
    "LaunchTemplate": _TEMPLATE_LOST,
    "LaunchTemplateSpecification": _TEMPLATE_LOST,
    "LaunchConfigurationName": _TEMPLATE_LOST,
    "LoadBalancerNames": "machines are not registered with load balancers; use a Service",
    "TargetGroupARNs": "machines are not registered with target groups; use a Service",
    "PlacementGroup": "name it in `placementGroupSelector` of the EC2NodeClass",
    "NewInstancesProtectedFromScaleIn": "annotate pods or nodes with karpenter.sh/do-not-disrupt",
    "SuspendedProcesses": 'a NodePool has no such switch; a budget with `nodes: "0"` holds it',
    "WarmPoolConfiguration": "a NodePool has no warm pool; a CapacityBuffer keeps room free",
    "InstanceRequirements": "write it as requirements on karpenter.k8s.aws/instance-… labels",
    "WeightedCapacity": "machines count by their resources, and have no weight",
    "SpotMaxPrice": "a NodePool has no price; spot costs at most the on-demand price",
}


def scaling_group(old: OldFields, given: ConversionContext, *, others: Sequence[str]) -> Converted:
    """Return the NodePool and the EC2NodeClass for an Auto Scaling group."""
    key = "AutoScalingGroupName"
    hint = "give the whole answer of `aws autoscaling describe-auto-scaling-groups`"
    name = name_of(old, old.text(key) or old.fail(key, "is missing", hint), others)
    tags = _tags(old)
    cluster = replace(given.cluster, name=given.cluster.name or _cluster_in(tags))
    context = replace(given, cluster=cluster)
    needs = [*_types(old), _capacity(old)]
    subnets = [each.strip() for each in old.text("VPCZoneIdentifier").split(",") if each.strip()]
    if not subnets and "AvailabilityZones" in old:
        needs.append(requirement(ZONE, *texts_in(old, "AvailabilityZones")))
    labels, needs = with_labels(old, _within(tags, _LABEL), needs)
    inner: JsonObject = {"requirements": needs, **_taints(old, tags), **_expiry(old)}
    template = {**({"metadata": {"labels": labels}} if labels else {}), "spec": inner}
    _note_hints(old, tags)
    rest = {key: each for key, each in tags.items() if not key.startswith(_TEMPLATE)}
    text = f"`{LATEST}`: the group names no image"
    old.note(FieldChange.ADDED, "amiSelectorTerms", text)
    class_spec = {
        "amiSelectorTerms": [{"alias": LATEST}],
        "subnetSelectorTerms": subnet_ids(old, "VPCZoneIdentifier", subnets, context),
        "securityGroupSelectorTerms": security_groups_of(old, context),
        **role_of(old, context),
        **own_tags(old, rest),
    }
    spec = size_of(old, "MinSize", "MaxSize", "DesiredCapacity")
    note_rest(old, _DROPPED, _LOST)
    return Converted(pool_and_class(name, template, spec, class_spec))


def _tags(old: OldFields) -> dict[str, tuple[str, str]]:
    made = {}
    for each in old.children("Tags"):
        key = each.text("Key") or each.fail("Key", "is missing", "name the tag")
        path = each.path.removeprefix(f"{old.path}." if old.path else "")
        made[key] = (path, each.text("Value"))
    return made


def _within(tags: Written, prefix: str) -> dict[str, tuple[str, str]]:
    return {key.removeprefix(prefix): each for key, each in tags.items() if key.startswith(prefix)}


def _cluster_in(tags: Written) -> str:
    """Return the cluster that the tags of a group name; empty if they name none."""
    if _EKS_CLUSTER in tags:
        return tags[_EKS_CLUSTER][1]
    found = _within(tags, _AUTOSCALER)
    owned = [key for key, (_, value) in found.items() if value == "owned" and "/" not in key]
    return next(iter([*_within(tags, _OWNED), *owned]), "")


def _note_hints(old: OldFields, tags: Written) -> None:
    for key, (path, _) in tags.items():
        if key.startswith(_RESOURCE):
            text = "what a machine has is known of its instance type"
            old.note(FieldChange.DROPPED, path, text)
        elif key.startswith(_OPTION):
            text = f"`{key.removeprefix(_OPTION)}`: see `spec.disruption` of the NodePool"
            old.note(FieldChange.LOST, path, text)
        elif key.startswith(_TEMPLATE) and not key.startswith((_LABEL, _TAINT)):
            old.note(FieldChange.LOST, path, f"`{key}` is unknown here and not carried over")


def _taints(old: OldFields, tags: Written) -> JsonObject:
    made = []
    for key, (path, text) in _within(tags, _TAINT).items():
        value, _, effect = text.rpartition(":")
        if effect not in _EFFECTS:
            problem = f"is `{text}`, not a value and an effect"
            old.fail(path, problem, f"write VALUE:EFFECT, with one of: {', '.join(_EFFECTS)}")
        made.append({"key": key, "effect": effect, **({"value": value} if value else {})})
    return {"taints": made} if made else {}


def _expiry(old: OldFields) -> JsonObject:
    seconds = whole_number(old, "MaxInstanceLifetime")
    if not seconds:
        return {}
    old.note(FieldChange.RENAMED, "MaxInstanceLifetime", f"it is `expireAfter: {seconds}s`")
    return {"expireAfter": f"{seconds}s"}


def _types(old: OldFields) -> list[JsonObject]:
    """Return the instance types of the policy, or else those of the group's machines."""
    policy = old.child("MixedInstancesPolicy").child("LaunchTemplate")
    types = list(_overrides(policy))
    note_rest(policy, _DROPPED, _LOST)
    if not types:
        types = [each.text("InstanceType") for each in old.children("Instances")]
        if any(types):
            text = "their instance types: the group names none itself"
            old.note(FieldChange.RENAMED, "Instances", text)
    return types_of(old, "MixedInstancesPolicy", [each for each in types if each])


def _overrides(policy: OldFields) -> Iterator[str]:
    for each in policy.children("Overrides"):
        yield each.text("InstanceType")
        note_rest(each, _DROPPED, _LOST)


def _capacity(old: OldFields) -> JsonObject:
    policy = old.child("MixedInstancesPolicy")
    shares = policy.child("InstancesDistribution")
    base = whole_number(shares, "OnDemandBaseCapacity")
    key = "OnDemandPercentageAboveBaseCapacity"
    percent = whole_number(shares, key) if key in shares else _ALL
    for name in ("OnDemandAllocationStrategy", "SpotAllocationStrategy", "SpotInstancePools"):
        shares.drop(name, "instance types are chosen by price and, for spot, by capacity")
    note_rest(shares, _DROPPED, _LOST)
    policy.take("LaunchTemplate")
    note_rest(policy, _DROPPED, _LOST)
    if "MixedInstancesPolicy" not in old:
        text = f"`{ON_DEMAND}`, unless the launch template asks for spot: add `{SPOT}` then"
        old.note(FieldChange.ADDED, "MixedInstancesPolicy", text)
    if percent >= _ALL:
        return requirement(CAPACITY_TYPE, ON_DEMAND)
    if not base and not percent:
        return requirement(CAPACITY_TYPE, SPOT)
    text = (
        f"{base} machines and {percent}% of the others were on demand; a NodePool with both takes "
        "spot first, so make two with limits to keep a share"
    )
    shares.note(FieldChange.LOST, key, text)
    return requirement(CAPACITY_TYPE, SPOT, ON_DEMAND)
