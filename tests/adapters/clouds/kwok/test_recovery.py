import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.model.kinds import NODE, NODE_CLAIM
from karpy.ports.cloud import Machine
from karpy.sim.crashes import Life
from karpy.sim.faults import InjectedFault, unreachable
from tests.adapters.clouds.kwok.stage import Stage, kwok_stage, spec_of
from tests.adapters.clouds.kwok.test_provider import NAME
from tests.sim.stories import on_virtual_time


@asynccontextmanager
async def second_life(stage: Stage) -> AsyncIterator[KwokProvider]:
    """Have the provider of a process that has just started."""
    provider = stage.another()
    provider.start()
    try:
        yield provider
    finally:
        await provider.close()


async def launched(stage: Stage, name: str = "c1") -> Machine:
    """Have a claim that says that it is launched, by a process that ended right after."""
    machine = await stage.provider.launch(spec_of(name))
    await stage.provider.close()
    stage.claim(name, machine, labels=dict(machine.labels), annotations=dict(machine.annotations))
    return machine


@on_virtual_time
async def test_a_node_that_a_dead_process_owed_is_made_by_the_next_one() -> None:
    async with kwok_stage() as stage:
        machine = await launched(stage)
        before = stage.nodes()

        async with second_life(stage) as provider:
            await asyncio.sleep(60)

            found = await provider.machine(machine.provider_id)

        assert (before, stage.nodes()) == ([], [NAME])
        assert {**found.labels, **machine.labels} == found.labels
        assert found.annotations == machine.annotations
        assert (found.capacity, found.allocatable) == (machine.capacity, machine.allocatable)


@pytest.mark.parametrize(("passed", "expected"), [(0, []), (40, [NAME]), (300, [NAME])])
@on_virtual_time
async def test_a_recovered_node_still_takes_its_time(passed: int, expected: list[str]) -> None:
    async with kwok_stage(delay="1m") as stage:
        await launched(stage)
        await asyncio.sleep(passed)

        async with second_life(stage):
            await asyncio.sleep(30)

        assert stage.nodes() == expected


@on_virtual_time
async def test_recovered_machines_are_returned_once() -> None:
    async with kwok_stage(delay="1m") as stage:
        machine = await launched(stage)

        first = await stage.provider.recover([stage.record()])
        second = await stage.provider.recover([stage.record()])

        assert [each.provider_id for each in first] == [machine.provider_id]
        assert second == ()


@on_virtual_time
async def test_a_claim_whose_node_is_there_gets_no_other() -> None:
    async with kwok_stage() as stage:
        await launched(stage)
        async with second_life(stage):
            await asyncio.sleep(1)

        async with second_life(stage) as provider:
            await asyncio.sleep(1)
            owed = await provider.recover([stage.record()])

        assert (owed, stage.nodes()) == ((), [NAME])


@on_virtual_time
async def test_a_claim_on_its_way_out_gets_no_node() -> None:
    async with kwok_stage() as stage:
        machine = await stage.provider.launch(spec_of())
        await stage.provider.close()
        stage.claim("c1", machine, finalizers=["karpenter.sh/termination"])
        stage.store.delete(NODE_CLAIM, "c1")

        async with second_life(stage):
            await asyncio.sleep(60)

        assert stage.nodes() == []


@on_virtual_time
async def test_a_claim_that_is_not_launched_is_left_to_be_launched() -> None:
    async with kwok_stage() as stage:
        stage.claim()

        async with second_life(stage):
            await asyncio.sleep(60)

        assert stage.nodes() == []


@on_virtual_time
async def test_recovery_outlives_an_api_server_that_does_not_answer() -> None:
    async with kwok_stage() as stage:
        await launched(stage)
        stage.faults.add(InjectedFault(unreachable, calls=("list",), nth=1))
        stage.faults.add(InjectedFault(unreachable, calls=("list",), kind=NODE, nth=1))

        async with second_life(stage):
            await asyncio.sleep(60)

        assert stage.nodes() == [NAME]
        assert [error for _, error in stage.troubles] == ["CloudUnavailable"] * 2


@on_virtual_time
async def test_a_provider_may_be_started_again() -> None:
    """A replica that lost the lease may get it again."""
    async with kwok_stage() as stage:
        stage.provider.start()
        await launched(stage)

        stage.provider.start()
        await asyncio.sleep(1)

        assert stage.nodes() == [NAME]


async def _operate(stage: Stage) -> None:
    """Do what an operator does with a claim: launch it unless it says that it is, and say so."""
    provider = stage.another()
    provider.start()
    if not stage.record().provider_id:
        machine = await provider.launch(spec_of())
        found = await stage.objects.get(NODE_CLAIM, "c1")
        status = {"providerID": machine.provider_id}
        await stage.objects.replace(NODE_CLAIM, {**found, "status": status}, subresource="status")
    await asyncio.sleep(60)
    await provider.close()


@pytest.mark.parametrize(
    "life",
    [
        Life(crash_at_call=call, is_call_done=is_done)
        for call in range(1, 9)
        for is_done in (False, True)
    ]
    + [Life(crash_at_await=step) for step in range(1, 16)],
)
@on_virtual_time
async def test_a_crash_anywhere_costs_no_machine_and_makes_no_second_one(life: Life) -> None:
    async with kwok_stage(delay="5s") as stage:
        stage.claim()
        await life.run(_operate(stage))

        await Life().run(_operate(stage))

        assert stage.nodes() == [NAME]
        assert stage.record().provider_id == f"kwok://{NAME}"
