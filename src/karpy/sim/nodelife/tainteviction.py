"""The taint eviction controller: deletes pods by NoExecute taints."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import NotFound
from karpy.model.constraints import NO_EXECUTE, Taint, Toleration
from karpy.model.kinds import NODE, POD
from karpy.model.times import span
from karpy.ports.clock import Clock
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.nodelife.taints import taints_of
from karpy.sim.store.conditions import with_condition
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.store import Store
from karpy.sim.store.tables import CommitCallbacks
from karpy.sim.worker import Worker

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_TARGETED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}
_INSTANT: Final = timedelta(microseconds=1)


class TaintEviction:
    """Deletes pods from nodes with a NoExecute taint when their toleration ends."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._times = ObjectTimes(clock)
        self._tainted: dict[str, tuple[Taint, ...]] = {}
        self._since: dict[str, datetime] = {}
        """Since when each pod tolerates NoExecute taints; a further taint does not reset it."""
        self._worker = Worker(self._work)
        self._ends: list[Callable[[], None]] = []

    def start(self) -> None:
        """Follow nodes and pods."""
        self._ends = [
            self._store.subscribe(NODE, self._on_node),
            self._store.listen(
                POD, CommitCallbacks(self._on_pod, self._on_pod, removed=self._on_deleted)
            ),
        ]
        for node in self._store.list(NODE):
            self._learn(node)

    def stop(self) -> None:
        """Stop deleting pods."""
        for end in self._ends:
            end()
        self._worker.stop()

    def _on_node(self, event: WatchEvent, before: JsonObject | None) -> None:
        if event.type is EventType.DELETED:
            self._tainted.pop(event.object["metadata"]["name"], None)
        elif before is None or taints_of(before) is not taints_of(event.object):
            self._learn(event.object)

    def _learn(self, node: JsonObject) -> None:
        name = node["metadata"]["name"]
        taints = tuple(
            Taint(each["key"], NO_EXECUTE, each.get("value") or "")
            for each in taints_of(node)
            if each["effect"] == NO_EXECUTE
        )
        if taints == self._tainted.get(name, ()):
            return
        if taints:
            self._tainted[name] = taints
        else:
            del self._tainted[name]
        for pod in self._store.pods_on(name):
            self._worker.add(_key(pod))

    def _on_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        if not self._tainted:
            return
        pod = event.object
        if pod["spec"].get("nodeName") in self._tainted and (
            before is None or before["spec"] is not pod["spec"]
        ):
            self._worker.add(_key(pod))

    def _on_deleted(self, event: WatchEvent, _: JsonObject | None) -> None:
        if self._since:
            self._since.pop(_key(event.object), None)

    def _work(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        pod = self._store.find(POD, name, namespace)
        taints = () if pod is None else self._tainted.get(pod["spec"].get("nodeName") or "", ())
        seconds = None if pod is None or not taints else patience(pod["spec"], taints)
        if pod is None or seconds is None or _is_over(pod):
            self._since.pop(key, None)
            return None
        now = self._clock.now()
        since = self._since.setdefault(key, now)
        left = since + span(seconds) - now
        if left > _INSTANT:
            return left.total_seconds()
        self._since.pop(key, None)
        self._evict(pod)
        return None

    def _evict(self, pod: JsonObject) -> None:
        meta = pod["metadata"]
        status = with_condition(pod.get("status"), _TARGETED, self._times.text())
        try:
            self._store.set_status(POD, pod, status)
            self._store.delete(POD, meta["name"], namespace=meta["namespace"])
        except NotFound:
            return


def patience(spec: JsonObject, taints: tuple[Taint, ...]) -> float | None:
    """Return how many seconds a pod tolerates taints; None is for ever."""
    tolerations = [
        (
            Toleration(
                each.get("key") or "",
                each.get("operator") or "Equal",
                each.get("value") or "",
                each.get("effect") or "",
            ),
            each.get("tolerationSeconds"),
        )
        for each in spec.get("tolerations") or ()
    ]
    shortest: float | None = None
    for taint in taints:
        matching = [seconds for toleration, seconds in tolerations if toleration.allows(taint)]
        if not matching:
            return 0.0
        limits = [max(0.0, float(each)) for each in matching if each is not None]
        shortest = min([*limits, *([] if shortest is None else [shortest])], default=None)
    return shortest


def _is_over(pod: JsonObject) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return "deletionTimestamp" in pod["metadata"] or phase in _FINISHED


def _key(pod: JsonObject) -> str:
    meta = pod["metadata"]
    return f"{meta['namespace']}/{meta['name']}"
