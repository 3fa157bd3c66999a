"""PersistentVolumes for claims: existing ones are bound, missing ones are provisioned."""

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
)
from karpy.model.labels import ZONE
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.scheduler.binder import reference
from karpy.sim.scheduler.claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    annotation,
    find_class,
    find_volume,
    is_bound,
    is_delayed,
    is_for,
    is_provisioned,
    key_of,
    volume_name,
    with_annotations,
)
from karpy.sim.store.store import Store
from karpy.sim.store.tables import CommitCallbacks
from karpy.sim.worker import Worker

_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_DRIVERS: Final = {"kubernetes.io/aws-ebs": "ebs.csi.aws.com"}
"""The CSI drivers that provision volumes for in-tree plugins."""


class Provisioner:
    """
    Binds claims as the PersistentVolume controller does, and provisions as CSI drivers do.

    A volume is created in the zone of the node that the scheduler selected, or at once in any zone
    if its class binds immediately. Claims of ephemeral volumes are created for their pods.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claims = Worker(self._settle)
        self._volumes = Worker(self._tend)
        self._pods = Worker(self._claim_for)
        self._ends: list[Callable[[], None]] = []

    def start(self) -> None:
        """Process existing claims, volumes and pods, and follow their changes."""
        store = self._store
        self._ends = [
            store.subscribe(PERSISTENT_VOLUME_CLAIM, self._on_claim),
            store.subscribe(PERSISTENT_VOLUME, self._on_volume),
            store.subscribe(STORAGE_CLASS, self._on_class),
            store.listen(POD, CommitCallbacks(added=self._on_new_pod)),
        ]
        for volume in store.list(PERSISTENT_VOLUME):
            self._volumes.add(volume["metadata"]["name"])
        for pod in store.list(POD):
            self._on_new_pod(WatchEvent(EventType.ADDED, pod, ""), None)
        self._add_open_claims()

    def stop(self) -> None:
        """Stop binding and provisioning."""
        for end in self._ends:
            end()
        self._ends = []
        for worker in (self._claims, self._volumes, self._pods):
            worker.stop()

    def _on_claim(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        claim = event.object
        if event.type is EventType.DELETED:
            if volume_name(claim):
                self._volumes.add(volume_name(claim))
        elif not is_bound(claim):
            self._claims.add(key_of(claim))

    def _on_volume(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        if event.type is EventType.DELETED:
            return
        volume = event.object
        self._volumes.add(volume["metadata"]["name"])
        claim = volume["spec"].get("claimRef")
        if claim:
            self._claims.add(f"{claim.get('namespace')}/{claim.get('name')}")
        elif (volume.get("status") or {}).get("phase") == "Available":
            self._add_open_claims()

    def _on_class(self, event: WatchEvent, before: JsonObject | None) -> None:
        del event, before
        self._add_open_claims()

    def _on_new_pod(self, event: WatchEvent, _: JsonObject | None) -> None:
        volumes = event.object["spec"].get("volumes")
        if volumes and any(each.get("ephemeral") for each in volumes):
            self._pods.add(key_of(event.object))

    def _add_open_claims(self) -> None:
        for claim in self._store.list(PERSISTENT_VOLUME_CLAIM):
            if not is_bound(claim):
                self._claims.add(key_of(claim))

    def _settle(self, key: str) -> float | None:
        """Bind a claim to a volume, if one exists or can be provisioned."""
        namespace, _, name = key.partition("/")
        claim = self._store.find(PERSISTENT_VOLUME_CLAIM, name, namespace)
        if claim is None or is_bound(claim) or "deletionTimestamp" in claim["metadata"]:
            return None
        if claim["spec"].get("storageClassName") is None and self._give_class(claim):
            return None
        volume = self._volume_for(claim)
        if volume is None and self._is_due(claim):
            volume = self._make(claim)
        if volume is not None:
            self._bind(claim, volume)
        return None

    def _give_class(self, claim: JsonObject) -> bool:
        """Set the default class of a claim that names no class, if a default exists."""
        defaults = [
            each
            for each in self._store.list(STORAGE_CLASS)
            if annotation(each, _DEFAULT_CLASS) == "true"
        ]
        if not defaults or volume_name(claim):
            return False
        spec = {**claim["spec"], "storageClassName": defaults[0]["metadata"]["name"]}
        self._store.replace(PERSISTENT_VOLUME_CLAIM, {**claim, "spec": spec})
        return True

    def _volume_for(self, claim: JsonObject) -> JsonObject | None:
        if name := volume_name(claim):
            volume = self._store.find(PERSISTENT_VOLUME, name)
            is_free = volume is not None and (
                not volume["spec"].get("claimRef") or is_for(volume, claim)
            )
            return volume if is_free else None
        volumes = self._store.list(PERSISTENT_VOLUME)
        if is_delayed(self._store, claim):
            # The scheduler chooses among free volumes if binding waits for the first consumer.
            volumes = [each for each in volumes if is_for(each, claim)]
        return find_volume(claim, volumes, None)

    def _is_due(self, claim: JsonObject) -> bool:
        """Say whether a volume is to be provisioned now."""
        if volume_name(claim) or not is_provisioned(find_class(self._store, claim)):
            return False
        is_selected = annotation(claim, SELECTED_NODE) is not None
        return is_selected or not is_delayed(self._store, claim)

    def _make(self, claim: JsonObject) -> JsonObject | None:
        storage_class = find_class(self._store, claim)
        assert storage_class is not None
        meta, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{meta['uid']}"
        provisioner = storage_class["provisioner"]
        driver = _DRIVERS.get(provisioner, provisioner)
        zone = self._zone(claim, storage_class)
        volume = {
            "metadata": {"name": name, "annotations": {_PROVISIONED_BY: driver}},
            "spec": {
                "capacity": (spec.get("resources") or {}).get("requests") or {},
                "accessModes": spec.get("accessModes") or [],
                "claimRef": reference(claim),
                "csi": {"driver": driver, "volumeHandle": name},
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
                "storageClassName": storage_class["metadata"]["name"],
                "volumeMode": spec.get("volumeMode") or "Filesystem",
                **({"nodeAffinity": _within(zone)} if zone else {}),
            },
        }
        return self._store.create(PERSISTENT_VOLUME, volume)

    def _zone(self, claim: JsonObject, storage_class: JsonObject) -> str:
        """Choose the zone of a new volume: that of the selected node, else by the claim's name."""
        selected = annotation(claim, SELECTED_NODE)
        if selected is not None:
            node = self._store.find(NODE, selected) or {"metadata": {}}
            zone: str = (node["metadata"].get("labels") or {}).get(ZONE) or ""
            return zone
        zones: set[str] = {
            value
            for topology in storage_class.get("allowedTopologies") or ()
            for each in topology.get("matchLabelExpressions") or ()
            if each.get("key") == ZONE
            for value in each.get("values") or ()
        } or {
            node["metadata"]["labels"][ZONE]
            for node in self._store.list(NODE)
            if ZONE in (node["metadata"].get("labels") or {})
        }
        if not zones:
            return ""
        digest = int.from_bytes(sha256(key_of(claim).encode()).digest()[:8])
        return sorted(zones)[digest % len(zones)]

    def _bind(self, claim: JsonObject, volume: JsonObject) -> None:
        spec = {**volume["spec"], "claimRef": reference(claim)}
        is_ours = not is_for(volume, claim)
        if is_ours or not (volume["spec"]["claimRef"] or {}).get("uid"):
            if is_ours:
                volume = with_annotations(volume, {BOUND_BY_CONTROLLER: "yes"})
            volume = self._store.replace(PERSISTENT_VOLUME, {**volume, "spec": spec})
        self._set_phase(volume, "Bound")
        done = {BIND_COMPLETED: "yes"}
        if not volume_name(claim):
            done[BOUND_BY_CONTROLLER] = "yes"
        bound = with_annotations(claim, done)
        bound["spec"] = {**claim["spec"], "volumeName": volume["metadata"]["name"]}
        bound = self._store.replace(PERSISTENT_VOLUME_CLAIM, bound)
        status = {
            **(bound.get("status") or {}),
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": volume["spec"].get("capacity") or {},
        }
        self._store.replace(
            PERSISTENT_VOLUME_CLAIM, {**bound, "status": status}, subresource="status"
        )

    def _tend(self, name: str) -> float | None:
        """Set the phase of a volume, and delete it after its claim if its policy says so."""
        volume = self._store.find(PERSISTENT_VOLUME, name)
        if volume is None:
            return None
        spec, claim_ref = volume["spec"], volume["spec"].get("claimRef")
        if not claim_ref or not claim_ref.get("uid"):
            self._set_phase(volume, "Available")
            return None
        claim = self._store.find(
            PERSISTENT_VOLUME_CLAIM, claim_ref.get("name") or "", claim_ref.get("namespace") or ""
        )
        if claim is not None and claim["metadata"]["uid"] == claim_ref["uid"]:
            return None
        if spec.get("persistentVolumeReclaimPolicy") == "Delete":
            self._store.delete(PERSISTENT_VOLUME, name)
        else:
            self._set_phase(volume, "Released")
        return None

    def _set_phase(self, volume: JsonObject, phase: str) -> None:
        status = volume.get("status") or {}
        if status.get("phase") != phase:
            changed = {**volume, "status": {**status, "phase": phase}}
            self._store.replace(PERSISTENT_VOLUME, changed, subresource="status")

    def _claim_for(self, key: str) -> float | None:
        """Create the claims of a pod's ephemeral volumes."""
        namespace, _, name = key.partition("/")
        pod = self._store.find(POD, name, namespace)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return None
        for volume in pod["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            claim_name = f"{name}-{volume['name']}"
            is_there = self._store.find(PERSISTENT_VOLUME_CLAIM, claim_name, namespace) is not None
            if template is None or is_there:
                continue
            meta = {
                **{each: (template.get("metadata") or {}).get(each) for each in _COPIED},
                "name": claim_name,
                "namespace": namespace,
                "ownerReferences": [_owner(pod)],
            }
            claim = {"metadata": meta, "spec": template.get("spec") or {}}
            self._store.create(PERSISTENT_VOLUME_CLAIM, claim)
        return None


_COPIED: Final = ("labels", "annotations")


def _within(zone: str) -> JsonObject:
    rule = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}


def _owner(pod: JsonObject) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": POD.name,
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
