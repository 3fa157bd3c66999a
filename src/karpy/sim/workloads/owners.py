"""Owner references and finalizers of objects."""

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind


def controller_of(obj: JsonObject) -> JsonObject | None:
    """Return the owner reference of the controller, None if it has no controller."""
    for each in obj["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            found: JsonObject = each
            return found
    return None


def is_controlled_by(obj: JsonObject, uid: str) -> bool:
    """Say whether an object's controller is the one with this UID."""
    reference = controller_of(obj)
    return reference is not None and reference["uid"] == uid


def control_reference(kind: Kind, owner: JsonObject) -> JsonObject:
    """Return the controller reference of an owner for its children."""
    meta = owner["metadata"]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def with_owner(obj: JsonObject, reference: JsonObject) -> JsonObject:
    """Return an object with one more owner."""
    meta = obj["metadata"]
    owners = [*(meta.get("ownerReferences") or ()), reference]
    return {**obj, "metadata": {**meta, "ownerReferences": owners}}


def without_owners(obj: JsonObject, uids: set[str]) -> JsonObject:
    """Return an object without the owners that have these UIDs."""
    meta = dict(obj["metadata"])
    owners = [each for each in meta.pop("ownerReferences", None) or () if each["uid"] not in uids]
    if owners:
        meta["ownerReferences"] = owners
    return {**obj, "metadata": meta}


def without_finalizer(obj: JsonObject, finalizer: str) -> JsonObject:
    """Return an object without a finalizer."""
    meta = dict(obj["metadata"])
    left = [each for each in meta.pop("finalizers", None) or () if each != finalizer]
    if left:
        meta["finalizers"] = left
    return {**obj, "metadata": meta}


def is_deleting(obj: JsonObject) -> bool:
    """Say whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]
