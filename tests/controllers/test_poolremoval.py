"""The nodes of a deleted NodePool are deleted, on virtual time."""

import asyncio

import pytest

from karpy.adapters.telemetry.metrics import Metrics
from karpy.codec.fields import JsonObject
from karpy.controllers.nodeclaimdisruption import NodeClaimDisruptionController
from karpy.controllers.nodepools import (
    NodePoolController,
    NodePoolMetrics,
    RegistrationHealthController,
)
from karpy.controllers.staticcapacity import StaticCapacityController
from karpy.model.kinds import DISRUPTION_BUDGET, NODE, NODE_CLAIM, NODE_POOL, POD
from karpy.ports.objects import Removal
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, claim, is_empty, is_ready, node_of, until
from tests.controllers.poolwriters import (
    Loop,
    Scene,
    add_class,
    claim_writers,
    claims_in,
    pool,
    running,
    scene_of,
)
from tests.controllers.test_nodetermination import budget, pod


def all_loops(scene: Scene) -> tuple[Loop, ...]:
    ours = scene.classes.is_our_pool
    return (
        NodePoolController(scene.context, scene.classes, scene.nodes),
        RegistrationHealthController(scene.context, scene.classes.generation_of),
        StaticCapacityController(scene.context, scene.cluster, is_our_pool=ours),
        NodePoolMetrics(scene.context, Metrics(), ours),
        NodeClaimDisruptionController(scene.context),
        *claim_writers(scene.context),
    )


def new_world(made: JsonObject) -> World:
    world = World()
    world.start()
    add_class(world)
    world.store.create(NODE_POOL, made)
    return world


def add_claim(world: World, name: str) -> None:
    """Have a claim of the pool."""
    uid = world.store.get(NODE_POOL, "web")["metadata"]["uid"]
    owner = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "name": "web",
        "uid": uid,
        "blockOwnerDeletion": True,
    }
    made = claim(name)
    made["metadata"]["ownerReferences"] = [owner]
    world.store.create(NODE_CLAIM, made)


def is_gone(world: World) -> bool:
    return is_empty(world) and world.store.find(NODE_POOL, "web") is None


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_pool_that_is_deleted_takes_its_nodes_with_it(propagation: str) -> None:
    heard = Heard()

    async def story() -> tuple[bool, int, list[JsonObject]]:
        world = new_world(pool())
        async with scene_of(world, heard) as scene, running(*all_loops(scene)):
            add_claim(world, "web-1")
            add_claim(world, "web-2")
            await until(lambda: is_ready(world, "web-1") and is_ready(world, "web-2"))
            world.store.create(POD, pod("a", node_of(world, "web-1")))
            world.store.create(POD, pod("b", node_of(world, "web-2")))
            await asyncio.sleep(5)
            world.store.delete(NODE_POOL, "web", removal=Removal(propagation=propagation))
            await until(lambda: is_gone(world))
            left = len(await world.cloud.machines())
        world.stop()
        return is_gone(world), left, list(world.store.list(POD))

    assert run(story()) == (True, 0, [])
    assert heard.counted("pods_drained_total") == 2
    assert heard.counted("nodes_terminated_total") == 2
    assert heard.failures == []


def test_a_budget_holds_the_nodes_of_a_pool_that_is_deleted() -> None:
    async def story() -> tuple[int, bool]:
        world = new_world(pool())
        async with scene_of(world, Heard()) as scene, running(*all_loops(scene)):
            add_claim(world, "web-1")
            await until(lambda: is_ready(world))
            world.store.create(DISRUPTION_BUDGET, budget("all", 1))
            world.store.create(POD, pod("a", node_of(world)))
            await asyncio.sleep(5)
            world.store.delete(NODE_POOL, "web")
            await asyncio.sleep(600)
            held = len(world.store.list(NODE))
            world.store.delete(DISRUPTION_BUDGET, "all", namespace="default")
            await until(lambda: is_gone(world))
        world.stop()
        return held, is_gone(world)

    assert run(story()) == (1, True)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_static_pool_that_is_deleted_makes_no_more_nodes(propagation: str) -> None:
    heard = Heard()

    async def story() -> tuple[bool, int]:
        world = new_world(pool(replicas=3))
        async with scene_of(world, heard) as scene, running(*all_loops(scene)):
            await until(lambda: [is_ready(world, name) for name in names(world)] == [True] * 3)
            world.store.delete(NODE_POOL, "web", removal=Removal(propagation=propagation))
            await until(lambda: is_gone(world))
            await asyncio.sleep(300)
            left = len(await world.cloud.machines())
        world.stop()
        return is_gone(world), left

    assert run(story()) == (True, 0)
    assert heard.counted("nodeclaims_created_total") == 3
    assert heard.failures == []


def names(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in claims_in(world)]


def test_a_pool_that_is_made_again_is_another_one() -> None:
    async def story() -> tuple[bool, str]:
        world = new_world(pool())
        async with scene_of(world, Heard()) as scene, running(*all_loops(scene)):
            add_claim(world, "web-1")
            await until(lambda: is_ready(world))
            world.store.delete(NODE_POOL, "web")
            world.store.create(NODE_POOL, pool())
            await until(lambda: is_empty(world))
            await asyncio.sleep(10)
            status = world.store.get(NODE_POOL, "web")["status"]
        world.stop()
        return is_empty(world), str(status["nodes"])

    assert run(story()) == (True, "0")
