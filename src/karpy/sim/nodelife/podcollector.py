"""The pod garbage collector: pods of deleted nodes, and deleting pods on nodes out of service."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import NotFound
from karpy.model.kinds import NODE, POD
from karpy.ports.clock import Clock
from karpy.ports.objects import EventType, Removal, WatchEvent
from karpy.sim.nodelife.taints import OUT_OF_SERVICE, taints_of
from karpy.sim.store.conditions import is_true, with_condition
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.store import Store
from karpy.sim.store.tables import CommitCallbacks
from karpy.sim.worker import Worker

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_INSTANT: Final = 1e-6
_TARGETED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


class PodCollector:
    """
    The pod garbage collector of kube-controller-manager.

    Unlike upstream, it does not delete finished pods beyond 12,500.
    """

    def __init__(self, store: Store, clock: Clock, quarantine_seconds: float) -> None:
        self._store = store
        self._find_node = store.finder(NODE)
        self._clock = clock
        self._times = ObjectTimes(clock)
        self._quarantine = quarantine_seconds
        self._missing: dict[str, datetime] = {}
        self._out_of_service: set[str] = set()
        self._nodes = Worker(self._work)
        self._ends: list[Callable[[], None]] = []

    def start(self) -> None:
        """Follow nodes and pods."""
        self._ends = [
            self._store.subscribe(NODE, self._on_node),
            self._store.listen(POD, CommitCallbacks(self._on_new_pod, self._on_pod)),
        ]
        for node in self._store.list(NODE):
            self._learn(node)
        for pod in self._store.list(POD):
            self._look_for_node(pod)

    def stop(self) -> None:
        """Stop deleting pods."""
        for end in self._ends:
            end()
        self._nodes.stop()

    def _on_node(self, event: WatchEvent, _: JsonObject | None) -> None:
        name = event.object["metadata"]["name"]
        if event.type is EventType.DELETED:
            self._out_of_service.discard(name)
            self._miss(name)
            return
        self._missing.pop(name, None)
        self._learn(event.object)

    def _learn(self, node: JsonObject) -> None:
        name = node["metadata"]["name"]
        if _is_out_of_service(node):
            self._out_of_service.add(name)
            self._nodes.add(name)
        else:
            self._out_of_service.discard(name)

    def _on_new_pod(self, event: WatchEvent, _: JsonObject | None) -> None:
        self._look_for_node(event.object)

    def _on_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        pod = event.object
        if before is None or before["spec"] is not pod["spec"]:
            self._look_for_node(pod)
        elif self._out_of_service and "deletionTimestamp" in pod["metadata"]:
            name = pod["spec"].get("nodeName") or ""
            if name in self._out_of_service:
                self._nodes.add(name)

    def _look_for_node(self, pod: JsonObject) -> None:
        name = pod["spec"].get("nodeName")
        if name and self._find_node("", name) is None:
            self._miss(name)

    def _miss(self, name: str) -> None:
        self._missing.setdefault(name, self._clock.now())
        self._nodes.add_after(name, self._quarantine)

    def _work(self, name: str) -> float | None:
        node = self._store.find(NODE, name)
        if node is None:
            since = self._missing.get(name, self._clock.now())
            left = self._quarantine - (self._clock.now() - since).total_seconds()
            if left > _INSTANT:
                return left
            self._missing.pop(name, None)
            for pod in self._store.pods_on(name):
                self._collect(pod, _TARGETED)
        elif name in self._out_of_service:
            for pod in self._store.pods_on(name):
                if "deletionTimestamp" in pod["metadata"]:
                    self._collect(pod, None)
        return None

    def _collect(self, pod: JsonObject, condition: JsonObject | None) -> None:
        meta, status = pod["metadata"], pod.get("status") or {}
        if condition is not None:
            status = with_condition(status, condition, self._times.text())
        if status.get("phase") not in _FINISHED:
            status = {**status, "phase": "Failed"}
        removal = Removal(grace_seconds=0, uid=meta["uid"])
        try:
            self._store.set_status(POD, pod, status)
            self._store.delete(POD, meta["name"], namespace=meta["namespace"], removal=removal)
        except NotFound:
            return


def _is_out_of_service(node: JsonObject) -> bool:
    is_marked = any(each["key"] == OUT_OF_SERVICE for each in taints_of(node))
    return is_marked and not is_true(node, "Ready")
