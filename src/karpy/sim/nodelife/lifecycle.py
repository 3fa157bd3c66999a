"""The node lifecycle controller: marks silent nodes Unknown, and taints nodes by conditions."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import LEASE, NODE, POD
from karpy.ports.clock import Clock
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.nodelife.patience import ControllerTimeouts, Heartbeats, MachineExists
from karpy.sim.nodelife.podcollector import PodCollector
from karpy.sim.nodelife.tainteviction import TaintEviction
from karpy.sim.nodelife.taints import with_wanted_taints
from karpy.sim.store.conditions import condition_of, with_condition
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.store import Store
from karpy.sim.worker import Worker

_LEASES: Final = "kube-node-lease"
_JUDGED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_INSTANT: Final = 1e-6


class NodeLifecycle:
    """
    The node controllers of kube-controller-manager.

    The Ready condition of silent nodes becomes Unknown, conditions become taints, taints evict
    pods, and the pods of deleted nodes are collected. With `machine_exists`, Nodes without a
    machine are deleted too; Karpenter's garbage collection does not need that. Unlike upstream it
    taints all silent nodes at once, even if a whole zone is silent.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        heartbeats: Heartbeats,
        patience: ControllerTimeouts | None = None,
        machine_exists: MachineExists | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._times = ObjectTimes(clock)
        self._heartbeats = heartbeats
        self._patience = patience or ControllerTimeouts()
        self._machine_exists = machine_exists
        self._last_seen: dict[str, datetime] = {}
        self._worker = Worker(self._work)
        self._eviction = TaintEviction(store, clock)
        self._collector = PodCollector(store, clock, self._patience.quarantine_seconds)
        self._ends: list[Callable[[], None]] = []
        heartbeats.on_change(self._worker.add)

    def start(self) -> None:
        """Start the controllers."""
        self._ends = [
            self._store.subscribe(NODE, self._on_node),
            self._store.subscribe(LEASE, self._on_lease),
        ]
        for node in self._store.list(NODE):
            self._last_seen[node["metadata"]["name"]] = self._clock.now()
            self._worker.add(node["metadata"]["name"])
        self._eviction.start()
        self._collector.start()

    def stop(self) -> None:
        """Stop; nodes stay as they are."""
        for end in self._ends:
            end()
        self._worker.stop()
        self._eviction.stop()
        self._collector.stop()

    def _on_node(self, event: WatchEvent, before: JsonObject | None) -> None:
        node = event.object
        name = node["metadata"]["name"]
        if event.type is EventType.DELETED:
            self._last_seen.pop(name, None)
            return
        ready, was = condition_of(node, "Ready"), before and condition_of(before, "Ready")
        if before is None or _heartbeat(ready) != _heartbeat(was):
            self._last_seen[name] = self._clock.now()
        self._worker.add(name)

    def _on_lease(self, event: WatchEvent, before: JsonObject | None) -> None:
        lease = event.object
        meta = lease["metadata"]
        if meta["namespace"] != _LEASES or event.type is EventType.DELETED:
            return
        if meta["name"] not in self._last_seen:
            return
        if before is None or before["spec"].get("renewTime") != lease["spec"].get("renewTime"):
            self._last_seen[meta["name"]] = self._clock.now()

    def _work(self, name: str) -> float | None:
        node = self._store.find(NODE, name)
        if node is None:
            return None
        again = self._judge(node)
        node = self._store.find(NODE, name)
        assert node is not None
        tainted = with_wanted_taints(node, self._times.text())
        if tainted is not node:
            self._store.replace(NODE, tainted)
        if self._is_orphan(node):
            self._store.delete(NODE, name)
            return None
        return again

    def _judge(self, node: JsonObject) -> float | None:
        """Mark a silent node Unknown; return after how many seconds to check it again."""
        name = node["metadata"]["name"]
        ready = condition_of(node, "Ready")
        now = self._clock.now()
        is_ready = ready is not None and ready["status"] == "True"
        again = None if is_ready or self._machine_exists is None else self._patience.machine_seconds
        if not is_ready and ready is not None:
            self._mark_pods(name)
        if self._heartbeats.is_beating(name):
            return again
        seen = self._heartbeats.last_beat(name) or self._last_seen.get(name, now)
        patience = self._patience
        limit = patience.startup_seconds if ready is None else patience.silence_seconds
        left = limit - (now - seen).total_seconds()
        if left > _INSTANT:
            return left if again is None else min(left, again)
        if ready is None or ready["status"] != "Unknown":
            self._call_unknown(node)
            self._mark_pods(name)
        return again

    def _call_unknown(self, node: JsonObject) -> None:
        status, now = node.get("status") or {}, self._times.text()
        for type_ in _JUDGED:
            condition = condition_of(node, type_)
            if condition is None:
                made = {
                    "type": type_,
                    "status": "Unknown",
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                    "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
                }
                status = with_condition(status, made, now)
            elif condition["status"] != "Unknown":
                made = {
                    **condition,
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                }
                status = with_condition(status, made, now)
        self._store.replace(NODE, {**node, "status": status}, subresource="status")

    def _mark_pods(self, name: str) -> None:
        """Mark the pods of a node that is not Ready as not Ready."""
        for pod in self._store.pods_on(name):
            ready = condition_of(pod, "Ready")
            if ready is None or ready["status"] != "True":
                continue
            status = with_condition(pod["status"], {**ready, "status": "False"}, self._times.text())
            self._store.replace(POD, {**pod, "status": status}, subresource="status")

    def _is_orphan(self, node: JsonObject) -> bool:
        """Say whether the machine of a silent node no longer exists in the cloud."""
        provider_id = (node.get("spec") or {}).get("providerID")
        if self._machine_exists is None or not provider_id:
            return False
        ready = condition_of(node, "Ready")
        is_silent = ready is not None and ready["status"] != "True"
        is_deleted = "deletionTimestamp" in node["metadata"]
        return is_silent and not is_deleted and not self._machine_exists(provider_id)


def _heartbeat(ready: JsonObject | None) -> object:
    return None if ready is None else (ready.get("lastHeartbeatTime"),)
