"""Names of nodes that did pods no good, on virtual time."""

import asyncio

from karpy.codec.fields import JsonObject
from karpy.controllers.nominations import NominationWithdrawal
from karpy.model.kinds import NODE, NODE_CLAIM, POD
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, claim, is_ready, node_of, operator, until
from tests.controllers.test_provisioning import pod

FOREIGN = "on-premises-1"


def name_node(world: World, node: str) -> None:
    patch = Patch(PatchType.MERGE, {"status": {"nominatedNodeName": node}})
    world.store.patch(POD, "a", patch, namespace="default", subresource="status")


def named(world: World) -> str:
    status: JsonObject = world.store.get(POD, "a", "default").get("status") or {}
    name: str = status.get("nominatedNodeName", "")
    return name


async def watched(world: World, name: str = "") -> list[str]:
    """Name a node on a pod that nobody schedules; return the name after 15, 35 and 105 seconds."""
    async with operator(world, Heard()) as context:
        if not world.store.list(NODE_CLAIM):
            world.store.create(NODE_CLAIM, claim())
        await until(lambda: is_ready(world))
        spec = {**pod("a", "1")["spec"], "schedulerName": "nobody"}
        world.store.create(POD, {**pod("a", "1"), "spec": spec})
        name_node(world, name or node_of(world))
        task = asyncio.create_task(NominationWithdrawal(context).run())
        seen = []
        for pause in (15, 20, 70):
            await asyncio.sleep(pause)
            seen.append(named(world))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return seen


def test_a_pod_that_waits_in_vain_may_go_elsewhere() -> None:
    async def story() -> tuple[list[str], str]:
        world = World()
        world.start()
        seen = await watched(world)
        world.stop()
        return seen, node_of(world)

    seen, node = run(story())

    assert seen[0] == node
    assert seen[-1] == ""


def test_nobody_waits_for_a_node_that_is_gone() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        seen = await watched(world, "gone-1")
        world.stop()
        return seen

    assert run(story()) == ["gone-1", "", ""]


def test_what_others_promise_on_their_nodes_is_theirs() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        world.store.create(NODE, {"metadata": {"name": FOREIGN}})
        seen = await watched(world, FOREIGN)
        world.stop()
        return seen

    assert run(story()) == [FOREIGN] * 3


def test_a_pod_for_which_another_one_ends_keeps_waiting() -> None:
    async def story() -> tuple[list[str], str]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
        victim = pod("victim", "1")
        meta = {**victim["metadata"], "finalizers": ["example.com/hold"]}
        spec = {**victim["spec"], "nodeName": node_of(world)}
        world.store.create(POD, {"metadata": meta, "spec": spec})
        world.store.delete(POD, "victim", namespace="default")
        seen = await watched(world)
        world.stop()
        return seen, node_of(world)

    seen, node = run(story())

    assert seen == [node] * 3
