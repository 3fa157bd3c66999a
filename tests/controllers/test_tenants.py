"""What is written on pods is asked for where it matters, and no more often than it must be."""

import asyncio
from collections.abc import Sequence

import pytest

from karpy.controllers.tenants import Tenants
from karpy.model.kinds import DISRUPTION_BUDGET, POD
from karpy.sim.faults import Faults
from karpy.sim.faultyports import FaultyObjects
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, context_of
from tests.controllers.test_nodetermination import budget, pod

CHEAP = {"karpenter.sh/disruption-cost": "-134217728"}


def make_pods(world: World, count: int, *nodes: str) -> None:
    """Have so many pods on each node."""
    for node in nodes:
        for number in range(count):
            world.store.create(POD, pod(f"{node}-{number}", node))


async def counted(
    world: World, faults: Faults, *looks: Sequence[str], fresh: Sequence[str] = ()
) -> list[dict[str, list[str]]]:
    """Count the pods of nodes again and again, a minute apart; return their names by node."""
    found = []
    objects = FaultyObjects(world.objects, faults)
    async with context_of(world, Heard(), objects=objects) as context:
        tenants = Tenants(context)
        for nodes in looks:
            census = await tenants.count(nodes, fresh)
            found.append(
                {node: [each.pod.name for each in some] for node, some in census.tenants.items()}
            )
            await asyncio.sleep(60)
    return found


def test_only_nodes_with_pods_are_asked_about() -> None:
    faults = Faults()

    async def story() -> list[dict[str, list[str]]]:
        world = World()
        make_pods(world, 2, "a")
        return await counted(world, faults, ["a", "b"])

    assert run(story()) == [{"a": ["a-0", "a-1"], "b": []}]
    assert faults.history == ["list pods", "list poddisruptionbudgets.policy"]


def test_a_node_that_is_far_from_empty_is_not_asked_about_again() -> None:
    faults = Faults()

    async def story() -> list[dict[str, list[str]]]:
        world = World()
        make_pods(world, 2, "a")
        return await counted(world, faults, ["a"], ["a"], ["a"])

    assert run(story()) == [{"a": ["a-0", "a-1"]}, {"a": ["a-0"]}, {"a": ["a-0"]}]
    assert faults.history.count("list pods") == 1


@pytest.mark.parametrize(("fresh", "lists"), [([], 1), (["a"], 3)], ids=["any", "fresh"])
def test_a_node_is_asked_about_as_often_as_somebody_must_be_sure(
    fresh: list[str], lists: int
) -> None:
    faults = Faults()

    async def story() -> list[dict[str, list[str]]]:
        world = World()
        world.store.create(POD, pod("cheap", "a", annotations=CHEAP))
        return await counted(world, faults, ["a"], ["a"], ["a"], fresh=fresh)

    assert run(story())[-1] == {"a": ["cheap"]}
    assert faults.history.count("list pods") == lists


def test_for_many_nodes_all_pods_are_listed() -> None:
    faults = Faults()
    nodes = [f"n{number}" for number in range(11)]

    async def story() -> list[dict[str, list[str]]]:
        world = World()
        make_pods(world, 500, "other")
        make_pods(world, 1, *nodes)
        return await counted(world, faults, nodes, fresh=nodes)

    assert run(story()) == [{node: [f"{node}-0"] for node in nodes}]
    assert faults.history.count("list pods") == 2


def test_budgets_come_with_the_pods_they_protect() -> None:
    async def story() -> list[str]:
        world = World()
        make_pods(world, 1, "a")
        world.store.create(DISRUPTION_BUDGET, budget("all", 1))
        async with context_of(world, Heard()) as context:
            census = await Tenants(context).count(["a"])
        return [each.key for each in census.budgets]

    assert run(story()) == ["default/all"]
