"""Worlds with the controllers of NodeClaims and Nodes, on virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.controllers.context import ControllerContext
from karpy.controllers.evictionqueue import EvictionQueue
from karpy.controllers.nodeclaimlifecycle import LifecycleController
from karpy.controllers.nodetermination import TerminationController
from karpy.controllers.writer import Writer
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import KarpyError
from karpy.model.kinds import NODE, NODE_CLAIM
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord
from karpy.model.settings import Settings
from karpy.ports.cloud import CloudProvider
from karpy.ports.objects import Feed, Objects
from karpy.sim.world import World

NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
SMALL = "c-4x-amd64-linux"


class Heard:
    """Records all events, counts, remarks and failures."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.counts: list[Count] = []
        self.remarks: list[Remark] = []
        self.failures: list[KarpyError] = []

    def emit(self, notice: Notice) -> None:
        self.notices.append(notice)

    def count(self, count: Count) -> None:
        self.counts.append(count)

    def remark(self, remark: Remark) -> None:
        self.remarks.append(remark)

    def fail(self, key: str, error: KarpyError) -> None:
        del key
        self.failures.append(error)

    def told(self, reason: str) -> list[str]:
        """Return what was said for a reason, each once."""
        return list(dict.fromkeys(each.note for each in self.notices if each.reason == reason))

    def counted(self, metric: str) -> float:
        return sum(each.value for each in self.counts if each.metric == metric)


@asynccontextmanager
async def context_of(
    world: World,
    heard: Heard,
    cloud: CloudProvider | None = None,
    is_ours: Callable[[ClaimRecord], bool] = lambda _: True,
    objects: Objects | None = None,
    feed: Feed | None = None,
) -> AsyncIterator[ControllerContext]:
    """Return what controllers work with, on top of a synced mirror."""
    mirror = Mirror(feed or world.objects, world.clock, kwok_catalog, Settings())
    task = asyncio.create_task(mirror.run())
    await mirror.wait_until_listed()
    objects = objects or world.objects
    writer = Writer(objects, heard, heard)
    try:
        yield ControllerContext(
            mirror.records,
            objects,
            cloud or world.cloud,
            writer,
            world.clock,
            is_ours=is_ours,
            on_failure=heard.fail,
        )
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def operator(
    world: World,
    heard: Heard,
    cloud: CloudProvider | None = None,
    is_ours: Callable[[ClaimRecord], bool] = lambda _: True,
    objects: Objects | None = None,
    feed: Feed | None = None,
) -> AsyncIterator[ControllerContext]:
    """Run the controllers of NodeClaims and Nodes, until cancelled."""
    async with context_of(world, heard, cloud, is_ours, objects, feed) as context:
        evictions = EvictionQueue(context)
        parts = (LifecycleController(context), TerminationController(context, evictions), evictions)
        tasks = [asyncio.create_task(each.run()) for each in parts]
        try:
            yield context
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def until(holds: Callable[[], bool], *, seconds: int = 900) -> None:
    """Wait until something holds, a quarter of an hour at most."""
    for _ in range(seconds):
        if holds():
            return
        await asyncio.sleep(1)
    raise TimeoutError


def claim(name: str = "web-1", **spec: object) -> JsonObject:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [SMALL]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    return {
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "web", "team": "shop"}},
        "spec": {
            "requirements": requirements,
            "nodeClassRef": NODE_CLASS,
            "resources": {"requests": {"cpu": "1"}},
            **spec,
        },
    }


def conditions(world: World, name: str = "web-1") -> dict[str, str]:
    """Return what is said of a claim, by condition."""
    found = world.store.find(NODE_CLAIM, name) or {}
    told = (found.get("status") or {}).get("conditions") or ()
    return {each["type"]: each["status"] for each in told}


def is_ready(world: World, name: str = "web-1") -> bool:
    return conditions(world, name).get("Ready") == "True"


def node_of(world: World, name: str = "web-1") -> str:
    """Return the name of a claim's Node."""
    return str(world.store.get(NODE_CLAIM, name)["status"]["nodeName"])


def is_empty(world: World) -> bool:
    """Say whether no claim and no Node is left."""
    return not world.store.list(NODE_CLAIM) and not world.store.list(NODE)
