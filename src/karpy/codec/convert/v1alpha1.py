"""AWSNodeTemplate of karpenter.k8s.aws/v1alpha1, and the same fields within a Provisioner."""

from itertools import product
from typing import Final

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import AWS, EC2_CLASS, ConversionContext, Converted
from karpy.codec.convert.images import (
    disks_of,
    identity_of,
    images_of,
    metadata_options_of,
    tags_of,
)
from karpy.codec.convert.metadata import new_object, spec_of
from karpy.codec.convert.moves import Moves
from karpy.codec.convert.oldfields import OldFields, path_of
from karpy.codec.fields import JsonObject

_IDS: Final = ("aws-ids", "aws::ids")
_NAME: Final = "aws::name"
_OWNERS: Final = "aws::owners"
_LAUNCH_TEMPLATE: Final = ("launchTemplate", "launchTemplateName")
_TERMS: Final = ("amiSelector", "securityGroupSelector", "subnetSelector")
MOVES: Final[Moves] = {
    "spec.amiFamily": ("EC2NodeClass:spec.amiFamily", "EC2NodeClass:spec.amiSelectorTerms"),
    **{f"spec.{key}": (f"EC2NodeClass:spec.{key}Terms",) for key in _TERMS},
    **{
        f"spec.{key}.*": (
            f"EC2NodeClass:spec.{key}Terms.0.tags.*",
            f"EC2NodeClass:spec.{key}Terms",
        )
        for key in _TERMS
    },
}
"""Where the fields of an AWSNodeTemplate are today."""
_METADATA_DEFAULTS: Final = {"httpTokens": "optional"}
"""EC2's default for a field that `metadataOptions` of the old version omits."""


def node_class(root: OldFields, context: ConversionContext) -> Converted:
    """Return an AWSNodeTemplate as an EC2NodeClass."""
    made = new_object(root, AWS, EC2_CLASS)
    spec = root.tried(None, spec_of)
    if spec is None:
        return Converted(())
    made["spec"] = node_class_spec(spec, context)
    root.drop_rest()
    return Converted((made,))


def node_class_spec(old: OldFields, context: ConversionContext) -> JsonObject:
    """Return the spec of an EC2NodeClass for what an AWSNodeTemplate or `provider` says."""
    for key in _LAUNCH_TEMPLATE:
        old.tried(None, _refuse, key)
    old.drop("apiVersion", "it has no meaning here")
    old.drop("kind", "it has no meaning here")
    made = old.tried({}, _images)
    made["subnetSelectorTerms"] = old.tried([], _network_terms, "subnetSelector")
    made["securityGroupSelectorTerms"] = old.tried([], _network_terms, "securityGroupSelector")
    made.update(old.tried({}, identity_of, context))
    made.update(old.tried({}, disks_of))
    made.update(old.carry("context", "detailedMonitoring", "userData"))
    made["metadataOptions"] = old.tried({}, metadata_options_of, _METADATA_DEFAULTS)
    made.update(old.tried({}, tags_of))
    old.drop_rest()
    return made


def _refuse(old: OldFields, key: str) -> None:
    """Refuse a launch template, which may bring its own security groups."""
    if key in old:
        old.take(key)
        old.fail(
            key,
            "names a launch template, and today nothing is launched by one",
            "write its images, disks, user data and security groups as fields of an EC2NodeClass",
        )


def _images(old: OldFields) -> JsonObject:
    terms = _image_terms(old)
    family = old.text("amiFamily")
    if not family:
        text = "AL2 is what the old version launched where no family is named; EKS has its images"
        text += " for Kubernetes 1.32 at most"
        old.note(FieldChange.ADDED, "amiFamily", text)
    return images_of(old, family or "AL2", terms, "amiSelector")


def _network_terms(old: OldFields, key: str) -> list[JsonObject]:
    terms = _terms(old, key)
    if not terms and any(each in old for each in _LAUNCH_TEMPLATE):
        return []
    if not terms:
        old.fail(key, "is missing", f"add `{key}` with tags or ids")
    old.note(FieldChange.RENAMED, key, f"it is `{key}Terms` today")
    return terms


def _image_terms(old: OldFields) -> list[JsonObject]:
    if "amiSelector" not in old:
        return []
    old.note(FieldChange.RENAMED, "amiSelector", "it is `amiSelectorTerms` today")
    return _terms(old, "amiSelector")


def _terms(old: OldFields, key: str) -> list[JsonObject]:
    """Write a selector as terms: a list of values between commas is one term for each of them."""
    texts = old.texts(key)
    for name in _IDS:
        if name in texts and not _split(texts[name]):
            old.fail(f"{key}.{name}", "names no id", "write ids with commas between, or remove it")
    values = {name: _split(value) or ["*"] for name, value in texts.items()}
    if not values:
        return []
    ids = [each for name in _IDS for each in values.pop(name, ())]
    if ids:
        for name in values:
            text = "a term with an id has no more conditions today; the ids alone are kept"
            old.notes.add(FieldChange.LOST, path_of(old.path_of(key), name), text)
        return [{"id": each} for each in ids]
    return [_term(dict(zip(values, each, strict=True))) for each in product(*values.values())]


def _term(chosen: dict[str, str]) -> JsonObject:
    made: JsonObject = {}
    if name := chosen.pop(_NAME, ""):
        made["name"] = name
    if owner := chosen.pop(_OWNERS, ""):
        made["owner"] = owner
    if chosen:
        made["tags"] = chosen
    return made


def _split(value: str) -> list[str]:
    """Return the values between commas."""
    return [part for each in value.split(",") if (part := each.strip())]
