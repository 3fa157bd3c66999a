"""An operator that dies at any moment leaves nothing that the next one does not finish."""

import asyncio

import pytest

from karpy.model.kinds import NODE, NODE_CLAIM, POD, Kind
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, claim, is_empty, is_ready, node_of, operator, until
from tests.controllers.test_termination import pod


@pytest.mark.parametrize("seconds", [0, 0.5, 1.0, 1.5, 30.5, 31.5, 41.0, 45.0])
def test_a_launch_survives_a_restart(seconds: float) -> None:
    async def story() -> tuple[int, int]:
        world = World()
        world.start()
        world.store.create(NODE_CLAIM, claim())
        async with operator(world, Heard()):
            await asyncio.sleep(seconds)
        async with operator(world, Heard()):
            await until(lambda: is_ready(world))
            machines = await world.cloud.machines()
        world.stop()
        return len(machines), len(world.store.list(NODE))

    assert run(story()) == (1, 1)


@pytest.mark.parametrize("seconds", [0, 0.5, 1.5, 3.0, 6.0, 8.0, 20.0, 37.0, 40.0])
@pytest.mark.parametrize("kind", [NODE, NODE_CLAIM], ids=str)
def test_an_end_survives_a_restart(kind: Kind, seconds: float) -> None:
    async def story() -> tuple[bool, int]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            world.store.create(NODE_CLAIM, claim(terminationGracePeriod="1h"))
            await until(lambda: is_ready(world))
            world.store.create(POD, pod("a", node_of(world)))
            await asyncio.sleep(5)
            names = {NODE: node_of(world), NODE_CLAIM: "web-1"}
            world.store.delete(kind, names[kind])
            await asyncio.sleep(seconds)
        async with operator(world, Heard()):
            await until(lambda: is_empty(world))
            machines = await world.cloud.machines()
        world.stop()
        return is_empty(world), len(machines)

    assert run(story()) == (True, 0)
