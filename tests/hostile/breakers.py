"""Clusters in which kube-scheduler does not bind pods to their planned nodes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.kinds import KWOK_NODE_CLASS, NODE, NODE_POOL, POD
from karpy.model.labels import REGISTERED
from karpy.model.notices import Notice
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason, Verdict
from karpy.ports.objects import Patch, PatchType, WatchEvent
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world
from karpy.wiring.resident import BRISK, operating
from tests.scenarios.manifests import node_class, pod_spec, pool
from tests.wiring.test_resident import Deaf

VETO: Final = "sim.karpy.dev/unschedulable"


class Witness(Deaf):
    """Records verdicts, events, metrics and log lines."""

    def __init__(self) -> None:
        self.decisions: list[tuple[Snapshot, Verdict]] = []
        self.notices: list[Notice] = []
        self.counts: list[Count] = []
        self.remarks: list[Remark] = []

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        self.decisions.append((snapshot, verdict))

    def record_disruption(self, *_: object) -> None:
        return

    def record_pool(self, *_: object) -> None:
        return

    def emit(self, notice: Notice) -> None:
        self.notices.append(notice)

    def count(self, count: Count) -> None:
        self.counts.append(count)

    def remark(self, remark: Remark) -> None:
        self.remarks.append(remark)

    def launches_for(self, prefix: str) -> list[datetime]:
        """Return the times of launches for pods whose names have a prefix."""
        return [
            snapshot.now
            for snapshot, verdict in self.decisions
            if any(_is_for(prefix, each.pods) for each in verdict.launches)
        ]

    def pauses_for(self, prefix: str) -> list[float]:
        """Return the seconds from each launch to the next."""
        moments = self.launches_for(prefix)
        return [(b - a) / timedelta(seconds=1) for a, b in pairwise(moments)]

    def refusals(self) -> list[str]:
        """Return the reasons of withheld launches, in order."""
        return [
            refusal.detail
            for _, verdict in self.decisions
            for refusal in verdict.refusals
            if refusal.reason is Reason.LAUNCHED_IN_VAIN
        ]


@asynccontextmanager
async def cluster(witness: Witness) -> AsyncIterator[World]:
    """Run a cluster with a NodePool and an operator."""
    async with (
        embedded_world(BRISK) as world,
        operating(world, notices=witness, voice=witness, journal=witness),
    ):
        world.store.create(KWOK_NODE_CLASS, node_class())
        world.store.create(NODE_POOL, pool())
        yield world


def push_out(world: World, app: str, seconds: float) -> None:
    """Replace each pod of an app some seconds after it was bound to a node."""

    def end(name: str, node: str) -> None:
        world.store.delete(POD, name, namespace="default")
        usurper = {"name": f"usurper-{node}", "namespace": "default"}
        world.store.create(POD, {"metadata": usurper, "spec": pod_spec("3", nodeName=node)})

    def on_pod(event: WatchEvent, before: JsonObject | None) -> None:
        pod = event.object
        is_app = (pod["metadata"].get("labels") or {}).get("app") == app
        node = pod["spec"].get("nodeName")
        if is_app and node and not ((before or {}).get("spec") or {}).get("nodeName"):
            asyncio.get_running_loop().call_later(seconds, end, pod["metadata"]["name"], node)

    world.store.subscribe(POD, on_pod)


def end_nodes(world: World) -> None:
    """Cordon and delete each node as soon as it is registered, before its gate opens."""

    def end(name: str) -> None:
        world.store.patch(NODE, name, Patch(PatchType.MERGE, {"spec": {"unschedulable": True}}))
        world.store.delete(NODE, name)

    def on_node(event: WatchEvent, before: JsonObject | None) -> None:
        was = ((before or {}).get("metadata") or {}).get("labels") or {}
        if REGISTERED in event.object["metadata"]["labels"] and REGISTERED not in was:
            name = event.object["metadata"]["name"]
            asyncio.get_running_loop().call_soon(end, name)

    world.store.subscribe(NODE, on_node)


def running(world: World, app: str) -> int:
    """Count the pods of an app that run."""
    return sum(
        (each["metadata"].get("labels") or {}).get("app") == app
        and (each.get("status") or {}).get("phase") == "Running"
        for each in world.store.list(POD)
    )


def _is_for(prefix: str, pods: tuple[str, ...]) -> bool:
    return any(each.startswith(f"default/{prefix}") for each in pods)
