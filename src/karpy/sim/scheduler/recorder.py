"""The scheduler's events."""

from collections import OrderedDict
from datetime import datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError, NotFound
from karpy.model.kinds import EVENT
from karpy.ports.clock import Clock
from karpy.sim.store.store import Store

_KEPT_MAX: Final = 4096
_NOTE_MAX: Final = 1024
_SHORTENED: Final = " ..."


class Recorder:
    """Writes events about pods; a repeated one becomes a series."""

    def __init__(self, store: Store, clock: Clock, name: str) -> None:
        self._store = store
        self._clock = clock
        self._name = name
        self._told: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._serial = 0
        self._moment: datetime | None = None
        self._time, self._stamp = "", ""

    def scheduled(self, pod: JsonObject, node: str) -> None:
        """Record the binding of a pod."""
        meta = pod["metadata"]
        note = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        self._create(pod, ("Normal", "Scheduled", "Binding"), note)

    def failed(self, pod: JsonObject, message: str) -> None:
        """Record why a pod is not scheduled."""
        if len(message) > _NOTE_MAX:
            message = message[: _NOTE_MAX - len(_SHORTENED)] + _SHORTENED
        key = (pod["metadata"]["uid"], "FailedScheduling", message)
        known = self._told.get(key)
        if known is not None and self._repeat(pod["metadata"]["namespace"], known):
            self._told.move_to_end(key)
            return
        created = self._create(pod, ("Warning", "FailedScheduling", "Scheduling"), message)
        if created:
            self._told[key] = created
            if len(self._told) > _KEPT_MAX:
                self._told.popitem(last=False)

    def preempted(self, victim: JsonObject, uid: str, node: str) -> None:
        """Record that a pod was preempted by another one."""
        note = f"Preempted by pod {uid} on node {node}"
        self._create(victim, ("Normal", "Preempted", "Preempting"), note)

    def _create(self, pod: JsonObject, what: tuple[str, str, str], note: str) -> str:
        meta = pod["metadata"]
        now = self._clock.now()
        if now != self._moment:
            self._moment, self._time = now, _precise(now)
            self._stamp = f"{int(now.timestamp()):x}"
        type_, reason, action = what
        self._serial += 1
        name = f"{meta['name'][:200]}.{self._stamp}{self._serial:08x}"
        event = {
            "metadata": {"name": name, "namespace": meta["namespace"]},
            "involvedObject": {
                "kind": "Pod",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
                "apiVersion": "v1",
                "resourceVersion": meta["resourceVersion"],
            },
            "reason": reason,
            "message": note,
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "type": type_,
            "eventTime": self._time,
            "action": action,
            "reportingComponent": self._name,
            "reportingInstance": self._name,
        }
        try:
            self._store.create(EVENT, event)
        except ClusterError:
            # A deleting namespace accepts no events: drop this one.
            return ""
        return name

    def _repeat(self, namespace: str, name: str) -> bool:
        event = self._store.find(EVENT, name, namespace)
        if event is None:
            return False
        count = (event.get("series") or {}).get("count", 1) + 1
        series = {"count": count, "lastObservedTime": _precise(self._clock.now())}
        try:
            self._store.replace(EVENT, {**event, "series": series})
        except NotFound:
            return False
        return True


def _precise(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
