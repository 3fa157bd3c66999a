"""Volume filters of nodes for a pod, in the order of kube-scheduler."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from karpy.model.labels import REGION, ZONE
from karpy.sim.scheduler.attachments import Attachments
from karpy.sim.scheduler.claims import (
    SELECTED_NODE,
    annotation,
    asked_bytes,
    class_of,
    find_class,
    find_volume,
    is_bound,
    is_delayed,
    is_provisioned,
    is_within_reach,
    key_of,
    suits_topology,
    volume_name,
)
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.scheduler.refusals import (
    CLAIM_TAKEN,
    CLAIMS_UNBOUND,
    VOLUME_BINDING,
    VOLUME_ELSEWHERE,
    VOLUME_MISSING,
    VOLUME_NOT_FOUND,
    VOLUME_RESTRICTIONS,
    VOLUME_ZONE,
    VOLUMES_FULL,
    ZONE_ELSEWHERE,
    SchedulerRefusal,
)
from karpy.sim.store.store import Store

_OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_OLD_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_PLACES: Final = {_OLD_ZONE: ZONE, _OLD_REGION: REGION, ZONE: ZONE, REGION: REGION}
"""Topology labels of volumes, and the current labels of nodes for them."""


class VolumePlan(Struct, frozen=True):
    """What to bind and to provision so that a pod has its volumes on a node."""

    bindings: tuple[tuple[str, str], ...] = ()
    """Existing volumes, each with the key of its claim."""
    provisions: tuple[str, ...] = ()
    """Keys of claims for which a volume is to be provisioned."""


def has_claims(pod: PodInfo) -> bool:
    """Say whether a pod has volumes with a claim."""
    return any(each.get("persistentVolumeClaim") or each.get("ephemeral") for each in pod.volumes)


class VolumeCheck:
    """The volume filters for one pod during one scheduling attempt."""

    def __init__(self, store: Store, table: NodeTable, pod: PodInfo) -> None:
        self._store = store
        self._table = table
        self._pod = pod
        self._attachments = Attachments(store)
        self.released: int = 0
        """How many users of exclusive claims a trial has removed."""

    def why_hopeless(self) -> SchedulerRefusal | None:
        """Return why no node can satisfy the claims of the pod, or None."""
        for claim, name, is_ephemeral in self._claims():
            if claim is None and not is_ephemeral:
                return SchedulerRefusal(VOLUME_RESTRICTIONS, (_not_found(name),))
        return self._why_unbound() or self._why_nowhere()

    def refusal(self, node: NodeInfo) -> SchedulerRefusal | None:
        """Return why a node cannot provide the volumes of the pod, or None."""
        if self._exclusive_uses > self.released:
            return CLAIM_TAKEN
        if self._attachments.would_exceed(self._pod, node):
            return VOLUMES_FULL
        reasons = self._binding_reasons(node)
        if reasons:
            return SchedulerRefusal(VOLUME_BINDING, tuple(reasons))
        return None if self._is_in_place(node) else ZONE_ELSEWHERE

    def plan(self, node: NodeInfo) -> VolumePlan:
        """Return the volume plan for a node that was not refused."""
        plan = self._plan(node)
        assert plan is not None
        return plan

    def exclusive_uses_by(self, other: PodInfo) -> int:
        """Count the references of another pod to ReadWriteOncePod claims of this pod."""
        return sum(
            each.get("persistentVolumeClaim", {}).get("claimName") in self._exclusive
            for each in other.volumes
            if each.get("persistentVolumeClaim")
        )

    def _claims(self) -> Iterator[tuple[JsonObject | None, str, bool]]:
        """Yield the claims of the pod, None for a claim that does not exist."""
        pod = self._pod
        for volume in pod.volumes:
            if volume.get("persistentVolumeClaim"):
                name, is_ephemeral = volume["persistentVolumeClaim"].get("claimName") or "", False
            elif volume.get("ephemeral"):
                name, is_ephemeral = f"{pod.name}-{volume['name']}", True
            else:
                continue
            found = self._store.find(PERSISTENT_VOLUME_CLAIM, name, pod.namespace)
            yield found, name, is_ephemeral

    def _why_unbound(self) -> SchedulerRefusal | None:
        for claim, name, is_ephemeral in self._claims():
            problem = self._problem(claim, name, is_ephemeral=is_ephemeral)
            if problem:
                return SchedulerRefusal(VOLUME_BINDING, (problem,))
        for claim, _, _ in self._claims():
            assert claim is not None
            if is_bound(claim) or (is_delayed(self._store, claim) and not volume_name(claim)):
                continue
            return CLAIMS_UNBOUND
        return None

    def _problem(self, claim: JsonObject | None, name: str, *, is_ephemeral: bool) -> str:
        if claim is None:
            waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
            return f'{waiting} "{name}"' if is_ephemeral else _not_found(name)
        if (claim.get("status") or {}).get("phase") == "Lost":
            volume = volume_name(claim)
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            )
        if "deletionTimestamp" in claim["metadata"]:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if is_ephemeral and not self._is_own(claim):
            pod = f"{self._pod.namespace}/{self._pod.name}"
            return f"PVC {key_of(claim)} was not created for pod {pod} (pod is not owner)"
        return ""

    def _is_own(self, claim: JsonObject) -> bool:
        owners = claim["metadata"].get("ownerReferences") or ()
        return any(each.get("controller") and each["uid"] == self._pod.uid for each in owners)

    def _why_nowhere(self) -> SchedulerRefusal | None:
        for claim, _, is_ephemeral in self._claims():
            if claim is None or is_ephemeral or not volume_name(claim):
                continue
            name = volume_name(claim)
            if self._store.find(PERSISTENT_VOLUME, name) is None:
                return SchedulerRefusal(VOLUME_ZONE, (f'persistentvolume "{name}" not found',))
        return None

    @cached_property
    def _exclusive(self) -> frozenset[str]:
        return frozenset(
            name
            for claim, name, is_ephemeral in self._claims()
            if claim is not None
            and not is_ephemeral
            and "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ())
        )

    @cached_property
    def _exclusive_uses(self) -> int:
        namespace = self._pod.namespace
        return sum(self._table.is_claim_used(f"{namespace}/{name}") for name in self._exclusive)

    @cached_property
    def _volumes(self) -> list[JsonObject]:
        return self._store.list(PERSISTENT_VOLUME)

    def _binding_reasons(self, node: NodeInfo) -> list[str]:
        reasons = []
        for claim, _, _ in self._claims():
            if claim is None or not is_bound(claim):
                continue
            volume = self._store.find(PERSISTENT_VOLUME, volume_name(claim))
            if volume is None or not is_within_reach(volume, node.labels):
                reasons.append(VOLUME_MISSING if volume is None else VOLUME_ELSEWHERE)
                break
        if self._plan(node) is None:
            reasons.append(VOLUME_NOT_FOUND)
        return reasons

    def _plan(self, node: NodeInfo) -> VolumePlan | None:
        """Find a volume for every unbound claim, or check that one can be provisioned."""
        open_claims = [claim for claim, _, _ in self._claims() if claim and not is_bound(claim)]
        bindings: list[tuple[str, str]] = []
        provisions: list[str] = []
        taken: set[str] = set()
        for claim in sorted(open_claims, key=asked_bytes):
            selected = annotation(claim, SELECTED_NODE)
            if selected is not None and selected != node.name:
                return None
            found = None
            if selected is None:
                same = (each for each in self._volumes if class_of(each) == class_of(claim))
                found = find_volume(claim, same, node.labels, taken)
            if found is not None:
                taken.add(found["metadata"]["name"])
                bindings.append((found["metadata"]["name"], key_of(claim)))
                continue
            storage_class = find_class(self._store, claim)
            if storage_class is None or not is_provisioned(storage_class):
                return None
            if not suits_topology(storage_class, node.labels):
                return None
            provisions.append(key_of(claim))
        return VolumePlan(tuple(bindings), tuple(provisions))

    @cached_property
    def _places(self) -> list[tuple[str, frozenset[str]]]:
        """The topology labels of bound volumes with their values."""
        places = []
        for claim, _, is_ephemeral in self._claims():
            if claim is None or is_ephemeral or not volume_name(claim):
                continue
            volume = self._store.find(PERSISTENT_VOLUME, volume_name(claim))
            labels = (volume["metadata"].get("labels") or {}) if volume else {}
            places += [
                (key, frozenset(labels[key].split("__"))) for key in _PLACES if labels.get(key)
            ]
        return places

    def _is_in_place(self, node: NodeInfo) -> bool:
        if not self._places or not any(key in node.labels for key in _PLACES):
            return True
        return all(
            node.labels.get(key, node.labels.get(_PLACES[key])) in values
            for key, values in self._places
        )


def _not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'
