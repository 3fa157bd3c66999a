"""A store with workload controllers on virtual time, and simple kubelets."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import EVENT, NODE, POD, Kind
from karpy.ports.objects import EventType, Patch, PatchType, Query, Removal, WatchEvent
from karpy.sim.clock import LoopClock
from karpy.sim.store.names import time_text
from karpy.sim.store.store import Store
from karpy.sim.workloads.workloads import Workloads

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE: Final = "default"


class Stage:
    """
    A store with workload controllers.

    Pods are bound and Ready `start` seconds after they appear, or never; they are gone `stop`
    seconds after they are deleted.
    """

    def __init__(self, *, start: float | None, stop: float) -> None:
        self.clock = LoopClock(START)
        self.clock.now()
        self.store = Store(self.clock)
        self.workloads = Workloads(self.store, self.clock, patience_seconds=0)
        self._start = start
        self._stop = stop
        self._count = 0
        self.store.subscribe(POD, self._take)

    def add(self, kind: Kind, name: str, spec: JsonObject, **metadata: object) -> JsonObject:
        meta: JsonObject = {"name": name, **metadata}
        if kind.is_namespaced:
            meta["namespace"] = NAMESPACE
        return self.store.create(kind, {"metadata": meta, "spec": spec})

    def get(self, kind: Kind, name: str) -> JsonObject:
        return self.store.get(kind, name, NAMESPACE if kind.is_namespaced else "")

    def exists(self, kind: Kind, name: str) -> bool:
        return self.store.find(kind, name, NAMESPACE if kind.is_namespaced else "") is not None

    def status(self, kind: Kind, name: str) -> JsonObject:
        """Return a status without its conditions."""
        status = self.get(kind, name).get("status") or {}
        return {key: value for key, value in status.items() if key != "conditions"}

    def conditions(self, kind: Kind, name: str) -> dict[str, tuple[str, str]]:
        """Return status and reason of each condition."""
        status = self.get(kind, name).get("status") or {}
        return {
            each["type"]: (each["status"], each.get("reason", ""))
            for each in status.get("conditions") or ()
        }

    def patch(self, kind: Kind, name: str, body: JsonObject, subresource: str = "") -> JsonObject:
        return self.store.patch(
            kind,
            name,
            Patch(PatchType.MERGE, body),
            namespace=NAMESPACE if kind.is_namespaced else "",
            subresource=subresource,
        )

    def delete(
        self, kind: Kind, name: str, propagation: str = "", grace: int | None = None
    ) -> None:
        self.store.delete(
            kind,
            name,
            namespace=NAMESPACE if kind.is_namespaced else "",
            removal=Removal(grace_seconds=grace, propagation=propagation),
        )

    def all(self, kind: Kind, labels: str = "") -> list[JsonObject]:
        return self.store.list(kind, Query(labels=labels))

    def names(self, kind: Kind, labels: str = "") -> list[str]:
        return [each["metadata"]["name"] for each in self.all(kind, labels)]

    def pods(self, labels: str = "") -> list[JsonObject]:
        """Return the pods that are not deleting."""
        return [pod for pod in self.all(POD, labels) if "deletionTimestamp" not in pod["metadata"]]

    def pod_names(self, labels: str = "") -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods(labels)]

    def images(self) -> list[str]:
        """Return the images of the pods that are not deleting."""
        return sorted(pod["spec"]["containers"][0]["image"] for pod in self.pods())

    def events(self, name: str) -> list[str]:
        """Return reason, message and count of the events of an object, in order."""
        events = [each for each in self.all(EVENT) if each["involvedObject"]["name"] == name]
        events.sort(key=lambda each: each["metadata"]["name"])
        return [f"{each['reason']}: {each['message']} x{each['count']}" for each in events]

    def node(self, name: str, *, labels: dict[str, str] | None = None, taint: str = "") -> None:
        spec: JsonObject = {}
        if taint:
            key, effect = taint.split(":")
            spec = {"taints": [{"key": key, "effect": effect}]}
        self.add(NODE, name, spec, labels=labels or {})

    def bind(self, pod: str, node: str = "n1") -> None:
        binding = {
            "metadata": {"name": pod, "namespace": NAMESPACE},
            "target": {"kind": "Node", "name": node},
        }
        self.store.create(POD, binding, subresource="binding")

    def report(self, pod: str, phase: str, *, is_ready: bool = False, **status: object) -> None:
        """Write a pod status as a kubelet does."""
        now = time_text(self.clock.now())
        ready = {
            "type": "Ready",
            "status": "True" if is_ready else "False",
            "lastTransitionTime": now,
        }
        self.patch(
            POD, pod, {"status": {"phase": phase, "conditions": [ready], **status}}, "status"
        )

    def run(self, pod: str, node: str = "n1") -> None:
        """Make a pod Running and Ready."""
        if not self.get(POD, pod)["spec"].get("nodeName"):
            self.bind(pod, node)
        self.report(pod, "Running", is_ready=True)

    def _take(self, event: WatchEvent, before: JsonObject | None) -> None:
        meta, loop = event.object["metadata"], asyncio.get_running_loop()
        if event.type is EventType.ADDED and self._start is not None:
            self._count += 1
            loop.call_later(self._start, self._begin, meta["name"], f"n{self._count % 3}")
        is_deleting = "deletionTimestamp" in meta
        was_going = before is not None and "deletionTimestamp" in before["metadata"]
        if event.type is EventType.MODIFIED and is_deleting and not was_going:
            loop.call_later(self._stop, self._end, meta["name"], meta["uid"])

    def _begin(self, pod: str, node: str) -> None:
        found = self.store.find(POD, pod, NAMESPACE)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            self.run(pod, node)

    def _end(self, pod: str, uid: str) -> None:
        found = self.store.find(POD, pod, NAMESPACE)
        if found is not None and found["metadata"]["uid"] == uid:
            self.delete(POD, pod, grace=0)


@contextmanager
def on_stage(*, start: float | None = 1.0, stop: float = 1.0) -> Iterator[Stage]:
    """Run a stage on the running loop."""
    stage = Stage(start=start, stop=stop)
    stage.workloads.start()
    try:
        yield stage
    finally:
        stage.workloads.stop()


def template(app: str, image: str = "app:1", **spec: object) -> JsonObject:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "app", "image": image}], **spec},
    }


def workload(app: str, replicas: int = 3, **spec: object) -> JsonObject:
    """Return a spec for Deployments, ReplicaSets and StatefulSets."""
    return {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": app}},
        "template": template(app),
        **spec,
    }


def with_image(image: str) -> JsonObject:
    """Return the patch that rolls an image out."""
    containers = [{"name": "app", "image": image}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


async def settle(seconds: float = 0.5) -> None:
    """Let time pass."""
    await asyncio.sleep(seconds)
