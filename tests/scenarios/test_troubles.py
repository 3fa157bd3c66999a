"""Operators that die, and clouds that say no."""

import asyncio
from datetime import timedelta

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.model.kinds import DEPLOYMENT, KWOK_NODE_CLASS, NODE, NODE_CLAIM, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from karpy.sim.cloud.market import MarketChange
from karpy.sim.cloud.terms import Terms
from karpy.sim.faults import InjectedFault, unreachable
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.world import WorldSettings
from tests.scenarios.manifests import deployment, node_class, one_of, pool
from tests.scenarios.stage import Stage, staged
from tests.sim.stories import on_virtual_time

FEW_TYPES = [
    one_of(INSTANCE_TYPE, "c-4x-amd64-linux", "c-8x-amd64-linux"),
    one_of(CAPACITY_TYPE, "on-demand", "spot"),
]
SPOT_RETURNS = WorldSettings(
    has_events=False,
    timetable=(
        MarketChange(timedelta(), stock=0),
        MarketChange(timedelta(minutes=10), capacity_type="spot", is_unlimited=True),
    ),
)
NO_SPOT = WorldSettings(
    has_events=False, timetable=(MarketChange(timedelta(), capacity_type="spot", stock=0),)
)
SLOW_ANSWERS = WorldSettings(
    has_events=False,
    timing=KubeletTiming(boot_seconds=5, ready_seconds=1),
    terms=Terms(answer_seconds=60),
)


def furnish(stage: Stage, replicas: int) -> None:
    """Have a NodePool and a Deployment that wants nodes from it."""
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(NODE_POOL, pool(requirements=FEW_TYPES))
    stage.apply(DEPLOYMENT, deployment(replicas=replicas))


@pytest.mark.parametrize("seconds", [0.5, 1.5, 15.0, 35.0])
@on_virtual_time
async def test_a_launch_goes_on_after_a_restart(
    seconds: float, snapshot: SnapshotAssertion
) -> None:
    async with staged(has_cloud=True) as stage:
        furnish(stage, 5)
        await asyncio.sleep(seconds)
        stage.timeline.note("kill the operator, and start another")
        await stage.kill()
        stage.hire()
        await stage.until_running("inflate", 5)
        machines = await stage.world.cloud.machines()

    assert len(machines) == len(stage.claims) == 1
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_drain_goes_on_after_a_restart(snapshot: SnapshotAssertion) -> None:
    async with staged(has_cloud=True) as stage:
        furnish(stage, 2)
        await stage.until_running("inflate", 2)
        old = stage.names(NODE)[0]
        stage.delete(NODE, old)
        await asyncio.sleep(2)
        stage.timeline.note("kill the operator, and start another")
        await stage.kill()
        stage.hire()
        await stage.until(lambda: old not in stage.names(NODE))
        await stage.until_running("inflate", 2)
        machines = await stage.world.cloud.machines()

    assert len(machines) == 1
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_launch_goes_on_when_the_api_server_is_back(snapshot: SnapshotAssertion) -> None:
    async with staged(has_cloud=True) as stage:
        furnish(stage, 5)
        await asyncio.sleep(1.5)
        stage.timeline.note("the API server is unreachable")
        stage.faults.add(InjectedFault(unreachable))
        await asyncio.sleep(60)
        stage.timeline.note("it is back")
        stage.faults.clear()
        await stage.until_running("inflate", 5)
        machines = await stage.world.cloud.machines()

    assert len(machines) == 1
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_what_is_sold_out_is_replaced_by_something_else(
    snapshot: SnapshotAssertion,
) -> None:
    async with staged(NO_SPOT, has_cloud=True) as stage:
        furnish(stage, 5)
        await stage.until_running("inflate", 5)
        kinds = {each["metadata"]["labels"][CAPACITY_TYPE] for each in stage.nodes}

    assert kinds == {"on-demand"}
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_pods_wait_until_something_is_on_sale_again(snapshot: SnapshotAssertion) -> None:
    async with staged(SPOT_RETURNS, has_cloud=True) as stage:
        furnish(stage, 3)
        await stage.until_running("inflate", 3)

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_the_node_of_a_claim_that_is_deleted_during_its_launch_takes_no_pods(
    snapshot: SnapshotAssertion,
) -> None:
    async with staged(SLOW_ANSWERS, has_cloud=True) as stage:
        furnish(stage, 3)
        await asyncio.sleep(30)
        old = stage.names(NODE)[0]
        stage.delete(NODE_CLAIM, stage.names(NODE_CLAIM)[0])
        await stage.until(lambda: old not in stage.names(NODE))
        await stage.until_running("inflate", 3)

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_machine_that_never_joins_is_replaced(snapshot: SnapshotAssertion) -> None:
    async with staged(has_cloud=True) as stage:
        stage.world.cloud.spoil()
        furnish(stage, 3)
        await stage.until_running("inflate", 3)
        await asyncio.sleep(300)
        machines = await stage.world.cloud.machines()

    assert len(machines) == 1
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_machine_that_vanishes_is_replaced(snapshot: SnapshotAssertion) -> None:
    async with staged(has_cloud=True) as stage:
        furnish(stage, 3)
        await stage.until_running("inflate", 3)
        [machine] = await stage.world.cloud.machines()
        stage.timeline.note("a user ends the machine in the console")
        stage.world.cloud.kill(machine.provider_id)
        await stage.until(lambda: not stage.is_running("inflate", 3))
        await stage.until_running("inflate", 3)

    assert len(stage.claims) == 1
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_standby_takes_over_from_a_leader_that_dies(snapshot: SnapshotAssertion) -> None:
    async with staged(has_cloud=True, has_operator=False) as stage:
        stage.hire("karpy-1", is_elected=True)
        await asyncio.sleep(1)
        stage.hire("karpy-2", is_elected=True)
        furnish(stage, 5)
        await asyncio.sleep(2)
        stage.timeline.note("kill karpy-1")
        await stage.kill("karpy-1")
        await stage.until_running("inflate", 5)
        machines = await stage.world.cloud.machines()

    assert len(machines) == 1
    assert stage.timeline.text() == snapshot
