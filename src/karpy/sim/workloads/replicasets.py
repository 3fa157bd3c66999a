"""The ReplicaSet and ReplicationController controllers: keep a number of equal pods."""

from collections import Counter
from typing import ClassVar, Final

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import Selector, selector_of_map
from karpy.errors import ClusterError
from karpy.model.kinds import REPLICA_SET, REPLICATION_CONTROLLER, Kind
from karpy.sim.workloads.conditions import drop_condition, put_condition
from karpy.sim.workloads.owners import controller_of, is_deleting
from karpy.sim.workloads.podcontroller import PodWriter
from karpy.sim.workloads.pods import (
    FINISHED,
    first_to_go,
    is_available,
    is_ready,
    next_available,
    parted,
    phase_of,
)
from karpy.sim.workloads.statuses import without_zeros

_AT_ONCE_MAX: Final = 500
"""Pods created or deleted in one reconcile."""
_FAILURE: Final = "ReplicaFailure"
_NOTHING: Final[JsonObject] = {}


class ReplicaSets(PodWriter):
    """Keeps the replicas of ReplicaSets."""

    kind: ClassVar[Kind] = REPLICA_SET
    component: ClassVar[str] = "replicaset-controller"
    counts_terminating: ClassVar[bool] = True

    def reconcile(self, obj: JsonObject) -> float | None:
        """Create or delete pods, and write the status."""
        pods = self.context.pods.claimed(
            self.kind, obj, self.selector(obj), may_join=lambda pod: phase_of(pod) not in FINISHED
        )
        active, terminating = parted(pods)
        missing = _wanted(obj) - len(active)
        failure: ClusterError | None = None
        if missing and not is_deleting(obj):
            try:
                self._resize(obj, active, terminating, missing)
            except ClusterError as error:
                failure = error
        self.write_status(obj, self._status(obj, active, len(terminating), failure))
        if failure is not None:
            raise failure
        if abs(missing) > _AT_ONCE_MAX:
            return 0.0
        return next_available(active, obj["spec"].get("minReadySeconds", 0), self.now())

    def _resize(
        self,
        obj: JsonObject,
        active: list[JsonObject],
        terminating: list[JsonObject],
        missing: int,
    ) -> None:
        """Create or delete pods, and update the lists of pods."""
        template = obj["spec"]["template"]
        active.extend(self.make_pods(obj, template, min(missing, _AT_ONCE_MAX)))
        gone = set()
        for pod in self._surplus(obj, active, -missing):
            left = self.drop_pod(obj, pod)
            gone.add(pod["metadata"]["name"])
            if left is not None:
                terminating.append(left)
        if gone:
            active[:] = [pod for pod in active if pod["metadata"]["name"] not in gone]

    def _surplus(self, obj: JsonObject, active: list[JsonObject], count: int) -> list[JsonObject]:
        count = min(count, _AT_ONCE_MAX)
        if count <= 0:
            return []
        if count >= len(active):
            return list(active)
        running, _ = parted(self._kin(obj))
        neighbours = Counter([pod["spec"].get("nodeName") or "" for pod in running])
        return first_to_go(active, neighbours, self.now())[:count]

    def _kin(self, obj: JsonObject) -> list[JsonObject]:
        """Return the pods of all ReplicaSets of the same Deployment."""
        reference = controller_of(obj)
        if reference is None:
            return self.context.pods.of(obj)
        siblings = self.store.controlled_by(reference["uid"], self.kind)
        return [pod for each in siblings for pod in self.context.pods.of(each)]

    def _status(
        self,
        obj: JsonObject,
        active: list[JsonObject],
        terminating: int,
        failure: ClusterError | None,
    ) -> JsonObject:
        spec, now = obj["spec"], self.now()
        seconds = spec.get("minReadySeconds", 0)
        wanted_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        labelled, ready = _count(active, wanted_labels)
        status = without_zeros(
            {
                "fullyLabeledReplicas": labelled,
                "readyReplicas": ready,
                "availableReplicas": ready
                if not seconds
                else sum(is_available(pod, seconds, now) for pod in active),
                "observedGeneration": obj["metadata"].get("generation", 0),
            }
        )
        status["replicas"] = len(active)
        if self.counts_terminating:
            status["terminatingReplicas"] = terminating
        conditions = (obj.get("status") or {}).get("conditions")
        if conditions:
            status["conditions"] = conditions
        if failure is None:
            return drop_condition(status, _FAILURE)
        reason = "FailedCreate" if len(active) < _wanted(obj) else "FailedDelete"
        condition = {
            "type": _FAILURE,
            "status": "True",
            "reason": reason,
            "message": failure.message,
        }
        return put_condition(status, condition, self.now_text())


class ReplicationControllers(ReplicaSets):
    """Keeps the replicas of ReplicationControllers."""

    kind: ClassVar[Kind] = REPLICATION_CONTROLLER
    component: ClassVar[str] = "replication-controller"
    counts_terminating: ClassVar[bool] = False

    def selector(self, obj: JsonObject) -> Selector | None:
        """Return the selector of a ReplicationController, whose spec has plain labels."""
        spec = obj["spec"]
        labels = spec.get("selector") or (spec["template"].get("metadata") or {}).get("labels")
        return selector_of_map(labels)


def _wanted(obj: JsonObject) -> int:
    replicas = obj["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _count(pods: list[JsonObject], wanted: JsonObject) -> tuple[int, int]:
    """Count the pods with all labels of the template, and the ready pods."""
    labelled = ready = 0
    is_full, is_up = not wanted, False
    labels: object = None
    conditions: object = None
    for pod in pods:
        # Pods of one template share one labels object; pods started together share conditions.
        own = pod["metadata"].get("labels")
        if own is not labels:
            labels, is_full = own, wanted.items() <= (own or {}).items()
        listed = (pod.get("status") or _NOTHING).get("conditions")
        if listed is not conditions:
            conditions, is_up = listed, is_ready(pod)
        labelled += is_full
        ready += is_up
    return labelled, ready
