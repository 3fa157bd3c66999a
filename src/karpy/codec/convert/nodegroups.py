"""Managed node groups of EKS, as `aws eks describe-nodegroup` prints them."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import ConversionContext, Converted
from karpy.codec.convert.groupfields import (
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
from karpy.codec.convert.images import al2_remark
from karpy.codec.convert.oldfields import OldFields, path_of
from karpy.codec.convert.proposals import (
    LATEST,
    name_of,
    pool_and_class,
    role_of,
    root_disk,
    security_groups_of,
)
from karpy.codec.fields import JsonObject
from karpy.model.labels import ARCH, CAPACITY_TYPE, ON_DEMAND, OS, RESERVED, SPOT

_CLUSTER_TAG: Final = "aws:eks:cluster-name"
"""The tag that EKS sets on the security group of a cluster."""
_CAPACITY: Final = {"ON_DEMAND": ON_DEMAND, "SPOT": SPOT, "CAPACITY_BLOCK": RESERVED}
_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}
_ALIASES: Final = {
    "AL2_": "al2",
    "AL2023_": "al2023",
    "BOTTLEROCKET_": "bottlerocket",
    "WINDOWS_CORE_2019_": "windows2019",
    "WINDOWS_FULL_2019_": "windows2019",
    "WINDOWS_CORE_2022_": "windows2022",
    "WINDOWS_FULL_2022_": "windows2022",
    "WINDOWS_CORE_2025_": "windows2025",
    "WINDOWS_FULL_2025_": "windows2025",
}
_NOT_IN_ALIASES: Final = ("FIPS", "FULL")
_WINDOWS: Final = "windows"
_DROPPED: Final = {
    "nodegroupArn": "it is about the group",
    "createdAt": "it is about the group",
    "modifiedAt": "it is about the group",
    "status": "it is about the group",
    "health": "it is about the group",
    "resources": "it names what the group is made of",
    "version": "nodes have the version of the control plane",
    "releaseVersion": "the image is the newest one for the version of the control plane",
    "nodeRepairConfig": "nodes are repaired with the feature gate NodeRepair, in all NodePools",
}
_LOST: Final = {
    "launchTemplate": "what it says is not in this answer; write its images, disks, user data and "
    "security groups as fields of the EC2NodeClass",
    "remoteAccess": "an EC2NodeClass has no SSH keys; use Session Manager or `userData`",
    "warmPoolConfig": "a NodePool has no warm pool; a CapacityBuffer keeps room free",
}


def node_group(old: OldFields, given: ConversionContext, *, others: Sequence[str]) -> Converted:
    """Return the NodePool and the EC2NodeClass for a managed node group."""
    written = old.text("nodegroupName") or old.fail(
        "nodegroupName", "is missing", "give the whole answer of `aws eks describe-nodegroup`"
    )
    name = name_of(old, written, others)
    cluster = replace(given.cluster, name=old.text("clusterName") or given.cluster.name)
    alias, machine = _images(old)
    types = types_of(old, "instanceTypes", texts_in(old, "instanceTypes"))
    written_labels = {
        key: (path_of("labels", key), value) for key, value in old.texts("labels").items()
    }
    labels, needs = with_labels(old, written_labels, [*types, *machine, _capacity(old)])
    inner: JsonObject = {"requirements": needs}
    if taints := [_taint(each) for each in old.children("taints")]:
        inner["taints"] = taints
    template = {**({"metadata": {"labels": labels}} if labels else {}), "spec": inner}
    sizes = old.child("scalingConfig")
    spec = {**_disruption(old), **size_of(sizes, "minSize", "maxSize", "desiredSize")}
    note_rest(sizes, {}, {})
    class_spec = _class_spec(old, alias, replace(given, cluster=cluster))
    note_rest(old, _DROPPED, _LOST)
    return Converted(pool_and_class(name, template, spec, class_spec))


def _images(old: OldFields) -> tuple[str, list[JsonObject]]:
    """Return the alias for the images of a group, and the requirements that they imply."""
    kind = old.text("amiType")
    family = next((each for each in _ALIASES if kind.startswith(each)), "")
    if not family:
        text = f"`{kind or 'no type'}` has no alias; `{LATEST}` stands there, write your images"
        old.note(FieldChange.LOST, "amiType", text)
        return LATEST, []
    alias = f"{_ALIASES[family]}@latest"
    for each in _NOT_IN_ALIASES:
        if each in kind.split("_"):
            text = f"`{alias}` has no {each} images; name yours in `amiSelectorTerms`"
            old.note(FieldChange.LOST, "amiType", text)
    text = f"it is the image alias `{alias}`, and requirements{al2_remark(alias)}"
    old.note(FieldChange.RENAMED, "amiType", text)
    arch = "arm64" if "ARM" in kind.split("_") else "amd64"
    system = _WINDOWS if alias.startswith(_WINDOWS) else "linux"
    return alias, [requirement(ARCH, arch), requirement(OS, system)]


def _capacity(old: OldFields) -> JsonObject:
    kind = old.text("capacityType") or "ON_DEMAND"
    if kind not in _CAPACITY:
        old.fail("capacityType", f"is `{kind}`", f"write one of: {', '.join(_CAPACITY)}")
    if _CAPACITY[kind] == RESERVED:
        text = "name the capacity block in `capacityReservationSelectorTerms`"
        old.note(FieldChange.LOST, "capacityType", text)
    return requirement(CAPACITY_TYPE, _CAPACITY[kind])


def _taint(old: OldFields) -> JsonObject:
    key = old.text("key") or old.fail("key", "is missing", "name the taint")
    effect = old.text("effect")
    if effect not in _EFFECTS:
        old.fail("effect", f"is `{effect}`", f"write one of: {', '.join(_EFFECTS)}")
    value = old.text("value")
    note_rest(old, {}, {})
    return {"key": key, "effect": _EFFECTS[effect], **({"value": value} if value else {})}


def _disruption(old: OldFields) -> JsonObject:
    """Return the pace of updates as a budget."""
    config = old.child("updateConfig")
    nodes = ""
    if "maxUnavailablePercentage" in config:
        nodes = f"{min(100, whole_number(config, 'maxUnavailablePercentage'))}%"
    elif "maxUnavailable" in config:
        nodes = str(whole_number(config, "maxUnavailable"))
    config.drop("updateStrategy", "replacements are there before a node is removed")
    note_rest(config, {}, {})
    if not nodes:
        return {}
    text = f"it is the budget `nodes: {nodes}`, which holds for consolidation, too"
    old.note(FieldChange.RENAMED, "updateConfig", text)
    return {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": nodes}]}}


def _class_spec(old: OldFields, alias: str, context: ConversionContext) -> JsonObject:
    tags = {key: (path_of("tags", key), value) for key, value in old.texts("tags").items()}
    return {
        "amiSelectorTerms": [{"alias": alias}],
        "subnetSelectorTerms": subnet_ids(old, "subnets", texts_in(old, "subnets"), context),
        "securityGroupSelectorTerms": security_groups_of(old, context, _CLUSTER_TAG),
        **_role(old, context),
        **_disk(old, alias),
        **own_tags(old, tags),
    }


def _role(old: OldFields, context: ConversionContext) -> JsonObject:
    name = old.text("nodeRole").rpartition("/")[2]
    if not name:
        return role_of(old, context)
    if context.role:
        text = f"`{context.role}`, as `--role` says, instead of `{name}`"
        old.note(FieldChange.RENAMED, "nodeRole", text)
        return {"role": context.role}
    old.note(FieldChange.RENAMED, "nodeRole", f"it is `role: {name}`")
    return {"role": name}


def _disk(old: OldFields, alias: str) -> JsonObject:
    if "diskSize" not in old:
        return {}
    device = "/dev/sda1" if alias.startswith(_WINDOWS) else "/dev/xvda"
    if alias.startswith("bottlerocket"):
        device = "/dev/xvdb"
    text = f"it is the size in `blockDeviceMappings`: {device}, gp3, encrypted"
    old.note(FieldChange.RENAMED, "diskSize", text)
    return {"blockDeviceMappings": [root_disk(f"{whole_number(old, 'diskSize')}Gi", device)]}
