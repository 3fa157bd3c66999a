"""Fields that managed node groups and Auto Scaling groups have in common."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import ConversionContext
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.convert.proposals import subnets_of
from karpy.codec.fields import JsonObject, describe
from karpy.model.labels import INSTANCE_TYPE, NODE_POOL, WELL_KNOWN, is_restricted, normalise

_OWN_DOMAINS: Final = ("karpenter.sh", "karpenter.k8s.aws")
_AUTOSCALER: Final = "k8s.io/cluster-autoscaler/"
_RESERVED_TAGS: Final = ("aws:", "eks:", "kubernetes.io/cluster", "karpenter.", _AUTOSCALER)
_SUBNET: Final = re.compile(r"subnet-[0-9a-z]+")

Written = Mapping[str, tuple[str, str]]
"""Names, each with the path where it is written, and its value."""


def requirement(key: str, *values: str) -> JsonObject:
    """Return a requirement that one of these values meets."""
    return {"key": key, "operator": "In", "values": list(values)}


def types_of(old: OldFields, key: str, types: Sequence[str]) -> list[JsonObject]:
    """Return the requirement on instance types, if the group names any."""
    if types:
        return [requirement(INSTANCE_TYPE, *dict.fromkeys(types))]
    text = "no instance type is named here; without a requirement any type may be launched"
    old.note(FieldChange.LOST, key, text)
    return []


def subnet_ids(
    old: OldFields, key: str, ids: Sequence[str], context: ConversionContext
) -> list[JsonObject]:
    """Return terms for subnets by their ids, or by tags if the group names none."""
    for each in ids:
        if not _SUBNET.fullmatch(each):
            old.fail(key, f"names `{each}`, not the id of a subnet", "write `subnet-…`")
    return [{"id": each} for each in ids] or subnets_of(old, context)


def with_labels(
    old: OldFields, written: Written, needs: Sequence[JsonObject]
) -> tuple[dict[str, str], list[JsonObject]]:
    """Return labels, and as requirements those that the instance type or zone determines."""
    labels, made = {}, list(needs)
    values = {each["key"]: each["values"] for each in needs}
    for key, (path, value) in written.items():
        name = normalise(key)
        if _is_of_karpenter(name):
            old.note(FieldChange.LOST, path, f"no NodePool may set the label `{key}`")
        elif name not in WELL_KNOWN:
            labels[key] = value
        elif name not in values:
            made.append(requirement(name, value))
            old.note(FieldChange.RENAMED, path, f"it is a requirement on `{name}`")
        elif value in values[name]:
            old.note(FieldChange.DROPPED, path, f"the requirement on `{name}` says it")
        else:
            text = f"the requirement on `{name}` is {', '.join(values[name])}, not `{value}`"
            old.note(FieldChange.LOST, path, text)
    return labels, made


def _is_of_karpenter(key: str) -> bool:
    is_own = key not in WELL_KNOWN and key.partition("/")[0].endswith(_OWN_DOMAINS)
    return is_own or key == NODE_POOL or is_restricted(key)


def own_tags(old: OldFields, written: Written) -> JsonObject:
    """Return the tags that machines may be given, without those that services write."""
    made = {}
    for key, (path, value) in written.items():
        if key.startswith(_RESERVED_TAGS):
            text = "it is about the group; no NodePool or machine needs it"
            old.note(FieldChange.DROPPED, path, text)
        else:
            made[key] = value
    return {"tags": made} if made else {}


def size_of(old: OldFields, least: str, most: str, now: str) -> JsonObject:
    """Return the limit on the number of nodes; note the minimum, which NodePools do not have."""
    made: JsonObject = {}
    if most in old:
        limit = whole_number(old, most)
        made["limits"] = {"nodes": limit}
        old.note(FieldChange.RENAMED, most, f"it is `limits: {{nodes: {limit}}}`")
    if minimum := whole_number(old, least):
        text = (
            f"the group kept {minimum} or more, and a NodePool has no minimum; "
            f"add a NodePool with `replicas: {minimum}`, or a CapacityBuffer"
        )
        old.note(FieldChange.LOST, least, text)
    elif least in old:
        old.note(FieldChange.DROPPED, least, "a NodePool keeps no node that no pod needs")
    old.drop(now, "pods decide how many nodes there are")
    return made


def whole_number(old: OldFields, key: str) -> int:
    """Return a number that is not negative; 0 if the field is missing."""
    value = old.take(key)
    if value is None:
        return 0
    if type(value) is not int or value < 0:
        old.fail(key, f"is {describe(value)}, not a whole number", "write `0` or more")
    return value


def texts_in(old: OldFields, key: str) -> list[str]:
    """Return a list of texts."""
    value = old.take(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        old.fail(key, "is no list of texts", "give the answer of the AWS CLI as it is")
    return value


def note_rest(old: OldFields, dropped: Mapping[str, str], lost: Mapping[str, str]) -> None:
    """Note each field that is left: without an effect, without a counterpart, or unknown here."""
    for key, value in old.obj.items():
        is_left = old.is_left(key)
        old.take(key)
        if not is_left or value in ([], {}, "", False):
            continue
        if key in dropped:
            old.note(FieldChange.DROPPED, key, dropped[key])
        else:
            old.note(
                FieldChange.LOST, key, lost.get(key, "it is unknown here and not carried over")
            )
