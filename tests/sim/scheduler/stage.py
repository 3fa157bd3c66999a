"""A store with a scheduler on virtual time, and the objects to put there."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    BUILT_IN,
    EVENT,
    NODE,
    POD,
    Kind,
)
from karpy.model.labels import HOSTNAME, ZONE
from karpy.ports.objects import Removal
from karpy.sim.clock import LoopClock
from karpy.sim.loop import run
from karpy.sim.scheduler.provisioner import Provisioner
from karpy.sim.scheduler.scheduler import Scheduler
from karpy.sim.store.conditions import condition_of
from karpy.sim.store.store import Store

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
_KINDS: Final = {kind.name: kind for kind in BUILT_IN if kind.group != "events.k8s.io"}
AFTERWARDS: Final = " no new claims to deallocate, preemption: "
HELPLESS: Final = (
    AFTERWARDS + "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)
NO_VICTIMS: Final = (
    AFTERWARDS + "0/1 nodes are available: 1 No preemption victims found for incoming pod."
)

JsonValue: TypeAlias = str | int | list[JsonObject] | list[str] | JsonObject
Step: TypeAlias = JsonObject | float | Callable[["Stage"], object]
"""An object to create, seconds to wait, or something to do."""


class Stage:
    """The store after a run of the scheduler."""

    def __init__(self) -> None:
        self.clock = LoopClock(NOON)
        self.store = Store(self.clock)
        self.scheduler = Scheduler(self.store, self.clock)

    def create(self, obj: JsonObject) -> None:
        made = self.store.create(_KINDS[obj["kind"]], obj)
        if obj["kind"] == NODE.name:
            # Remove the not-ready taint: there is no kubelet that would become Ready.
            self.store.replace(NODE, {**made, "spec": obj["spec"]})

    def pod(self, name: str, namespace: str = "default") -> JsonObject:
        return self.store.get(POD, name, namespace)

    def node_of(self, name: str) -> str | None:
        found: str | None = self.pod(name)["spec"].get("nodeName")
        return found

    def nodes(self) -> dict[str, str | None]:
        """Return the node of each pod."""
        return {
            each["metadata"]["name"]: each["spec"].get("nodeName") for each in self.store.list(POD)
        }

    def message(self, name: str) -> str:
        """Return the message why a pod is not scheduled."""
        condition = condition_of(self.pod(name), "PodScheduled")
        return str((condition or {}).get("message"))

    def events(self, reason: str) -> list[JsonObject]:
        return [each for each in self.store.list(EVENT) if each["reason"] == reason]

    def end(self, name: str) -> None:
        """Delete a pod at once."""
        self.store.delete(POD, name, namespace="default", removal=Removal(grace_seconds=0))

    def change(self, kind: Kind, name: str, namespace: str = "", **fields: JsonObject) -> None:
        """Replace parts of an object."""
        obj = self.store.get(kind, name, namespace)
        merged = {key: {**(obj.get(key) or {}), **value} for key, value in fields.items()}
        self.store.replace(kind, {**obj, **merged})


def play(*steps: Step, has_provisioner: bool = False, seconds: float = 0.5) -> Stage:
    """Carry out steps in order while a scheduler runs."""
    stage = Stage()
    perform(stage, *steps, has_provisioner=has_provisioner, seconds=seconds)
    return stage


def perform(
    stage: Stage, *steps: Step, has_provisioner: bool = False, seconds: float = 0.5
) -> None:
    """Carry out steps on a prepared stage."""
    run(_play(stage, steps, seconds, has_provisioner=has_provisioner))


async def _play(
    stage: Stage, steps: tuple[Step, ...], seconds: float, *, has_provisioner: bool
) -> None:
    provisioner = Provisioner(stage.store)
    if has_provisioner:
        provisioner.start()
    stage.scheduler.start()
    for step in steps:
        match step:
            case dict():
                stage.create(step)
            case float() | int():
                await asyncio.sleep(step)
            case _:
                step(stage)
    await asyncio.sleep(seconds)
    stage.scheduler.stop()
    provisioner.stop()


def node(
    name: str, *, cpu: str = "4", memory: str = "8Gi", zone: str = "a", **parts: JsonObject
) -> JsonObject:
    """Return a Node with further `labels`, `spec` and `allocatable`."""
    labels = {HOSTNAME: name, ZONE: zone, **parts.get("labels", {})}
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110", **parts.get("allocatable", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {k: v for k, v in labels.items() if v}},
        "spec": parts.get("spec", {}),
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def pod(
    name: str, *, cpu: str = "", labels: JsonObject | None = None, **spec: JsonValue
) -> JsonObject:
    """Return a Pod with one container."""
    container: JsonObject = {"name": "main", "image": "app"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    meta: JsonObject = {"name": name, "labels": labels or {}}
    meta["namespace"] = spec.pop("namespace", "default")
    if "owner" in spec:
        meta["ownerReferences"] = [spec.pop("owner")]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **spec},
    }


def placed(
    name: str, where: str, *, cpu: str = "", labels: JsonObject | None = None, **spec: JsonValue
) -> JsonObject:
    """Return a Pod that is bound to a node."""
    return pod(name, cpu=cpu, labels=labels, nodeName=where, **spec)


def on_nodes(*terms: JsonObject) -> JsonObject:
    """Return a required node affinity."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expression(key: str, operator: str, *values: str) -> JsonObject:
    return {"key": key, "operator": operator, "values": list(values)}
