"""A NodePool and EC2NodeClass proposed for an entry of a cluster file or a group of machines."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import AWS, AWS_GROUP, CORE, EC2_CLASS, ConversionContext
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.fields import FieldInvalid, JsonObject

DISCOVERY: Final = "karpenter.sh/discovery"
LATEST: Final = "al2023@latest"
_NO_NAME: Final = re.compile(r"[^a-z0-9-]+")
_NAME_LENGTH: Final = 63
_ROLE: Final = "KarpenterNodeRole"


def name_of(old: OldFields, written: str, others: Iterable[str]) -> str:
    """Return a name that objects can have, as near as possible to the one that is written."""
    name = _name(written)
    if not name or len(name) > _NAME_LENGTH:
        old.fail(
            "",
            f"is named `{written}`, and no object can have such a name",
            f"write at most {_NAME_LENGTH} lower-case letters, digits and dashes",
        )
    twins = [each for each in others if _name(each) == name]
    if twins:
        problem = f"is named `{name}` as an object, as `{twins[0]}` is"
        old.fail("", problem, "give one of them another name, or convert it in another call")
    if name != written:
        text = f"`{written}` is `{name}`: names have lower-case letters, digits and dashes"
        old.note(FieldChange.RENAMED, "", text)
    return name


def _name(written: str) -> str:
    return _NO_NAME.sub("-", written.lower()).strip("-")


def role_of(old: OldFields, context: ConversionContext) -> JsonObject:
    """Return the IAM role of machines: the given one, or the usual one of the cluster."""
    if context.role:
        return {"role": context.role}
    if not context.cluster.name:
        old.fail("", "has no IAM role", "add `--role NAME` or `--cluster-name NAME`")
    role = f"{_ROLE}-{context.cluster.name}"
    old.note(
        FieldChange.ADDED, "role", f"`{role}`, the usual name; `--role NAME` gives another one"
    )
    return {"role": role}


def subnets_of(old: OldFields, context: ConversionContext) -> list[JsonObject]:
    """Return terms for the given tags of subnets, or for those of the cluster's discovery."""
    cluster = context.cluster
    return _terms(old, "subnet", cluster.subnet_tags, {DISCOVERY: cluster.name})


def security_groups_of(
    old: OldFields, context: ConversionContext, key: str = DISCOVERY
) -> list[JsonObject]:
    """Return terms for the given tags of security groups, or for the cluster's name at a key."""
    cluster = context.cluster
    return _terms(old, "security-group", cluster.security_group_tags, {key: cluster.name})


def _terms(
    old: OldFields, what: str, given: Mapping[str, str], usual: Mapping[str, str]
) -> list[JsonObject]:
    if given:
        return [{"tags": dict(given)}]
    shown = ", ".join(f"{key}: {value}" for key, value in usual.items())
    if not all(usual.values()):
        hint = f"add `--cluster-name NAME` or `--{what}-tag KEY=VALUE`"
        old.fail("", f"has no tags to find a {what.replace('-', ' ')} by", hint)
    text = f"tags `{shown}`; `--{what}-tag KEY=VALUE` gives others"
    old.note(FieldChange.ADDED, f"{what.replace('-g', 'G')}SelectorTerms", text)
    return [{"tags": dict(usual)}]


def root_disk(size: str, device: str = "/dev/xvda") -> JsonObject:
    """Return a mapping of an encrypted gp3 volume."""
    ebs = {
        "deleteOnTermination": True,
        "encrypted": True,
        "volumeSize": size,
        "volumeType": "gp3",
    }
    return {"deviceName": device, "ebs": ebs}


def pool_and_class(
    name: str, template: JsonObject, spec: JsonObject, class_spec: JsonObject
) -> tuple[JsonObject, JsonObject]:
    """Return both objects under one name; the spec of the template refers to the class."""
    ref = {"group": AWS_GROUP, "kind": EC2_CLASS, "name": name}
    inner = {"nodeClassRef": ref, **template["spec"]}
    pool: JsonObject = {
        "apiVersion": CORE,
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {**template, "spec": inner}, **spec},
    }
    node_class: JsonObject = {
        "apiVersion": AWS,
        "kind": EC2_CLASS,
        "metadata": {"name": name},
        "spec": class_spec,
    }
    return pool, node_class


def refuse_others(old: OldFields, known: Iterable[str]) -> None:
    """Refuse fields of other names; the hint has the nearest known name."""
    names = sorted(known)
    strange = [str(key) for key in old.obj if key not in names]
    if strange:
        faults = [
            FieldInvalid(old.path_of(each), "is unknown here", _hint(each, names))
            for each in strange
        ]
        faults[0].others = tuple(faults[1:])
        raise faults[0]


def _hint(key: str, names: Sequence[str]) -> str:
    near = get_close_matches(key, names, 1)
    return f"write `{near[0]}`" if near else f"write one of: {', '.join(names)}"
