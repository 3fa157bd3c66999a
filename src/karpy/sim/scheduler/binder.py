"""The writes of the scheduler: bindings, conditions, evictions of victims, selected nodes."""

from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.errors import NotFound
from karpy.model.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from karpy.ports.clock import Clock
from karpy.sim.scheduler.claims import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    annotation,
    is_bound,
    is_for,
    with_annotations,
)
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.scheduler.preemption import PREEMPTED, PreemptionCandidate
from karpy.sim.scheduler.recorder import Recorder
from karpy.sim.scheduler.volumes import VolumePlan
from karpy.sim.store.conditions import condition_of, with_condition
from karpy.sim.store.names import time_text
from karpy.sim.store.store import Store

UNSCHEDULABLE: Final = "Unschedulable"
GATED: Final = "SchedulingGated"
MISHAP: Final = "SchedulerError"
_GATED_TEXT: Final = "Scheduling is blocked due to non-empty scheduling gates"


class Waiting(Struct, frozen=True):
    """A pod with a chosen node that waits for its volumes."""

    pod: PodInfo
    node: str
    bindings: tuple[str, ...]
    """Keys of claims with an existing volume."""
    provisions: tuple[str, ...]
    """Keys of claims for which a volume is to be provisioned."""

    @property
    def claims(self) -> tuple[str, ...]:
        return self.bindings + self.provisions


class Binder:
    """Writes decisions to the store."""

    def __init__(self, store: Store, clock: Clock, recorder: Recorder | None, name: str) -> None:
        self._store = store
        self._clock = clock
        self._recorder = recorder
        self._name = name

    def bind(self, pod: PodInfo, node: str) -> None:
        """Bind a pod to a node; raise ClusterError if the store refuses."""
        obj = pod.obj
        self._store.bind(obj, node)
        if self._recorder is not None:
            self._recorder.scheduled(obj, node)

    def ask_for_volumes(self, pod: PodInfo, node: str, plan: VolumePlan) -> Waiting:
        """Reserve volumes for the claims of a pod, and request the missing ones."""
        for name, key in plan.bindings:
            volume = self._store.get(PERSISTENT_VOLUME, name)
            claim = self._claim(key)
            assert claim is not None
            if not is_for(volume, claim):
                volume = with_annotations(volume, {BOUND_BY_CONTROLLER: "yes"})
            spec = {**volume["spec"], "claimRef": reference(claim)}
            self._store.replace(PERSISTENT_VOLUME, {**volume, "spec": spec})
        for key in plan.provisions:
            claim = self._claim(key)
            assert claim is not None
            asked = with_annotations(claim, {SELECTED_NODE: node})
            self._store.replace(PERSISTENT_VOLUME_CLAIM, asked)
        self._set_status(pod.obj, {**(pod.obj.get("status") or {}), "nominatedNodeName": node})
        keys = tuple(key for _, key in plan.bindings)
        return Waiting(pod, node, keys, plan.provisions)

    def has_volumes(self, waiting: Waiting) -> bool:
        """Say whether all claims of a pod are bound."""
        claims = [self._claim(key) for key in waiting.claims]
        return all(claim is not None and is_bound(claim) for claim in claims)

    def why_no_volumes(self, waiting: Waiting) -> str:
        """Return why the volumes of a pod cannot be bound any more; empty if they may be."""
        if self._store.find(NODE, waiting.node) is None:
            return f'failed to get node "{waiting.node}": node "{waiting.node}" not found'
        for key in waiting.claims:
            claim = self._claim(key)
            name = key.partition("/")[2]
            if claim is None:
                return f'failed to check binding: persistentvolumeclaim "{name}" not found'
            if key in waiting.provisions and annotation(claim, SELECTED_NODE) != waiting.node:
                return f'provisioning failed for PVC "{name}"'
        return ""

    def refuse(self, pod: PodInfo, message: str, nominated: str | None, reason: str) -> None:
        """Write why a pod is not scheduled into its condition and an event."""
        obj = pod.obj
        if self._recorder is not None:
            self._recorder.failed(obj, message)
        status = dict(obj.get("status") or {})
        if nominated is not None:
            status.pop("nominatedNodeName", None)
        if nominated:
            status["nominatedNodeName"] = nominated
        self._set_status(obj, self._with_condition(obj, status, reason, message))

    def gate(self, obj: JsonObject) -> None:
        """Write the condition of a pod with scheduling gates, unless it is there."""
        known = condition_of(obj, "PodScheduled")
        if known is None or known.get("reason") != GATED:
            status = obj.get("status") or {}
            self._set_status(obj, self._with_condition(obj, status, GATED, _GATED_TEXT))

    def report(self, obj: JsonObject, problem: str) -> None:
        """Write into the condition of a pod that it cannot be read."""
        if self._recorder is not None:
            self._recorder.failed(obj, problem)
        status = obj.get("status") or {}
        self._set_status(obj, self._with_condition(obj, status, MISHAP, problem))

    def preempt(self, pod: PodInfo, candidate: PreemptionCandidate) -> None:
        """Delete the victims of a candidate gracefully."""
        for victim in candidate.victims:
            if victim.is_deleting:
                continue
            obj = victim.obj
            target = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": PREEMPTED,
                "message": f"{self._name}: preempting to accommodate a higher priority pod",
            }
            try:
                status = with_condition(obj.get("status"), target, time_text(self._clock.now()))
                self._set_status(obj, status)
                self._store.delete(POD, victim.name, namespace=victim.namespace)
            except NotFound:
                continue
            if self._recorder is not None:
                self._recorder.preempted(obj, pod.uid, candidate.node.name)

    def release(self, nominees: list[PodInfo], priority: int) -> None:
        """Clear the nominated node of less important pods."""
        for pod in nominees:
            if pod.priority < priority:
                status = dict(pod.obj.get("status") or {})
                status.pop("nominatedNodeName", None)
                self._set_status(pod.obj, status)

    def _claim(self, key: str) -> JsonObject | None:
        namespace, _, name = key.partition("/")
        return self._store.find(PERSISTENT_VOLUME_CLAIM, name, namespace)

    def _with_condition(
        self, obj: JsonObject, status: JsonObject, reason: str, message: str
    ) -> JsonObject:
        condition = {"type": "PodScheduled", "status": "False", "reason": reason}
        condition["message"] = message
        if reason != GATED and "generation" in obj["metadata"]:
            condition["observedGeneration"] = obj["metadata"]["generation"]
        return with_condition(status, condition, time_text(self._clock.now()))

    def _set_status(self, obj: JsonObject, status: JsonObject) -> None:
        meta = obj["metadata"]
        current = self._store.find(POD, meta["name"], meta["namespace"])
        if current is not None and current["metadata"]["uid"] == meta["uid"]:
            self._store.set_status(POD, current, status)


def reference(claim: JsonObject) -> JsonObject:
    """Return the `claimRef` of a volume for a claim."""
    meta = claim["metadata"]
    return {
        "kind": PERSISTENT_VOLUME_CLAIM.name,
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "apiVersion": "v1",
        "resourceVersion": meta["resourceVersion"],
    }
