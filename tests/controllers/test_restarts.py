"""Whatever an operator leaves unfinished when it crashes, the next one finishes."""

import asyncio

import pytest

from karpy.model.kinds import NODE, NODE_CLAIM, POD, Kind
from karpy.sim.crashes import Life
from karpy.sim.faults import (
    WRITES,
    Faults,
    InjectedFault,
    cloud_unavailable,
    conflict,
    server_fault,
    unreachable,
)
from karpy.sim.faultyports import FaultyCloud, FaultyObjects
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, claim, is_empty, is_ready, node_of, operator, until
from tests.controllers.test_nodetermination import pod

_CLOUD = ("catalog", "launch", "terminate", "machine")
_HELD = "patch nodeclaims.karpenter.sh"
_LAUNCHED = ("patch nodeclaims.karpenter.sh",) * 2
_REGISTERED = ("patch nodes",)
"""What the claim says of that can wait for a moment."""
_INITIALIZED = ("patch nodes", "patch nodeclaims.karpenter.sh")


async def live(world: World, faults: Faults) -> None:
    """Run an operator until cancelled, on ports that sometimes fail."""
    cloud, objects = FaultyCloud(world.cloud, faults), FaultyObjects(world.objects, faults)
    async with operator(world, Heard(), cloud, objects=objects):
        await asyncio.sleep(24 * 3600)


async def spend(world: World, life: Life, seconds: float) -> None:
    """Run an operator for a while, or until it crashes."""
    task = asyncio.create_task(life.run(live(world, Faults())))
    await asyncio.sleep(seconds)
    life.end()
    await asyncio.gather(task, return_exceptions=True)


async def make_node_with_pod(world: World) -> None:
    """Create a ready node with a pod."""
    async with operator(world, Heard()):
        world.store.create(NODE_CLAIM, claim(terminationGracePeriod="1h"))
        await until(lambda: is_ready(world))
        world.store.create(POD, pod("a", node_of(world)))
        await asyncio.sleep(5)


@pytest.mark.parametrize("is_call_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(1, 13))
def test_a_launch_survives_a_crash_at_any_call(call: int, *, is_call_done: bool) -> None:
    async def story() -> tuple[int, int]:
        world = World()
        world.start()
        world.store.create(NODE_CLAIM, claim())
        await spend(world, Life(crash_at_call=call, is_call_done=is_call_done), 60)
        async with operator(world, Heard()):
            await until(lambda: is_ready(world))
            machines = await world.cloud.machines()
        world.stop()
        return len(machines), len(world.store.list(NODE))

    assert run(story()) == (1, 1)


@pytest.mark.parametrize("is_call_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(1, 26))
@pytest.mark.parametrize("kind", [NODE, NODE_CLAIM], ids=str)
def test_an_end_survives_a_crash_at_any_call(kind: Kind, call: int, *, is_call_done: bool) -> None:
    async def story() -> tuple[bool, int]:
        world = World()
        world.start()
        await make_node_with_pod(world)
        names = {NODE: node_of(world), NODE_CLAIM: "web-1"}
        world.store.delete(kind, names[kind])
        await spend(world, Life(crash_at_call=call, is_call_done=is_call_done), 60)
        async with operator(world, Heard()):
            await until(lambda: is_empty(world))
            machines = await world.cloud.machines()
        world.stop()
        return is_empty(world), len(machines)

    assert run(story()) == (True, 0)


@pytest.mark.parametrize("seconds", [0.5, 1.5, 30.5, 41.0])
def test_a_launch_survives_a_restart_at_any_time(seconds: float) -> None:
    async def story() -> int:
        world = World()
        world.start()
        world.store.create(NODE_CLAIM, claim())
        await spend(world, Life(), seconds)
        async with operator(world, Heard()):
            await until(lambda: is_ready(world))
            machines = await world.cloud.machines()
        world.stop()
        return len(machines)

    assert run(story()) == 1


@pytest.mark.parametrize("seed", range(20))
def test_everything_ends_well_though_a_third_of_all_calls_fail(seed: int) -> None:
    faults = Faults(
        InjectedFault(conflict, WRITES, percent=10),
        InjectedFault(server_fault, WRITES, percent=10),
        InjectedFault(unreachable, WRITES, percent=15, is_answer_lost=True),
        InjectedFault(cloud_unavailable, _CLOUD, percent=15),
        InjectedFault(cloud_unavailable, _CLOUD, percent=20, is_answer_lost=True),
        seed=seed,
    )

    async def story() -> tuple[int, int]:
        world = World()
        world.start()
        life = Life()
        task = asyncio.create_task(life.run(live(world, faults)))
        world.store.create(NODE_CLAIM, claim())
        await until(lambda: is_ready(world))
        most = len(await world.cloud.machines())
        world.store.create(POD, pod("a", node_of(world)))
        world.store.delete(NODE_CLAIM, "web-1")
        await until(lambda: is_empty(world))
        left = len(await world.cloud.machines())
        life.end()
        await asyncio.gather(task, return_exceptions=True)
        world.stop()
        return most, left

    assert run(story()) == (1, 0)


def test_a_settled_cluster_causes_no_calls() -> None:
    faults = Faults()

    async def story() -> tuple[int, int]:
        world = World()
        world.start()
        life = Life()
        task = asyncio.create_task(life.run(live(world, faults)))
        world.store.create(NODE_CLAIM, claim())
        await until(lambda: is_ready(world))
        await asyncio.sleep(60)
        before = len(faults.history)
        await asyncio.sleep(3000)
        after = len(faults.history)
        life.end()
        await asyncio.gather(task, return_exceptions=True)
        world.stop()
        return before, after

    before, after = run(story())

    assert before == after
    assert faults.history == [
        _HELD,
        "launch",
        *_LAUNCHED,
        *_REGISTERED,
        *_INITIALIZED,
    ]
