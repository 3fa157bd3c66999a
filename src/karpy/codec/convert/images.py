"""Fields of an EC2NodeClass that every old version wrote differently: images, role, disks, tags."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import fields

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import ConversionContext
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.codec.schemas.ec2devices import BlockDevice

NO_ROLE: Final = "${KARPENTER_NODE_ROLE}"
"""The placeholder for a role that only users know."""
_ALIASES: Final = {
    "AL2": "al2",
    "AL2023": "al2023",
    "Bottlerocket": "bottlerocket",
    "Windows2019": "windows2019",
    "Windows2022": "windows2022",
    "Windows2025": "windows2025",
}
_VOLUME_FIELDS: Final = tuple(each.encode_name for each in fields(BlockDevice))
_UBUNTU: Final = "Ubuntu"
_CUSTOM: Final = "Custom"
_BOTTLEROCKET: Final = "bottlerocket"
_NO_TOML: Final = ("#!", "MIME-Version", "apiVersion:", "<powershell>")
_TOML: Final = "[settings"
_UNREGISTERED: Final = "karpenter.sh/unregistered"
_UBUNTU_DISK: Final = {
    "deviceName": "/dev/sda1",
    "rootVolume": True,
    "ebs": {"encrypted": True, "volumeSize": "20Gi", "volumeType": "gp3"},
}
_RESERVED_TAGS: Final = (
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.k8s.aws/ec2nodeclass",
)


def al2_remark(alias: str) -> str:
    """Return the remark on images of AL2, which EKS builds no longer; empty for other images."""
    is_al2 = alias.startswith("al2@")
    return "; EKS has images of AL2 for Kubernetes 1.32 at most" if is_al2 else ""


def images_of(old: OldFields, family: str, terms: list[JsonObject], selector: str) -> JsonObject:
    """Return `amiSelectorTerms`, and the family and disks that must be written beside them."""
    if family not in {*_ALIASES, _UBUNTU, _CUSTOM}:
        old.fail("amiFamily", f"is `{family}`", f"use one of: {', '.join(_ALIASES)}, Custom")
    if not terms:
        return _images_by_alias(old, family, selector)
    if family == _CUSTOM and _UNREGISTERED not in str(old.obj.get("userData")):
        text = f"today nodes of Custom images register with the taint `{_UNREGISTERED}:NoExecute`; "
        text += "have the kubelet do so by `userData`, so that no pod comes too early"
        old.note(FieldChange.LOST, "amiFamily", text)
    if family != _UBUNTU:
        return {"amiFamily": family, "amiSelectorTerms": terms}
    text = "AL2 starts Ubuntu images in the same way; today there is no family Ubuntu"
    old.note(FieldChange.RENAMED, "amiFamily", text)
    made: JsonObject = {"amiFamily": "AL2", "amiSelectorTerms": terms}
    if "blockDeviceMappings" not in old:
        old.note(FieldChange.ADDED, "blockDeviceMappings", "the disk that the family Ubuntu had")
        made["blockDeviceMappings"] = [_UBUNTU_DISK]
    return made


def _images_by_alias(old: OldFields, family: str, selector: str) -> JsonObject:
    if family not in _ALIASES:
        old.fail(
            "amiFamily",
            f"is {family} without `{selector}`, and today no image is known by that name",
            f"add `{selector}` with the id, name or tags of the images",
        )
    alias = f"{_ALIASES[family]}@latest"
    if "amiFamily" in old:
        text = f"it is the image alias `{alias}` today{al2_remark(alias)}"
        old.note(FieldChange.RENAMED, "amiFamily", text)
    return {"amiSelectorTerms": [{"alias": alias}]}


def identity_of(old: OldFields, context: ConversionContext) -> JsonObject:
    """Return the role or the instance profile of machines; today there is exactly one of them."""
    role, profile = old.text("role"), old.text("instanceProfile")
    if role and profile:
        text = "today a class has one of `role` and `instanceProfile`; the role is kept"
        old.note(FieldChange.LOST, "instanceProfile", text)
    if role:
        return {"role": role}
    if profile:
        return {"instanceProfile": profile}
    if context.role:
        old.note(FieldChange.ADDED, "role", "as `--role` says")
        return {"role": context.role}
    if context.profile:
        text = "`aws.defaultInstanceProfile` of the global settings; today each class names it"
        old.note(FieldChange.ADDED, "instanceProfile", text)
        return {"instanceProfile": context.profile}
    text = (
        "neither `role` nor `instanceProfile` is written here, and today one is needed; "
        f"fill in `{NO_ROLE}`, or convert with `--role NAME`"
    )
    old.note(FieldChange.LOST, "role", text)
    return {"role": NO_ROLE}


def metadata_options_of(old: OldFields, defaults: JsonObject) -> JsonObject:
    """Return `metadataOptions` with the defaults of the old version, where today's differ."""
    if "metadataOptions" not in old:
        text = "the default of the old version: answers travel 2 hops, to pods too; today 1"
        old.note(FieldChange.ADDED, "metadataOptions", text)
        return {"httpPutResponseHopLimit": 2, "httpTokens": "required"}
    given = old.child("metadataOptions")
    for key in (key for key in defaults if key not in given):
        given.note(
            FieldChange.ADDED, key, "the default of the old version, which is another one today"
        )
    return {**given.obj, **{key: each for key, each in defaults.items() if key not in given}}


def disks_of(old: OldFields) -> JsonObject:
    """Return `blockDeviceMappings`, if there are any."""
    if "blockDeviceMappings" not in old:
        return {}
    return {"blockDeviceMappings": [_disk(each) for each in old.children("blockDeviceMappings")]}


def _disk(old: OldFields) -> JsonObject:
    made = old.carry("deviceName", "rootVolume")
    if "ebs" in old:
        ebs = old.child("ebs")
        made["ebs"] = ebs.carry(*_VOLUME_FIELDS)
        ebs.drop_rest()
    if "virtualName" in old:
        old.take("virtualName")
        text = "today local disks have no names here; see `instanceStorePolicy`"
        old.note(FieldChange.LOST, "virtualName", text)
    old.drop_rest()
    return made


def tags_of(old: OldFields) -> JsonObject:
    """Return the tags that users may give."""
    tags = old.child("tags")
    made = {}
    for key, value in old.texts("tags").items():
        if key in _RESERVED_TAGS or key.startswith("kubernetes.io/cluster"):
            tags.drop(key, "the autoscaler sets this tag itself, and today refuses it here")
        else:
            made[key] = value
    return {"tags": made} if made else {}


def user_data_faults(node_class: JsonObject) -> Iterator[FieldInvalid]:
    """Find user data in a format that the images of an EC2NodeClass do not accept."""
    spec = node_class.get("spec") or {}
    text = str(spec.get("userData") or "").lstrip()
    terms = spec.get("amiSelectorTerms") or ()
    alias = next((str(each["alias"]) for each in terms if "alias" in each), "")
    family = str(spec.get("amiFamily") or alias.partition("@")[0]).lower()
    if family == _BOTTLEROCKET and text.startswith(_NO_TOML):
        hint = "write settings of Bottlerocket, or choose images of another family"
        yield FieldInvalid("spec.userData", "is no TOML, which Bottlerocket takes alone", hint)
    elif family.startswith("al2") and text.startswith(_TOML):
        hint = "choose images of Bottlerocket, or write a script or MIME parts"
        yield FieldInvalid("spec.userData", "is TOML, which Bottlerocket takes alone", hint)
