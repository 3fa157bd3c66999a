"""Follows pods and nodes: keeps the node table and wakes pods that an event concerns."""

from collections.abc import Callable, Iterator
from typing import Final

from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.model.kinds import NODE, POD
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.scheduler.filters import fits_empty, why_unfit
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable
from karpy.sim.scheduler.podinfos import PodInfo, PodInfos, is_alike
from karpy.sim.scheduler.queue import Pending, Queue
from karpy.sim.scheduler.refusals import (
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES,
    NODE_UNSCHEDULABLE,
    POD_AFFINITY,
    TAINT_TOLERATION,
    TOPOLOGY_SPREAD,
    VOLUME_LIMITS,
    VOLUME_RESTRICTIONS,
)
from karpy.sim.store.store import Store
from karpy.sim.store.tables import CommitCallbacks

_NOTHING: Final[JsonObject] = {}
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_USUAL_NAME: Final = "default-scheduler"
_OF_THE_NODE: Final = frozenset(
    {NODE_UNSCHEDULABLE, TAINT_TOLERATION, NODE_AFFINITY, NODE_PORTS, NODE_RESOURCES}
)
"""The plugins whose refusal depends on the node alone."""
_OF_SPREAD: Final = frozenset({TOPOLOGY_SPREAD})
_OF_OTHER_PODS: Final = frozenset({TOPOLOGY_SPREAD, POD_AFFINITY})
_OF_ROOM: Final = _OF_OTHER_PODS | {NODE_RESOURCES, NODE_PORTS, VOLUME_RESTRICTIONS, VOLUME_LIMITS}


