"""NodePools of a fixed size, on virtual time."""

import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.controllers.nodepools import NodePoolController
from karpy.controllers.staticcapacity import StaticCapacityController
from karpy.model.kinds import NODE, NODE_CLAIM, NODE_POOL, POD
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, claim, is_ready, node_of, until
from tests.controllers.poolwriters import (
    Loop,
    Scene,
    add_class,
    claim_writers,
    claims_in,
    patch_pool,
    pool,
    running,
    scene_of,
)
from tests.controllers.test_nodetermination import pod

CREATED = "nodeclaims_created_total"


def static(scene: Scene) -> StaticCapacityController:
    return StaticCapacityController(
        scene.context, scene.cluster, is_our_pool=scene.classes.is_our_pool
    )


def all_loops(scene: Scene) -> tuple[Loop, ...]:
    pools = NodePoolController(scene.context, scene.classes, scene.nodes)
    return pools, static(scene), *claim_writers(scene.context)


def new_world() -> World:
    world = World()
    world.start()
    add_class(world)
    return world


def mark_ready(world: World, name: str = "web") -> None:
    """Have a pool that is ready."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-05T00:00:00Z",
    }
    patch = Patch(PatchType.MERGE, {"status": {"conditions": [ready]}})
    world.store.patch(NODE_POOL, name, patch, subresource="status")


def add_ready_pool(world: World, replicas: int) -> None:
    world.store.create(NODE_POOL, pool(replicas=replicas))
    mark_ready(world)


def staying(world: World) -> list[str]:
    """Name the claims that are not being deleted."""
    return [
        each["metadata"]["name"]
        for each in claims_in(world)
        if "deletionTimestamp" not in each["metadata"]
    ]


def are_ready(world: World, count: int) -> bool:
    return [is_ready(world, each) for each in staying(world)] == [True] * count


LET_GO = Patch(PatchType.MERGE, {"metadata": {"finalizers": None}})


def test_a_pool_has_as_many_nodes_as_it_says() -> None:
    heard = Heard()

    async def story() -> tuple[JsonObject, JsonObject]:
        world = new_world()
        async with scene_of(world, heard) as scene, running(*all_loops(scene)):
            world.store.create(NODE_POOL, pool(replicas=3))
            await until(lambda: are_ready(world, 3))
            await asyncio.sleep(600)
            assert are_ready(world, 3)
            assert len(world.store.list(NODE)) == 3
        world.stop()
        return claims_in(world)[0], world.store.get(NODE_POOL, "web")

    made, found = run(story())

    assert made["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
    hashes = found["metadata"]["annotations"]
    assert made["metadata"]["annotations"].items() >= hashes.items()
    assert made["metadata"]["labels"]["karpenter.sh/nodepool"] == "web"
    wanted = [
        ("karpenter.kwok.sh/kwoknodeclass", ["default"]),
        ("karpenter.sh/nodepool", ["web"]),
    ]
    assert [(each["key"], each["values"]) for each in made["spec"]["requirements"]] == wanted
    assert "resources" not in made["spec"]
    assert found["status"]["nodes"] == 3
    assert heard.counted(CREATED) == 3
    assert heard.failures == []


def test_a_pool_follows_its_scale() -> None:
    heard = Heard()

    async def story() -> tuple[int, int]:
        world = new_world()
        world.store.create(NODE_POOL, pool(replicas=1))
        async with scene_of(world, heard) as scene, running(*all_loops(scene)):
            await until(lambda: are_ready(world, 1))
            scale(world, 4)
            await until(lambda: are_ready(world, 4))
            scale(world, 2)
            await until(lambda: are_ready(world, 2) and len(claims_in(world)) == 2)
            await asyncio.sleep(600)
            left = len(claims_in(world)), len(await world.cloud.machines())
        world.stop()
        return left

    assert run(story()) == (2, 2)
    assert heard.counted(CREATED) == 4
    assert heard.failures == []


def scale(world: World, replicas: int) -> None:
    """Do what `kubectl scale` does."""
    patch = Patch(PatchType.MERGE, {"spec": {"replicas": replicas}})
    world.store.patch(NODE_POOL, "web", patch, subresource="scale")


def test_empty_nodes_are_given_up_before_those_with_pods() -> None:
    async def story() -> tuple[str, list[str]]:
        world = new_world()
        world.store.create(NODE_POOL, pool(replicas=3))
        async with scene_of(world, Heard()) as scene, running(*all_loops(scene)):
            await until(lambda: are_ready(world, 3))
            busy = staying(world)[1]
            world.store.create(POD, pod("a", node_of(world, busy)))
            await asyncio.sleep(5)
            patch_pool(world, {"replicas": 1})
            await asyncio.sleep(5)
            left = staying(world)
        world.stop()
        return busy, left

    busy, left = run(story())

    assert left == [busy]


def test_a_pool_does_not_grow_beyond_its_limit() -> None:
    heard = Heard()

    async def story() -> list[int]:
        world = new_world()
        world.store.create(NODE_POOL, pool(replicas=5, limits={"nodes": "2"}))
        told = []
        async with scene_of(world, heard) as scene, running(*all_loops(scene)):
            await asyncio.sleep(300)
            told.append(len(claims_in(world)))
            patch_pool(world, {"limits": {"nodes": "4"}})
            await asyncio.sleep(5)
            told.append(len(claims_in(world)))
        world.stop()
        return told

    assert run(story()) == [2, 4]
    assert "nodepool node limit reached" in {each.event for each in heard.remarks}


def test_a_node_that_is_deleted_is_replaced() -> None:
    async def story() -> tuple[str, list[str]]:
        world = new_world()
        world.store.create(NODE_POOL, pool(replicas=2))
        async with scene_of(world, Heard()) as scene, running(*all_loops(scene)):
            await until(lambda: are_ready(world, 2))
            lost = staying(world)[0]
            world.store.delete(NODE_CLAIM, lost)
            await asyncio.sleep(1)
            assert len(staying(world)) == 2
            await until(lambda: are_ready(world, 2) and len(claims_in(world)) == 2)
            left = staying(world)
        world.stop()
        return lost, left

    lost, left = run(story())

    assert lost not in left


def test_a_claim_that_no_watch_has_delivered_is_not_created_again() -> None:
    async def story() -> int:
        world = new_world()
        add_ready_pool(world, replicas=3)
        async with scene_of(world, Heard()) as scene:
            controller = static(scene)
        # No controller runs any more.
        await controller.reconcile("web")
        await controller.reconcile("web")
        await asyncio.sleep(60)
        await controller.reconcile("web")
        world.stop()
        return len(claims_in(world))

    assert run(story()) == 3


def test_what_has_gone_before_a_watch_could_tell_is_made_again() -> None:
    async def story() -> list[str]:
        world = new_world()
        add_ready_pool(world, replicas=2)
        async with scene_of(world, Heard()) as scene:
            controller = static(scene)
        # No controller runs any more.
        await controller.reconcile("web")
        lost = staying(world)
        world.store.patch(NODE_CLAIM, lost[0], LET_GO)
        world.store.delete(NODE_CLAIM, lost[0])
        await asyncio.sleep(60)
        await controller.reconcile("web")
        world.stop()
        return [each for each in staying(world) if each not in lost]

    assert len(run(story())) == 1


def test_no_more_is_given_up_than_there_is_too_much() -> None:
    async def story() -> int:
        world = new_world()
        add_ready_pool(world, replicas=1)
        world.store.create(NODE_CLAIM, claim("web-1"))
        world.store.create(NODE_CLAIM, claim("web-2"))
        world.store.create(NODE_CLAIM, claim("web-3"))
        async with scene_of(world, Heard()) as scene:
            controller = static(scene)
        # No controller runs any more.
        await controller.reconcile("web")
        await controller.reconcile("web")
        world.stop()
        return len(claims_in(world))

    assert run(story()) == 1


def test_nodes_that_are_being_replaced_are_neither_made_up_for_nor_given_up() -> None:
    async def story() -> list[str]:
        world = new_world()
        add_ready_pool(world, replicas=2)
        world.store.create(NODE_CLAIM, claim("web-1"))
        world.store.create(NODE_CLAIM, claim("web-2"))
        world.store.create(NODE_CLAIM, claim("web-3"))
        async with scene_of(world, Heard()) as scene:
            controller = StaticCapacityController(
                scene.context, scene.cluster, disrupting=lambda: {"web-1"}
            )
            await controller.reconcile("web")
        world.stop()
        return staying(world)

    assert run(story()) == ["web-1", "web-2", "web-3"]


def test_a_pool_that_gets_no_machines_does_not_ask_all_the_time() -> None:
    heard = Heard()

    async def story() -> bool:
        world = new_world()
        world.store.create(NODE_POOL, pool(replicas=2))
        world.cloud.refuse("default", "no subnets")
        async with scene_of(world, heard) as scene, running(*all_loops(scene)):
            await asyncio.sleep(600)
            asked = heard.counted(CREATED)
            world.cloud.refuse("default", "")
            await until(lambda: are_ready(world, 2), seconds=180)
        world.stop()
        return 20 <= asked <= 40

    assert run(story())
    assert heard.failures == []


@pytest.mark.parametrize("moment", [0.0, 0.001, 0.5, 2.0, 10.0])
def test_a_pool_reaches_its_size_though_its_writer_dies_on_the_way(moment: float) -> None:
    async def story() -> tuple[int, int]:
        world = new_world()
        world.store.create(NODE_POOL, pool(replicas=3))
        async with scene_of(world, Heard()) as scene, running(*all_loops(scene)):
            await asyncio.sleep(moment)
        async with scene_of(world, Heard()) as scene, running(*all_loops(scene)):
            await until(lambda: are_ready(world, 3))
            await asyncio.sleep(300)
        world.stop()
        return len(claims_in(world)), len(await world.cloud.machines())

    assert run(story()) == (3, 3)


def test_a_dynamic_pool_and_one_of_another_cloud_make_nothing_by_themselves() -> None:
    theirs = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}

    async def story() -> list[JsonObject]:
        world = new_world()
        other = pool("other", replicas=2)
        other["spec"]["template"]["spec"]["nodeClassRef"] = theirs
        world.store.create(NODE_POOL, other)
        mark_ready(world, "other")
        world.store.create(NODE_POOL, pool())
        async with scene_of(world, Heard()) as scene, running(*all_loops(scene)):
            await asyncio.sleep(300)
        world.stop()
        return claims_in(world)

    assert run(story()) == []
