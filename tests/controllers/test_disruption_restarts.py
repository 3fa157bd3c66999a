"""After the crash of a leader at any moment, the next one finishes its disruption commands."""

import asyncio

import pytest

from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE, NODE_CLAIM, NODE_POOL, POD
from karpy.model.nodes import RepairPolicy
from karpy.ports.objects import Patch, PatchType
from karpy.sim.crashes import Life
from karpy.sim.faults import WRITES, Faults, InjectedFault, conflict, server_fault, unreachable
from karpy.sim.faultyports import FaultyObjects
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.disruptions import (
    claims_in,
    disrupting,
    make_nodes,
    make_pool,
    tainted,
)
from tests.controllers.operators import Heard, conditions, is_empty, node_of, until
from tests.controllers.test_disruption_repair import (
    BROKEN,
    MANY,
    make_busy_nodes,
    running_pods,
)
from tests.controllers.test_nodetermination import pod


async def live(world: World, faults: Faults, policies: tuple[RepairPolicy, ...] = ()) -> None:
    """Run an operator until cancelled, on ports that sometimes fail."""
    objects = FaultyObjects(world.objects, faults)
    async with disrupting(world, Heard(), objects, policies=policies):
        await asyncio.sleep(24 * 3600)


async def spend(
    world: World, life: Life, seconds: float, policies: tuple[RepairPolicy, ...] = ()
) -> None:
    """Run an operator for a while, or until it crashes."""
    task = asyncio.create_task(life.run(live(world, Faults(), policies)))
    await asyncio.sleep(seconds)
    life.end()
    await asyncio.gather(task, return_exceptions=True)


async def make_two(world: World) -> None:
    """Have two empty nodes that may go soon."""
    make_pool(world, consolidateAfter="0s")
    async with disrupting(world, Heard()):
        await make_nodes(world, "web-1", "web-2")


@pytest.mark.parametrize("is_call_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(1, 17))
def test_empty_nodes_go_though_the_operator_dies(call: int, *, is_call_done: bool) -> None:
    async def story() -> tuple[bool, int]:
        world = World()
        world.start()
        await make_two(world)
        await spend(world, Life(crash_at_call=call, is_call_done=is_call_done), 60)
        async with disrupting(world, Heard()):
            await until(lambda: is_empty(world))
            machines = await world.cloud.machines()
        world.stop()
        return is_empty(world), len(machines)

    assert run(story()) == (True, 0)


@pytest.mark.parametrize("is_call_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(1, 6))
def test_a_node_that_is_needed_again_loses_its_marks(call: int, *, is_call_done: bool) -> None:
    """The operator crashes after it has tainted the node, or before."""

    async def story() -> tuple[list[str], list[str], str]:
        world = World()
        world.start()
        await make_two(world)
        await spend(world, Life(crash_at_call=call, is_call_done=is_call_done), 30)
        keep_everything(world)
        world.store.create(POD, pod("a", node_of(world, claims_in(world)[-1])))
        async with disrupting(world, Heard()):
            await asyncio.sleep(300)
            left = claims_in(world)[-1:]
            reason = conditions(world, left[0]).get("DisruptionReason", "")
        world.stop()
        return left, tainted(world), reason

    assert run(story()) == (["web-2"], [], "")


def keep_everything(world: World) -> None:
    """Forbid all disruption from now on."""
    body = {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}
    world.store.patch(NODE_POOL, "web", Patch(PatchType.MERGE, body))


@pytest.mark.parametrize("seed", range(10))
def test_empty_nodes_go_though_a_third_of_all_writes_fail(seed: int) -> None:
    faults = Faults(
        InjectedFault(conflict, WRITES, percent=10),
        InjectedFault(server_fault, (*WRITES, "list"), percent=15),
        InjectedFault(unreachable, WRITES, percent=15, is_answer_lost=True),
        seed=seed,
    )

    async def story() -> bool:
        world = World()
        world.start()
        await make_two(world)
        life = Life()
        task = asyncio.create_task(life.run(live(world, faults)))
        await until(lambda: is_empty(world))
        life.end()
        await asyncio.gather(task, return_exceptions=True)
        world.stop()
        return is_empty(world)

    assert run(story())


def test_taints_that_belong_to_no_command_are_removed() -> None:
    async def story() -> tuple[list[str], list[str], str]:
        world = World()
        world.start()
        make_pool(world, {"nodes": "0"})
        async with disrupting(world, Heard()):
            await make_nodes(world, "web-1")
            mark(world, "web-1")
            marked = tainted(world)
            await asyncio.sleep(15)
            found = marked, tainted(world), conditions(world).get("DisruptionReason", "")
        world.stop()
        return found

    marked, after, reason = run(story())

    assert len(marked) == 1
    assert (after, reason) == ([], "")


def mark(world: World, name: str) -> None:
    """Write the taint and condition of a leader that crashed after its decision."""
    taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
    body: JsonObject = {"spec": {"taints": taints}}
    world.store.patch(NODE, node_of(world, name), Patch(PatchType.MERGE, body))
    said = world.store.get(NODE_CLAIM, name)["status"]["conditions"]
    reason = {
        "type": "DisruptionReason",
        "status": "True",
        "reason": "Empty",
        "message": "Empty",
        "lastTransitionTime": "2026-01-05T00:00:00Z",
    }
    body = {"status": {"conditions": [*said, reason]}}
    patch = Patch(PatchType.MERGE, body)
    world.store.patch(NODE_CLAIM, name, patch, subresource="status")


@pytest.mark.parametrize("is_call_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(1, 9))
def test_a_broken_node_is_replaced_though_the_operator_dies(
    call: int, *, is_call_done: bool
) -> None:
    async def story() -> tuple[list[str], int, int]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()):
            await make_busy_nodes(world)
        world.kubelets.trouble(node_of(world), BROKEN)
        await asyncio.sleep(60)
        life = Life(crash_at_call=call, is_call_done=is_call_done)
        await spend(world, life, 90, policies=REPAIR_POLICIES)
        async with disrupting(world, Heard(), policies=REPAIR_POLICIES):
            await until(lambda: "web-1" not in claims_in(world))
            await until(lambda: len(world.store.list(NODE)) == len(MANY))
            await until(lambda: running_pods(world) == len(MANY))
            machines = await world.cloud.machines()
        world.stop()
        return tainted(world), len(claims_in(world)), len(machines)

    assert run(story()) == ([], len(MANY), len(MANY))


def test_where_nothing_may_go_the_api_server_is_left_alone() -> None:
    faults = Faults()

    async def story() -> set[str]:
        world = World()
        world.start()
        make_pool(world, {"nodes": "0"}, consolidateAfter="0s")
        life = Life()
        task = asyncio.create_task(life.run(live(world, faults, REPAIR_POLICIES)))
        await make_nodes(world, "web-1", "web-2")
        world.store.create(POD, pod("a", node_of(world)))
        await asyncio.sleep(120)
        before = len(faults.history)
        await asyncio.sleep(3600)
        calls = {each.partition(" ")[0] for each in faults.history[before:]}
        life.end()
        await asyncio.gather(task, return_exceptions=True)
        world.stop()
        return calls

    assert run(story()) == set()