class Tracker:
    """
    Updates the node table and the queue from events of pods and nodes.

    `wake` is called when there is a pod to try. The tracker does not write to the store.
    """

    def __init__(
        self, store: Store, table: NodeTable, queue: Queue, name: str, wake: Callable[[], None]
    ) -> None:
        self._store = store
        self._table = table
        self._queue = queue
        self._name = name
        self._wake = wake
        self._infos = PodInfos()
        self._placed: dict[str, PodInfo] = {}
        self._assumed: dict[str, PodInfo] = {}
        self.nominees: dict[str, dict[str, PodInfo]] = {}
        """By node: the pods nominated to it."""
        self._nominations: dict[str, str] = {}
        self.gated: dict[str, None] = {}
        """Pods with scheduling gates whose condition may not be written yet."""
        self.unreadable: dict[str, str] = {}
        """Pods that cannot be read, and the error."""
        self.time: Callable[[], float] = lambda: 0.0

    def start(self) -> list[Callable[[], None]]:
        """Read existing nodes and pods, and subscribe; return the functions that unsubscribe."""
        for node in self._store.list(NODE):
            self._table.describe(node["metadata"]["name"], node)
        for pod in self._store.list(POD):
            self._on_pod(WatchEvent(EventType.ADDED, pod, ""), None)
        callbacks = CommitCallbacks(self._on_pod, self._on_pod, self._on_status, self._on_deleted)
        return [self._store.subscribe(NODE, self._on_node), self._store.listen(POD, callbacks)]

    def rivals(self, pod: PodInfo, node: str) -> Iterator[PodInfo]:
        """Yield the other pods nominated to a node whose priority is not lower."""
        for other in self.nominees.get(node, {}).values():
            if other.priority >= pod.priority and other.key != pod.key:
                yield other

    def contested(self, pod: PodInfo) -> bool:
        """Say whether another pod of no lower priority is nominated to any node."""
        return any(any(self.rivals(pod, node)) for node in self.nominees)

    def nominees_of(self, node: str) -> list[PodInfo]:
        """Return the pods nominated to a node."""
        return list(self.nominees.get(node, {}).values())

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count a pod on the node to which it will be bound."""
        self._queue.remove(pod.key)
        self._nominate(pod.key, None)
        assumed = PodInfo(pod.obj, pod.wants)
        assumed.node = node
        self._assumed[pod.key] = assumed
        self._table.put(assumed)

    def is_assumed(self, key: str) -> bool:
        """Say whether a pod is assumed on a node and not bound yet."""
        return key in self._assumed

    def unassume(self, key: str) -> PodInfo | None:
        """Remove an assumed pod from its node."""
        assumed = self._assumed.pop(key, None)
        if assumed is not None:
            self._table.take(assumed)
            self._wake_for(_OF_ROOM)
        return assumed

    def wake_for(self, plugins: frozenset[str]) -> None:
        """Activate the pods that one of some plugins refused."""
        self._wake_for(plugins)

    def _on_node(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        name = event.object["metadata"]["name"]
        is_gone = event.type is EventType.DELETED
        if not self._table.describe(name, None if is_gone else event.object):
            return
        node = self._table.find(name)

        def concerns(pending: Pending) -> bool:
            return _concerns_node(pending, node)

        if self._queue.wake_where(concerns, self.time()) or node is None:
            # A pod that waits for volumes on the deleted node must be retried.
            self._wake()

    def _on_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        obj = event.object
        meta, spec = obj["metadata"], obj["spec"]
        key = f"{meta['namespace']}/{meta['name']}"
        if (obj.get("status") or _NOTHING).get("phase") in _FINISHED:
            self._forget(key)
        elif spec.get("nodeName"):
            known = self._placed.get(key)
            if known is None:
                self._on_newly_placed(key, obj)
            else:
                self._on_placed(known, obj)
        elif (spec.get("schedulerName") or _USUAL_NAME) == self._name:
            self._on_pending(key, obj)

    def _on_deleted(self, event: WatchEvent, _: JsonObject | None) -> None:
        meta = event.object["metadata"]
        self._forget(f"{meta['namespace']}/{meta['name']}")

    def _on_status(self, event: WatchEvent, before: JsonObject | None) -> None:
        """Update a pod of which only the status changed."""
        obj = event.object
        meta = obj["metadata"]
        known = self._placed.get(f"{meta['namespace']}/{meta['name']}")
        if known is None or obj["status"].get("phase") in _FINISHED or not known.is_sized(obj):
            self._on_pod(event, before)
        else:
            known.obj = obj

    def _forget(self, key: str) -> None:
        pod = self._placed.pop(key, None)
        if pod is None:
            self._queue.remove(key)
            self._nominate(key, None)
            pod = self._assumed.pop(key, None)
        self.gated.pop(key, None)
        self.unreadable.pop(key, None)
        if pod is not None:
            self._table.take(pod)
            self._wake_for(_OF_ROOM)

    def _on_placed(self, known: PodInfo, obj: JsonObject) -> None:
        if not known.is_same(obj):
            is_known = is_alike(obj, known.obj)
            pod = PodInfo(obj, known.wants) if is_known else self._read(known.key, obj)
            if pod is None:
                return
            if not pod.is_like(known):
                self._table.take(known)
                self._table.put(pod)
                self._placed[known.key] = pod
                self._wake_for(_OF_ROOM)
                return
        known.obj = obj
        if "deletionTimestamp" in obj["metadata"] and not known.is_deleting:
            # A deleting pod still uses its requests, but no longer counts for spread.
            self._table.end(known)
            self._wake_for(_OF_SPREAD)

    def _on_newly_placed(self, key: str, obj: JsonObject) -> None:
        pending = self._queue.get(key)
        assumed = self._assumed.pop(key, None) if self._assumed else None
        guess = assumed or (pending.pod if pending else None)
        if assumed is not None:
            self._table.take(assumed)
        self._queue.remove(key)
        self._nominate(key, None)
        if guess is not None and is_alike(obj, guess.obj):
            pod: PodInfo | None = guess
            guess.renew(obj)
        else:
            pod = self._read(key, obj)
        if pod is None:
            return
        self._table.put(pod)
        self._placed[key] = pod
        self._wake_for(_OF_OTHER_PODS, pod)

    def _on_pending(self, key: str, obj: JsonObject) -> None:
        assumed = self._assumed.get(key)
        if assumed is not None:
            assumed.obj = obj
            return
        spec = obj["spec"]
        if "deletionTimestamp" in obj["metadata"]:
            self._forget(key)
            return
        if spec.get("schedulingGates"):
            self.gated[key] = None
            self._wake()
            return
        if spec.get("resourceClaims"):
            # ResourceClaims are not simulated: pods with claims stay pending.
            return
        pending = self._queue.get(key)
        if pending is not None and is_alike(obj, pending.pod.obj):
            pending.pod.obj = obj
            self._nominate(key, pending.pod)
            return
        pod = self._read(key, obj)
        if pod is None:
            self._queue.remove(key)
        else:
            self._queue.add(pod)
            self._nominate(key, pod)
        self._wake()

    def _read(self, key: str, obj: JsonObject) -> PodInfo | None:
        try:
            pod = self._infos.read(obj)
        except (FieldInvalid, AttributeError, KeyError, TypeError, ValueError) as error:
            self.unreadable[key] = str(error)
            return None
        self.unreadable.pop(key, None)
        return pod

    def _nominate(self, key: str, pod: PodInfo | None) -> None:
        node = pod.nominated() if pod is not None else ""
        if not node and not self._nominations:
            return
        known = self._nominations.pop(key, "")
        if known:
            del self.nominees[known][key]
            if not self.nominees[known]:
                del self.nominees[known]
        if pod is not None and node:
            self._nominations[key] = node
            self.nominees.setdefault(node, {})[key] = pod

    def _wake_for(self, plugins: frozenset[str], newcomer: PodInfo | None = None) -> None:
        if not self._queue.parked:
            return

        def concerns(pending: Pending) -> bool:
            if pending.plugins.isdisjoint(plugins):
                return False
            return newcomer is None or _concerns_newcomer(pending, newcomer)

        if self._queue.wake_where(concerns, self.time()):
            self._wake()


def _concerns_node(pending: Pending, node: NodeInfo | None) -> bool:
    plugins = pending.plugins
    if not plugins:
        return True
    if node is None:
        return not plugins.isdisjoint(_OF_OTHER_PODS)
    if not plugins <= _OF_THE_NODE:
        return True
    wants = pending.pod.wants
    return why_unfit(wants, node) is None and fits_empty(wants, node)


def _concerns_newcomer(pending: Pending, newcomer: PodInfo) -> bool:
    wants, kin = pending.pod.wants, newcomer.wants.kin
    if any(term.means(kin.labels) for term in wants.kin.terms.near):
        return True
    return any(spread.means(kin.labels) for spread in wants.spreads)
