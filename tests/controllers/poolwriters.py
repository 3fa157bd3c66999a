"""Worlds with the controllers of NodePools, on virtual time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from msgspec import Struct

from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.controllers.context import ControllerContext
from karpy.controllers.evictionqueue import EvictionQueue
from karpy.controllers.nodeclaimlifecycle import LifecycleController
from karpy.controllers.nodeclasses import NodeClasses
from karpy.controllers.nodetermination import TerminationController
from karpy.controllers.writer import Writer
from karpy.model.kinds import KWOK_NODE_CLASS, NODE_CLAIM, NODE_POOL
from karpy.model.nodes import Node
from karpy.model.settings import Settings
from karpy.ports.objects import Objects, Patch, PatchType
from karpy.sim.world import World
from tests.controllers.operators import NODE_CLASS, Heard


class Loop(Protocol):
    """A controller."""

    async def run(self) -> None:
        """Work until cancelled."""


class Scene(Struct):
    """What controllers of NodePools are made with."""

    world: World
    context: ControllerContext
    mirror: Mirror
    classes: NodeClasses
    cluster: MirroredCluster

    def nodes(self) -> Sequence[Node] | None:
        return self.mirror.node_book.joined() if self.mirror.is_synced else None


@asynccontextmanager
async def scene_of(
    world: World, heard: Heard, objects: Objects | None = None
) -> AsyncIterator[Scene]:
    """Return what controllers work with, on top of a synced mirror."""
    mirror = Mirror(world.objects, world.clock, kwok_catalog, Settings())
    classes = NodeClasses(world.objects, (KWOK_NODE_CLASS,))
    objects = objects or world.objects
    async with running(mirror, classes):
        await mirror.wait_until_listed()
        context = ControllerContext(
            mirror.records,
            objects,
            world.cloud,
            Writer(objects, heard, heard),
            world.clock,
            is_ours=classes.is_ours,
            on_failure=heard.fail,
        )
        yield Scene(world, context, mirror, classes, MirroredCluster(mirror, objects))


@asynccontextmanager
async def running(*loops: Loop) -> AsyncIterator[None]:
    """Let controllers run, until they are killed."""
    tasks = [asyncio.create_task(each.run()) for each in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def claim_writers(context: ControllerContext) -> tuple[Loop, ...]:
    """Return the controllers that launch and terminate NodeClaims."""
    evictions = EvictionQueue(context)
    return LifecycleController(context), TerminationController(context, evictions), evictions


def pool(name: str = "web", **spec: object) -> JsonObject:
    """Build a NodePool of the node class `default`; keywords go into its spec."""
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def add_class(world: World) -> None:
    """Have the node class of the pools."""
    world.store.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}, "spec": {}})


def conditions_of(world: World, name: str = "web") -> dict[str, tuple[str, str, str]]:
    """Return status, reason and message of a pool's conditions."""
    told = world.store.get(NODE_POOL, name).get("status", {}).get("conditions", ())
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in told}


def claims_in(world: World) -> list[JsonObject]:
    return list(world.store.list(NODE_CLAIM))


def patch_pool(world: World, spec: JsonObject, name: str = "web") -> None:
    """Change the specification of a pool."""
    world.store.patch(NODE_POOL, name, Patch(PatchType.MERGE, {"spec": spec}))
