"""NodeClaims, Nodes and NodePools to records, and changes of records to patches."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from karpy.codec.claims import write_resources
from karpy.codec.constraints import read_taints
from karpy.codec.crds import read_pool_requirements
from karpy.codec.fields import Fields, JsonObject, read_duration
from karpy.model.conditions import Condition, Conditions
from karpy.model.constraints import Taint
from karpy.model.records import (
    ClaimRecord,
    Identity,
    NodeClassRef,
    NodeRecord,
    OwnerReference,
    PoolRecord,
)
from karpy.model.times import write_moment

CLAIM_DEPENDENTS: Final = ("Launched", "Registered", "Initialized")
POOL_DEPENDENTS: Final = ("ValidationSucceeded", "NodeClassReady")


class Writes(Struct, frozen=True):
    """The merge patches that turn an object into its new record; None where nothing changes."""

    main: JsonObject | None = None
    """A merge patch of the object itself; guarded by its version if it replaces a list."""
    status: JsonObject | None = None
    """A merge patch of its status."""


def read_claim_record(fields: Fields) -> ClaimRecord:
    """Read a NodeClaim in full."""
    spec, status = fields.child("spec"), fields.child("status")
    return ClaimRecord(
        meta=read_identity(fields),
        node_class=_node_class(spec),
        requirements=read_pool_requirements(spec),
        requests=spec.child("resources").quantities("requests"),
        taints=read_taints(spec, "taints"),
        startup_taints=read_taints(spec, "startupTaints"),
        expire_after=read_duration(spec, "expireAfter"),
        grace_period=read_duration(spec, "terminationGracePeriod"),
        provider_id=status.text("providerID"),
        node_name=status.text("nodeName"),
        image_id=status.text("imageID"),
        capacity=status.quantities("capacity"),
        allocatable=status.quantities("allocatable"),
        last_pod_event=status.time("lastPodEventTime"),
        conditions=Conditions(read_conditions(status), CLAIM_DEPENDENTS),
    )


def read_node_record(fields: Fields) -> NodeRecord:
    """Read a Node in full."""
    spec, status = fields.child("spec"), fields.child("status")
    return NodeRecord(
        meta=read_identity(fields),
        provider_id=spec.text("providerID"),
        taints=read_taints(spec, "taints"),
        is_unschedulable=spec.flag("unschedulable"),
        capacity=status.quantities("capacity"),
        allocatable=status.quantities("allocatable"),
        conditions=read_conditions(status),
        boot_id=status.child("nodeInfo").text("bootID"),
    )


def read_pool_record(fields: Fields) -> PoolRecord:
    """Read a NodePool in full."""
    spec, status = fields.child("spec"), fields.child("status")
    return PoolRecord(
        meta=read_identity(fields),
        node_class=_node_class(spec.child("template").child("spec")),
        replicas=spec.number("replicas"),
        limits=spec.quantities("limits"),
        resources=status.quantities("resources"),
        nodes=status.number("nodes"),
        class_generation=status.number("nodeClassObservedGeneration"),
        conditions=Conditions(read_conditions(status), POOL_DEPENDENTS),
    )


def read_identity(fields: Fields) -> Identity:
    """Read the metadata that every object has."""
    meta = fields.child("metadata")
    return Identity(
        name=meta.needed("name"),
        uid=meta.text("uid"),
        version=meta.text("resourceVersion"),
        generation=meta.number("generation") or 0,
        created=meta.time("creationTimestamp"),
        deleted=meta.time("deletionTimestamp"),
        labels=meta.labels("labels"),
        annotations=meta.labels("annotations"),
        finalizers=meta.texts("finalizers"),
        owners=tuple(_owner(each) for each in meta.children("ownerReferences")),
    )


def claim_writes(before: ClaimRecord, after: ClaimRecord) -> Writes:
    """Return the patches that turn one record of a NodeClaim into another; its spec is fixed."""
    status: JsonObject = {}
    for key, old, new in (
        ("providerID", before.provider_id, after.provider_id),
        ("nodeName", before.node_name, after.node_name),
        ("imageID", before.image_id, after.image_id),
    ):
        if old != new:
            status[key] = new
    for key, had, has in (
        ("capacity", before.capacity, after.capacity),
        ("allocatable", before.allocatable, after.allocatable),
    ):
        if had != has:
            status[key] = write_resources(has)
    if before.last_pod_event != after.last_pod_event and after.last_pod_event is not None:
        status["lastPodEventTime"] = write_moment(after.last_pod_event)
    if before.conditions.items != after.conditions.items:
        status["conditions"] = write_conditions(after.conditions.items)
    return Writes(_main(before.meta, after.meta, {}), write_status(after.meta, status))


def node_writes(before: NodeRecord, after: NodeRecord, obj: JsonObject) -> Writes:
    """
    Return the patch that turns one record of a Node into another; the kubelet writes its status.

    `obj` is the Node that was read: its taints may have fields that the record lacks.
    """
    spec: JsonObject = {}
    if before.taints != after.taints:
        present = (obj.get("spec") or {}).get("taints") or ()
        known = {(each["key"], each.get("value", ""), each["effect"]): each for each in present}
        spec["taints"] = [
            known.get((each.key, each.value, each.effect)) or _write_taint(each)
            for each in after.taints
        ] or None
    if before.is_unschedulable != after.is_unschedulable:
        spec["unschedulable"] = after.is_unschedulable or None
    return Writes(_main(before.meta, after.meta, spec))


def pool_writes(before: PoolRecord, after: PoolRecord) -> Writes:
    """Return the patches that turn one record of a NodePool into another."""
    status: JsonObject = {}
    if before.resources != after.resources:
        dropped = dict.fromkeys(before.resources.keys() - after.resources.keys())
        status["resources"] = {**write_resources(after.resources), **dropped}
    if before.nodes != after.nodes:
        status["nodes"] = after.nodes
    if before.class_generation != after.class_generation:
        status["nodeClassObservedGeneration"] = after.class_generation
    if before.conditions.items != after.conditions.items:
        status["conditions"] = write_conditions(after.conditions.items)
    return Writes(_main(before.meta, after.meta, {}), write_status(after.meta, status))


def _main(before: Identity, after: Identity, spec: JsonObject) -> JsonObject | None:
    meta: JsonObject = {}
    for key, old, new in (
        ("labels", before.labels, after.labels),
        ("annotations", before.annotations, after.annotations),
    ):
        if old != new:
            meta[key] = _changed(old, new)
    # A termination time that another writer has just set must not be overwritten.
    is_guarded = bool(spec) or before.annotations != after.annotations
    if before.finalizers != after.finalizers:
        meta["finalizers"] = list(after.finalizers) or None
        is_guarded = True
    if before.owners != after.owners:
        meta["ownerReferences"] = [_write_owner(each) for each in after.owners] or None
        is_guarded = True
    if not meta and not spec:
        return None
    if is_guarded and before.version:
        meta["resourceVersion"] = before.version
    return {"metadata": meta, **({"spec": spec} if spec else {})}


def write_status(meta: Identity, status: JsonObject) -> JsonObject | None:
    """Write a patch of a status, guarded if it replaces a list; None if there is no change."""
    if not status:
        return None
    # A merge patch replaces a list as a whole: entries written meanwhile must not be lost.
    is_guarded = "conditions" in status and bool(meta.version)
    guard = {"metadata": {"resourceVersion": meta.version}} if is_guarded else {}
    return {**guard, "status": status}


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {
        key: value for key, value in after.items() if before.get(key) != value
    }
    return {**changed, **dict.fromkeys(sorted(before.keys() - after.keys()))}


def _node_class(fields: Fields) -> NodeClassRef:
    ref = fields.child("nodeClassRef")
    return NodeClassRef(ref.text("group"), ref.text("kind"), ref.text("name"))


def _owner(fields: Fields) -> OwnerReference:
    return OwnerReference(
        fields.text("apiVersion"),
        fields.text("kind"),
        fields.text("name"),
        fields.text("uid"),
        fields.flag("blockOwnerDeletion"),
    )


def _write_owner(owner: OwnerReference) -> JsonObject:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        **({"blockOwnerDeletion": True} if owner.blocks_deletion else {}),
    }


def _write_taint(taint: Taint) -> JsonObject:
    return {
        "key": taint.key,
        **({"value": taint.value} if taint.value else {}),
        "effect": taint.effect,
    }


def read_conditions(status: Fields) -> tuple[Condition, ...]:
    """Read the conditions of a status."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return tuple(
        Condition(
            each.needed("type"),
            each.text("status"),
            each.time("lastTransitionTime") or epoch,
            each.text("reason"),
            each.text("message"),
            each.number("observedGeneration") or 0,
        )
        for each in status.children("conditions")
    )


def write_conditions(conditions: tuple[Condition, ...]) -> list[JsonObject]:
    """Write conditions as the status of an object holds them."""
    return [
        {
            "type": each.type,
            "status": each.status,
            "lastTransitionTime": write_moment(each.changed),
            "reason": each.reason,
            "message": each.message,
            **({"observedGeneration": each.generation} if each.generation else {}),
        }
        for each in conditions
    ]
