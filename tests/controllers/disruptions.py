"""Worlds whose nodes are launched, maintained and disrupted, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypedDict, Unpack

from msgspec import Struct

from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.controllers.clusterstate import ClusterState, Commands, Promises
from karpy.controllers.context import ControllerContext
from karpy.controllers.disruption import DisruptionController
from karpy.controllers.evictionqueue import EvictionQueue
from karpy.controllers.nodeclaimdisruption import NodeClaimDisruptionController, PodEventController
from karpy.controllers.nodeclaimlifecycle import LifecycleController
from karpy.controllers.nodetermination import TerminationController
from karpy.controllers.nominations import ClaimNominations, NodeNominations
from karpy.controllers.reboot import RebootController
from karpy.controllers.writer import Writer
from karpy.model.kinds import NODE, NODE_CLAIM, NODE_POOL
from karpy.model.nodes import RepairPolicy
from karpy.model.settings import Options, Settings
from karpy.ports.cloud import CloudProvider
from karpy.ports.objects import Feed, Objects
from karpy.sim.world import World
from tests.controllers.operators import NODE_CLASS, Heard, claim, is_ready, until

TAINT = "karpenter.sh/disrupted"


class Stage(Struct):
    """What a story has at hand."""

    context: ControllerContext
    state: ClusterState
    commands: Commands
    nominations: NodeNominations
    disruption: DisruptionController


class Given(TypedDict, total=False):
    """What some stories need besides."""

    policies: tuple[RepairPolicy, ...]
    feed: Feed
    decision_timeout: timedelta


@asynccontextmanager
async def disrupting(
    world: World,
    heard: Heard,
    objects: Objects | None = None,
    cloud: CloudProvider | None = None,
    **given: Unpack[Given],
) -> AsyncIterator[Stage]:
    """Run the controllers of claims and disruption, until they are cancelled."""
    objects = objects or world.objects
    mirror = Mirror(given.get("feed", world.objects), world.clock, kwok_catalog, Settings())
    watching = asyncio.create_task(mirror.run())
    await mirror.wait_until_listed()
    context = ControllerContext(
        mirror.records,
        objects,
        cloud or world.cloud,
        Writer(objects, heard, heard),
        world.clock,
        on_failure=heard.fail,
        decision_timeout=given.get("decision_timeout", Options().decision_timeout),
    )
    commands, nominations = Commands(), NodeNominations(world.clock)
    state = ClusterState(
        MirroredCluster(mirror, objects),
        Promises(commands, nominations, ClaimNominations(mirror.records, world.clock)),
        repair_policies=given.get("policies", ()),
    )
    disruption = DisruptionController(
        context, state, commands, nominations, lambda: mirror.consolidation_version
    )
    evictions = EvictionQueue(context)
    parts = (
        LifecycleController(context),
        TerminationController(context, evictions),
        evictions,
        NodeClaimDisruptionController(context),
        PodEventController(context),
        RebootController(context, evictions),
        disruption,
    )
    tasks = [watching, *(asyncio.create_task(each.run()) for each in parts)]
    try:
        yield Stage(context, state, commands, nominations, disruption)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pool(*budgets: JsonObject, **disruption: object) -> JsonObject:
    """Build the NodePool `web` whose nodes may all go at once, unless budgets say otherwise."""
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    disruption = {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": "30s",
        "budgets": list(budgets) or [{"nodes": "100%"}],
        **disruption,
    }
    return {
        "metadata": {"name": "web"},
        "spec": {"template": template, "disruption": disruption},
    }


async def make_nodes(world: World, *names: str, **spec: object) -> None:
    """Have claims whose nodes are ready for pods."""
    for name in names:
        world.store.create(NODE_CLAIM, claim(name, **spec))
    await until(lambda: all(is_ready(world, name) for name in names))


def claims_in(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.store.list(NODE_CLAIM)]


def leaving(world: World) -> list[str]:
    """Name the claims that are being deleted."""
    found = [each["metadata"] for each in world.store.list(NODE_CLAIM)]
    return [each["name"] for each in found if "deletionTimestamp" in each]


def tainted(world: World) -> list[str]:
    """Return the names of the nodes with the disrupted taint."""
    return [
        each["metadata"]["name"]
        for each in world.store.list(NODE)
        if any(taint["key"] == TAINT for taint in each["spec"].get("taints") or ())
    ]


def make_pool(world: World, *budgets: JsonObject, **disruption: object) -> None:
    world.store.create(NODE_POOL, pool(*budgets, **disruption))
