"""PersistentVolumeClaims, PersistentVolumes and StorageClasses: fields and matching."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.labelselectors import selector_of
from karpy.model.kinds import STORAGE_CLASS
from karpy.model.storage import WAIT_FOR_FIRST_CONSUMER
from karpy.sim.scheduler.choices import read_terms
from karpy.sim.store.store import Store

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_FILES: Final = "Filesystem"


def key_of(claim: JsonObject) -> str:
    """Return namespace and name of a claim."""
    meta = claim["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


def annotation(obj: JsonObject, name: str) -> str | None:
    """Return an annotation of an object."""
    value: str | None = (obj["metadata"].get("annotations") or {}).get(name)
    return value


def with_annotations(obj: JsonObject, added: Mapping[str, str]) -> JsonObject:
    """Return an object with more annotations."""
    meta = obj["metadata"]
    annotations = {**(meta.get("annotations") or {}), **added}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def class_of(obj: JsonObject) -> str:
    """Return the storage class that a claim or a volume names, empty if none."""
    return annotation(obj, _CLASS) or obj["spec"].get("storageClassName") or ""


def volume_name(claim: JsonObject) -> str:
    """Return the name of the volume of a claim, bound or reserved; empty if none."""
    name: str = claim["spec"].get("volumeName") or ""
    return name


def is_bound(claim: JsonObject) -> bool:
    """Say whether a claim is fully bound to its volume."""
    return bool(volume_name(claim)) and annotation(claim, BIND_COMPLETED) is not None


def is_delayed(store: Store, claim: JsonObject) -> bool:
    """Say whether the binding of a claim waits for its first consumer."""
    found = find_class(store, claim)
    return found is not None and found.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER


def find_class(store: Store, claim: JsonObject) -> JsonObject | None:
    """Return the storage class of a claim, None if it does not exist."""
    name = class_of(claim)
    return store.find(STORAGE_CLASS, name) if name else None


def is_provisioned(storage_class: JsonObject | None) -> bool:
    """Say whether volumes of a class are provisioned dynamically."""
    if storage_class is None:
        return False
    return storage_class.get("provisioner") not in {None, "", _NO_PROVISIONER}


def suits_topology(storage_class: JsonObject, labels: Mapping[str, str]) -> bool:
    """Say whether the allowed topologies of a class include a node with these labels."""
    topologies = storage_class.get("allowedTopologies")
    return not topologies or any(_holds(each, labels) for each in topologies)


def is_within_reach(volume: JsonObject, labels: Mapping[str, str]) -> bool:
    """Say whether the node affinity of a volume allows a node with these labels."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    terms = read_terms(required.get("nodeSelectorTerms") or [])
    return any(term.matches(labels, "") for term in terms)


def is_for(volume: JsonObject, claim: JsonObject) -> bool:
    """Say whether a volume is reserved for a claim."""
    reference, meta = volume["spec"].get("claimRef") or {}, claim["metadata"]
    if (reference.get("namespace"), reference.get("name")) != (meta["namespace"], meta["name"]):
        return False
    return reference.get("uid") in {None, "", meta["uid"]}


def asked_bytes(claim: JsonObject) -> int:
    """Return the storage request of a claim in bytes."""
    return _storage((claim["spec"].get("resources") or {}).get("requests"))


def find_volume(
    claim: JsonObject,
    volumes: Iterable[JsonObject],
    labels: Mapping[str, str] | None,
    taken: Collection[str] = (),
) -> JsonObject | None:
    """
    Find a volume for a claim: the one reserved for it, or the smallest that fits.

    With the labels of a node, only volumes whose node affinity allows it count.
    """
    size, best, best_size = asked_bytes(claim), None, 0
    for volume in volumes:
        meta, spec = volume["metadata"], volume["spec"]
        is_kept = bool(spec.get("claimRef"))
        capacity = _storage(spec.get("capacity"))
        if (
            meta["name"] in taken
            or (is_kept and not is_for(volume, claim))
            or capacity < size
            or "deletionTimestamp" in meta
            or not _is_alike(claim["spec"], spec)
        ):
            continue
        is_near = labels is None or is_within_reach(volume, labels)
        if is_kept:
            return volume if is_near else None
        if not is_near or not _is_available(volume, claim):
            continue
        if best is None or capacity < best_size:
            best, best_size = volume, capacity
    return best


def _is_alike(claim: JsonObject, volume: JsonObject) -> bool:
    if (claim.get("volumeMode") or _FILES) != (volume.get("volumeMode") or _FILES):
        return False
    wanted = claim.get("volumeAttributesClassName") or ""
    return bool(wanted == (volume.get("volumeAttributesClassName") or ""))


def _is_available(volume: JsonObject, claim: JsonObject) -> bool:
    if (volume.get("status") or {}).get("phase") != "Available":
        return False
    if class_of(volume) != class_of(claim):
        return False
    selector = selector_of(claim["spec"].get("selector"))
    if selector is not None and not selector.matches(volume["metadata"].get("labels")):
        return False
    modes = volume["spec"].get("accessModes") or ()
    return all(mode in modes for mode in claim["spec"].get("accessModes") or ())


def _holds(topology: JsonObject, labels: Mapping[str, str]) -> bool:
    expressions = topology.get("matchLabelExpressions") or []
    return bool(expressions) and all(
        labels.get(each.get("key") or "") in (each.get("values") or ()) for each in expressions
    )


def _storage(amounts: JsonObject | None) -> int:
    try:
        return Fields({"all": amounts or {}}).quantities("all").get("storage", 0)
    except FieldInvalid:
        return 0
