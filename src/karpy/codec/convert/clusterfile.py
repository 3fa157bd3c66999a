"""Cluster definition files: a mapping `karpenter.node_pools`, with one entry for each pool."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpy.codec.comments import within
from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.drafts import ConversionContext, Converted, NamedCluster, Source
from karpy.codec.convert.images import tags_of
from karpy.codec.convert.metadata import template_metadata_of
from karpy.codec.convert.moves import Moves
from karpy.codec.convert.objects import Found
from karpy.codec.convert.oldfields import Notes, OldFields, as_text
from karpy.codec.convert.proposals import (
    LATEST,
    name_of,
    pool_and_class,
    refuse_others,
    role_of,
    root_disk,
    security_groups_of,
    subnets_of,
)
from karpy.codec.fields import NO_AMOUNT, FieldInvalid, JsonObject, describe
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.resources import parse_quantity

_TOP: Final = "karpenter"
_POOLS: Final = "node_pools"
_DOTTED: Final = f"{_TOP}.{_POOLS}"
_DEFAULTS: Final = ("cluster_name", "role", "security_group_tags", "subnet_tags")
_ENTRY: Final = ("annotations", "labels", "limits", "node_class", "requirements", "taints")
_NODE_CLASS: Final = ("extra_securitygroup_ids", "gpu_enabled", "public", "tags", "volumeSize")
_LIMITS: Final = ("cpu", "ephemeral-storage", "memory", "nodes", "pods")
_REQUIREMENT: Final = ("key", "minValues", "operator", "values")
_TAINT: Final = ("effect", "key", "value")
_EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_COMPARISONS: Final = ("Gt", "Gte", "Lt", "Lte")
_OPERATORS: Final = ("DoesNotExist", "Exists", "In", "NotIn", *_COMPARISONS)
_LOWER_CASE: Final = frozenset(
    {INSTANCE_TYPE, *(f"karpenter.k8s.aws/instance-{x}" for x in ("category", "family", "size"))}
)
"""Labels whose values are all in lower case."""
_MOVES: Final[Moves] = {
    "annotations": ("NodePool:spec.template.metadata.annotations",),
    "labels": ("NodePool:spec.template.metadata.labels",),
    "limits": ("NodePool:spec.limits",),
    "node_class": ("EC2NodeClass:spec",),
    "node_class.extra_securitygroup_ids": ("EC2NodeClass:spec.securityGroupSelectorTerms",),
    "node_class.public": ("EC2NodeClass:spec.associatePublicIPAddress",),
    "node_class.volumeSize": ("EC2NodeClass:spec.blockDeviceMappings",),
    "requirements": ("NodePool:spec.template.spec.requirements",),
    "taints": ("NodePool:spec.template.spec.taints",),
}
_GROUP_ID: Final = re.compile(r"sg-[0-9a-z]+")
_SIZE: Final = re.compile(r"[1-9][0-9]{0,3}(?:Gi|G)|[1-9]Ti|[1-9]T")


def is_cluster_file(value: JsonObject) -> bool:
    """Say whether an object is no Kubernetes object, and has a mapping of pools."""
    inner = value.get(_TOP)
    return "kind" not in value and (
        _DOTTED in value or (isinstance(inner, dict) and _POOLS in inner)
    )


def sources_in(found: Found) -> list[Source]:
    """Return the pools of a file, and the file itself if it has other fields."""
    notes = Notes(found.where)
    whole = OldFields(found.value, "", notes)
    try:
        own = _defaults(whole)
        pools = _pools(whole)
    except FieldInvalid:
        return [Source(found, _file)]
    made: list[Source] = []
    for key, value in pools.obj.items():
        name = str(key)
        where = f"{found.where}, pool {name}"
        others = [str(each) for each in pools.obj if each != key]
        steps = (*((_DOTTED,) if _DOTTED in whole.obj else (_TOP, _POOLS)), name)
        part = Found(
            found.file,
            where,
            {} if value is None else value,
            pools.path_of(name),
            comments=within(found.comments, steps),
        )
        change = partial(_pool, name=name, own=own, others=others)
        made.append(Source(part, change, _MOVES))
    has_more = set(found.value) - {_TOP, _DOTTED, "defaults"} or _other_fields(whole)
    return [Source(found, _file), *made] if has_more or not made else made


def _other_fields(whole: OldFields) -> list[str]:
    inner = whole.child(_TOP) if _TOP in whole else whole
    return [key for key in inner.obj if _TOP in whole and key != _POOLS]


def _file(root: OldFields, _context: ConversionContext) -> Converted:
    """Return no object: note the fields of the file that are not about pools."""
    if root.is_left("cluster_name") and not root.child("defaults").obj.get("cluster_name"):
        root.note(FieldChange.RENAMED, "cluster_name", "it names the cluster, as in `defaults`")
    _defaults(root)
    _pools(root)
    text = "it is not about node pools"
    for key in _other_fields(root):
        root.child(_TOP).note(FieldChange.DROPPED, key, text)
    for key in root.obj:
        if key not in {_TOP, _DOTTED, "defaults"}:
            root.drop(str(key), text)
    return Converted(())


def _pools(root: OldFields) -> OldFields:
    if _DOTTED in root.obj:
        if _TOP in root and _POOLS in root.child(_TOP):
            root.fail(_DOTTED, f"stands beside `{_TOP}: {{{_POOLS}: …}}`", "write one of them")
        return root.child(_DOTTED)
    return root.child(_TOP).child(_POOLS)


def _defaults(root: OldFields) -> ConversionContext:
    old = root.child("defaults")
    refuse_others(old, _DEFAULTS)
    name = old.text("cluster_name") or root.text("cluster_name")
    cluster = NamedCluster(name, _texts(old, "subnet_tags"), _texts(old, "security_group_tags"))
    return ConversionContext(role=old.text("role"), cluster=cluster)


def _pool(
    entry: OldFields,
    given: ConversionContext,
    *,
    name: str,
    own: ConversionContext,
    others: Sequence[str],
) -> Converted:
    """Return the NodePool and EC2NodeClass of one entry; options of the call come first."""
    entry.tried(None, refuse_others, _ENTRY)
    cluster = NamedCluster(
        given.cluster.name or own.cluster.name,
        given.cluster.subnet_tags or own.cluster.subnet_tags,
        given.cluster.security_group_tags or own.cluster.security_group_tags,
    )
    context = replace(given, role=given.role or own.role, cluster=cluster)
    texts = {key: entry.tried({}, _texts, key) for key in ("labels", "annotations")}
    inner: JsonObject = {"requirements": entry.tried([], _all, "requirements", _requirement)}
    if taints := entry.tried([], _all, "taints", _taint):
        inner["taints"] = taints
    return Converted(
        pool_and_class(
            entry.tried("", name_of, name, others),
            {**template_metadata_of(OldFields(texts, entry.path, entry.notes)), "spec": inner},
            entry.tried({}, _limits),
            entry.tried({}, _class_spec, context),
        )
    )


def _all(entry: OldFields, key: str, read: Callable[[OldFields], JsonObject]) -> list[JsonObject]:
    return [each.tried({}, read) for each in _items(entry, key)]


def _class_spec(entry: OldFields, context: ConversionContext) -> JsonObject:
    old = entry.child("node_class")
    old.tried(None, refuse_others, _NODE_CLASS)
    made: JsonObject = {
        **old.tried({}, _images),
        "subnetSelectorTerms": old.tried([], subnets_of, context),
        "securityGroupSelectorTerms": [
            *old.tried([], security_groups_of, context),
            *old.tried([], _extra_groups),
        ],
        **old.tried({}, role_of, context),
    }
    if "public" in old:
        made["associatePublicIPAddress"] = old.tried(False, OldFields.switch, "public")
        old.note(FieldChange.RENAMED, "public", "it is `associatePublicIPAddress`")
    if "volumeSize" in old:
        made["blockDeviceMappings"] = [root_disk(old.tried("", _size))]
        text = "it is the size in `blockDeviceMappings`: /dev/xvda, gp3, encrypted"
        old.note(FieldChange.RENAMED, "volumeSize", text)
    if old.tried(None, _texts, "tags"):
        made.update(tags_of(old))
    return made


def _images(old: OldFields) -> JsonObject:
    old.note(FieldChange.ADDED, "amiSelectorTerms", f"`{LATEST}`: the file names no image")
    if "gpu_enabled" in old:
        is_on = old.switch("gpu_enabled")
        text = f"`{LATEST}` has drivers on instance types with GPUs, and on no others"
        old.note(FieldChange.RENAMED if is_on else FieldChange.DROPPED, "gpu_enabled", text)
    return {"amiSelectorTerms": [{"alias": LATEST}]}


def _extra_groups(old: OldFields) -> list[JsonObject]:
    key = "extra_securitygroup_ids"
    ids = old.take(key) or []
    if not isinstance(ids, list):
        old.fail(key, f"is {describe(ids)}, not a list", "write it as a list, `- sg-…`")
    for index, each in enumerate(ids):
        if not isinstance(each, str) or not _GROUP_ID.fullmatch(each):
            problem = f"is {describe(each)}, not the id of a security group"
            old.fail(f"{key}[{index}]", problem, "write `sg-` and the digits after it")
    if ids:
        old.note(FieldChange.RENAMED, key, "each is one of `securityGroupSelectorTerms`")
    return [{"id": each} for each in ids]


def _size(old: OldFields) -> str:
    value = old.take("volumeSize")
    size = f"{value}Gi" if type(value) is int or str(value).isdecimal() else str(value)
    if not _SIZE.fullmatch(size):
        old.fail("volumeSize", f"is {describe(value)}, not a size", "write it as `100Gi`")
    return size


def _limits(entry: OldFields) -> JsonObject:
    old = entry.child("limits")
    refuse_others(old, {*_LIMITS, *(key for key in old.obj if "/" in str(key))})
    _texts(entry, "limits")
    for key, value in old.obj.items():
        try:
            parse_quantity(str(value), str(key))
        except NO_AMOUNT:
            old.fail(
                str(key), f"is {describe(value)}, not an amount", "write it as `100` or `64Gi`"
            )
    limits = entry.amounts("limits")
    return {"limits": limits} if limits else {}


def _items(entry: OldFields, key: str) -> Iterator[OldFields]:
    """Walk through a list of objects, or through a mapping of names to objects."""
    if not isinstance(entry.obj.get(key), dict):
        yield from entry.children(key)
        return
    named = entry.child(key)
    for name, each in named.obj.items():
        yield OldFields(each, named.path_of(str(name)), entry.notes)


def _requirement(old: OldFields) -> JsonObject:
    refuse_others(old, _REQUIREMENT)
    key = old.text("key") or old.fail("key", "is missing", "name a label")
    operator = _one_of(old, "operator", _OPERATORS)
    given = old.take("values")
    if given is not None and not isinstance(given, list):
        old.fail("values", "is no list", "write the values as a list, `- ...`")
    values = [as_text(each) for each in given or ()]
    _check_values(old, key, operator, values)
    made: JsonObject = {"key": key, "operator": operator}
    if values:
        made["values"] = values
    return {**made, **old.carry("minValues")}


def _check_values(old: OldFields, key: str, operator: str, values: list[str]) -> None:
    if operator == "In" and not values:
        old.fail("values", "is empty", "write at least one value")
    if operator in _COMPARISONS and not (len(values) == 1 and values[0].isdecimal()):
        old.fail("values", f"is not one whole number, as {operator} needs it", 'write `["4"]`')
    for index, each in enumerate(values):
        if key in _LOWER_CASE and each != each.lower():
            problem = f"is `{each}`, and no instance type has a capital in `{key}`"
            old.fail(f"values[{index}]", problem, f"write `{each.lower()}`")


def _taint(old: OldFields) -> JsonObject:
    refuse_others(old, _TAINT)
    key = old.text("key") or old.fail("key", "is missing", "name the taint")
    made: JsonObject = {"key": key, "effect": _one_of(old, "effect", _EFFECTS)}
    value = as_text(old.take("value"))
    return {**made, "value": value} if value else made


def _one_of(old: OldFields, key: str, known: tuple[str, ...]) -> str:
    value = old.text(key)
    if value not in known:
        problem = f"is `{value}`" if value else "is missing"
        old.fail(key, problem, f"write one of: {', '.join(known)}")
    return value


def _texts(old: OldFields, key: str) -> dict[str, str]:
    """Return a mapping to text; fail for a value that is an object or a list."""
    fields = old.child(key)
    for name, each in fields.obj.items():
        if not str(name):
            old.fail(key, "has an entry without a name", "name it, or remove it")
        if isinstance(each, dict | list):
            fields.fail(str(name), f"is {describe(each)}, not text", "write one value")
    return old.texts(key)
