"""Pods that come, run, end and go, no two alike, and the parts of the operator that see them."""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from karpy.adapters.clock import WallClock
from karpy.adapters.kube.events import EventRecorder
from karpy.adapters.mirror.mirror import Mirror
from karpy.adapters.telemetry.metrics import Metrics
from karpy.adapters.telemetry.specs import metric_specs
from karpy.adapters.telemetry.statemetrics import StateMetrics, StateSources
from karpy.codec.fields import JsonObject
from karpy.codec.podjson import PodJsonReader
from karpy.model.instances import Catalog
from karpy.model.kinds import POD, Kind
from karpy.model.notices import Notice, Subject
from karpy.model.settings import Settings
from karpy.ports.objects import EVERYTHING, Change, Query, Reader, Synced
from tests.adapters.kube.smallstore import SmallStore

_ALIVE: Final = 100
"""So many pods are there at a time."""
_LOOKS: Final = 500
"""After so many pods a snapshot is taken and metrics are told."""


class Life:
    """The mirror, and who hears of its pods; `pass_by` has one more pod live, and an old one go."""

    def __init__(self, *, is_leader: bool = True) -> None:
        clock = WallClock()
        self._is_leader = is_leader
        self._reader = PodJsonReader()
        self._mirror = Mirror(_Silent(), clock, Catalog, Settings())
        self._events = EventRecorder(SmallStore(), clock, instance="soak")
        self._metrics = Metrics(metric_specs())
        records = self._mirror.records
        sources = StateSources(records, clock, self._events, lambda: True)
        self._state = StateMetrics(self._metrics, sources)

    def pass_by(self, number: int) -> None:
        """Have a pod come, and others run, end and go that came before it."""
        self._see(number, "Pending")
        self._see(number - _ALIVE // 3, "Running")
        self._see(number - _ALIVE // 2, "Succeeded")
        self._see(number - _ALIVE, "")
        if self._is_leader and number % _LOOKS == 0:
            self._mirror.snapshot()
            self._metrics.render()

    def _see(self, number: int, phase: str) -> None:
        if number < 0:
            return
        key, version = f"team-{number % 50}/{_name(number)}", str(number)
        if not phase:
            self._mirror.pods.take(Change(key, None, version))
            return
        pod = self._reader.from_bytes(msgspec.json.encode(_pod(number, phase)))
        self._mirror.pods.take(Change(key, pod, version))
        if phase == "Pending" and self._is_leader:
            self._state.acked(pod)
            subject = Subject(POD, pod.name, pod.namespace, pod.uid)
            self._events.emit(Notice(subject, "Nominated", "", same_as=(pod.uid,)))


class _Silent:
    """A feed that tells nothing."""

    async def follow(
        self, kind: Kind, reader: Reader[Any], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[Any] | Synced]:
        del kind, reader, query
        yield Synced()


def _name(number: int) -> str:
    return f"job-{number}-7d4b9"


def _pod(number: int, phase: str) -> dict[str, Any]:
    """Return a pod of a Job of its own, as an API server shows it."""
    uid = f"{number:08}-0000-4000-8000-000000000000"
    minute, second = divmod(number % 3600, 60)
    day, hour = divmod(number // 3600, 24)
    moment = f"2026-01-{day + 1:02}T{hour:02}:{minute:02}:{second:02}Z"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number}", "uid": f"j{uid}"}
    resources = {"requests": {"cpu": f"{number + 10}m", "memory": f"{number + 2**20}"}}
    spec: JsonObject = {
        "containers": [{"name": "c", "image": "i", "resources": resources}],
        "tolerations": [{"key": f"example.com/job-{number}", "operator": "Exists"}],
    }
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    conditions = [scheduled]
    if phase != "Pending":
        spec["nodeName"] = f"node-{number // 10}"
        since = {"status": "True", "lastTransitionTime": moment}
        conditions = [{"type": "PodScheduled", **since}, {"type": "Ready", **since}]
    return {
        "metadata": {
            "name": _name(number),
            "namespace": f"team-{number % 50}",
            "uid": uid,
            "creationTimestamp": moment,
            "labels": {"job-name": f"job-{number}", "controller-uid": f"j{uid}"},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": spec,
        "status": {"phase": phase, "conditions": conditions},
    }
