"""The check of converted objects against the CustomResourceDefinitions of today."""

from collections.abc import Iterable

from msgspec.structs import replace

from karpy.codec.convert.conversion import FieldChange, Note
from karpy.codec.convert.drafts import EC2_CLASS, ObjectDraft
from karpy.codec.convert.images import NO_ROLE, user_data_faults
from karpy.codec.crdfaults import custom_faults, is_custom
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.placeholders import PlaceholderLeft
from karpy.codec.poolrules import find_faults
from karpy.errors import ManifestInvalid
from karpy.model.labels import WELL_KNOWN


def checked(draft: ObjectDraft) -> ObjectDraft:
    """Return a draft with the faults of its objects; without objects if a server refuses one."""
    if not draft.objects:
        return draft
    problems, is_refused, is_filled_in = [], False, True
    for obj in draft.objects:
        for each in _faults_of(obj):
            if NO_ROLE in each.problem and any(_is_of_role(note) for note in draft.notes):
                continue
            problems.append(_problem(_where(draft, obj), each))
            if isinstance(each, PlaceholderLeft):
                is_filled_in = False
            else:
                is_refused = True
    return replace(
        draft,
        objects=() if is_refused else draft.objects,
        problems=(*draft.problems, *problems),
        is_refused=is_refused,
        is_filled_in=is_filled_in,
    )


def _is_of_role(note: Note) -> bool:
    """Say whether a note reports a missing role, so that a fault need not repeat it."""
    return note.change is FieldChange.LOST and note.path.rpartition(".")[2] == "role"


def why_not_ready(draft: ObjectDraft) -> list[ManifestInvalid]:
    """List faults that an API server accepts, but with which no node can be launched."""
    return [
        _problem(_where(draft, obj), each)
        for obj in draft.objects
        if is_custom(str(obj.get("apiVersion")), str(obj.get("kind"))) and draft.is_filled_in
        for each in _late_faults(obj)
    ]


def _late_faults(obj: JsonObject) -> Iterable[FieldInvalid]:
    if obj.get("kind") == "NodePool":
        return find_faults(Fields(obj), WELL_KNOWN)
    return user_data_faults(obj) if obj.get("kind") == EC2_CLASS else ()


def _faults_of(obj: JsonObject) -> tuple[FieldInvalid, ...]:
    if not is_custom(str(obj.get("apiVersion")), str(obj.get("kind"))):
        return ()
    return custom_faults(obj, WELL_KNOWN)


def _where(draft: ObjectDraft, obj: JsonObject) -> str:
    if not draft.is_converted:
        return draft.where
    meta = obj.get("metadata")
    name = meta.get("name", "") if isinstance(meta, dict) else ""
    made = f"{obj.get('kind')} {name}"
    return draft.where if draft.where.endswith(f", {made}") else f"{draft.where}, as {made}"


def _problem(where: str, fault: FieldInvalid) -> ManifestInvalid:
    return ManifestInvalid(where=where, path=fault.path, problem=fault.problem, hint=fault.hint)
