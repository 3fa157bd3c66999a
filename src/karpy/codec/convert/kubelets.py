"""Kubelet settings: old versions have them in the pool, today they are in its EC2NodeClass."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from karpy.codec.convert.conversion import FieldChange, Note
from karpy.codec.convert.drafts import ObjectDraft
from karpy.codec.convert.neighbours import nearness
from karpy.codec.convert.oldfields import Notes, OldFields
from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.codec.jsontext import parse_json
from karpy.codec.limits import Unparsable

_AMOUNTS: Final = (
    "kubeReserved",
    "systemReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
)
_REST: Final = (
    "clusterDNS",
    "cpuCFSQuota",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "maxPods",
    "podsPerCore",
)


_ANNOTATION: Final = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"
KUBELET_ANNOTATION_PATH: Final = f"metadata.annotations[{_ANNOTATION}]"


def kubelet_of(owner: OldFields, key: str = "kubelet") -> JsonObject:
    """Return the kubelet settings under a key of an object, in today's form."""
    old = owner.child(key)
    old.drop("containerRuntime", "containerd is the only runtime left")
    made = {key: old.texts(key) for key in _AMOUNTS if key in old}
    made.update(old.carry(*_REST))
    old.drop_rest()
    return made


def without_kubelet_annotation(obj: JsonObject, notes: Notes) -> tuple[JsonObject, JsonObject]:
    """
    Return a NodePool without its annotation of kubelet settings, and these settings.

    Karpenter's conversion to v1 writes the annotation. Karpenter 1.0 alone reads it; later versions
    stop if a NodePool has it.
    """
    meta = obj.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    text = annotations.get(_ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(meta, dict) or not isinstance(annotations, dict) or text is None:
        return obj, {}
    try:
        value = parse_json(str(text))
    except Unparsable as error:
        hint = "remove it, and write `spec.kubelet` of the EC2NodeClass"
        raise FieldInvalid(KUBELET_ANNOTATION_PATH, f"is no JSON: {error}", hint) from error
    kubelet = kubelet_of(OldFields({"kubelet": value}, KUBELET_ANNOTATION_PATH, notes))
    kept = {key: each for key, each in annotations.items() if key != _ANNOTATION}
    left = {key: each for key, each in meta.items() if key != "annotations"}
    return {**obj, "metadata": {**left, **({"annotations": kept} if kept else {})}}, kubelet


def place_kubelets(drafts: Sequence[ObjectDraft]) -> list[ObjectDraft]:
    """
    Move the kubelet settings of each pool to its node class.

    A class whose pools have different settings becomes several classes, each named after its first
    pool. The class of the pools without settings, or else of the first pool, keeps the name.
    """
    placed = list(drafts)
    users: dict[int, list[int]] = {}
    classes: dict[str, list[int]] = {}
    for number, draft in enumerate(drafts):
        if draft.is_ec2_class:
            classes.setdefault(draft.name, []).append(number)
    for number, draft in enumerate(drafts):
        found = _class_for(draft, drafts, classes)
        if found is not None:
            users.setdefault(found, []).append(number)
        elif draft.kubelet:
            placed[number] = draft.with_notes(_class_missing(draft))
    for number, using in users.items():
        _share(placed, number, using)
    return placed


def _class_for(
    user: ObjectDraft, drafts: Sequence[ObjectDraft], classes: Mapping[str, Sequence[int]]
) -> int | None:
    """Find the class a pool refers to; of several, the nearest one in the tree of folders."""
    alike = classes.get(user.class_name, ()) if user.class_name else ()
    return max(alike, key=lambda each: nearness(drafts[each].file, user.file), default=None)


def _share(placed: list[ObjectDraft], number: int, using: Iterable[int]) -> None:
    owner = placed[number]
    own = owner.objects[0]["spec"].get("kubelet") or {}
    groups = _groups(placed, using, own)
    objects, notes = [], []
    for place, (kubelet, members) in enumerate(groups):
        name = owner.name
        if place:
            first = placed[members[0]]
            name = _free_name(f"{owner.name}-{first.name}", placed)
            text = f"EC2NodeClass {name} is added: {first.objects[0]['kind']} {first.name} has it"
            notes.append(Note(owner.where, "spec.kubelet", FieldChange.ADDED, text))
        elif kubelet != own:
            text = f"that of {', '.join(placed[user].name for user in members)}"
            notes.append(Note(owner.where, "spec.kubelet", FieldChange.ADDED, text))
        objects.append(_with_kubelet(owner.objects[0], name, kubelet))
        for user in members:
            placed[user] = _moved(placed[user], name)
    placed[number] = owner.with_objects(tuple(objects), is_changed=bool(notes)).with_notes(*notes)


def _free_name(name: str, placed: Sequence[ObjectDraft]) -> str:
    """Return a name that no other node class of the call has."""
    taken = {each.name for each in placed if each.is_ec2_class}
    while name in taken:
        name = f"{name}-kubelet"
    return name


def _groups(
    placed: Sequence[ObjectDraft], using: Iterable[int], own: JsonObject
) -> list[tuple[JsonObject, list[int]]]:
    """Group pools by kubelet settings; the group with those of the class itself comes first."""
    groups: list[tuple[JsonObject, list[int]]] = [(own, [])] if own else []
    for user in sorted(using, key=lambda each: (placed[each].name, each)):
        kubelet = placed[user].kubelet or own
        members = next((members for known, members in groups if known == kubelet), None)
        if members is None:
            groups.append((kubelet, [user]))
        else:
            members.append(user)
    return sorted(groups, key=lambda group: group[0] != own)


def _moved(user: ObjectDraft, name: str) -> ObjectDraft:
    notes = []
    if user.kubelet:
        text = f"it is `spec.kubelet` of EC2NodeClass {name} today"
        notes.append(Note(user.where, user.kubelet_path, FieldChange.RENAMED, text))
    if name == user.class_name:
        return user.with_notes(*notes)
    return user.with_class(name).with_notes(*notes)


def _class_missing(user: ObjectDraft) -> Note:
    text = (
        "it belongs to the EC2NodeClass today, and this call has none by that name; "
        "give both in one call"
    )
    return Note(user.where, user.kubelet_path, FieldChange.LOST, text)


def _with_kubelet(obj: JsonObject, name: str, kubelet: JsonObject) -> JsonObject:
    spec = {key: value for key, value in obj["spec"].items() if key != "kubelet"}
    if kubelet:
        spec["kubelet"] = kubelet
    if name == obj["metadata"].get("name") and spec == obj["spec"]:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "name": name}, "spec": spec}
