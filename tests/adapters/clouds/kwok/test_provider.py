import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from karpy.adapters.clouds.kwok.naming import node_name
from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.errors import (
    CloudUnavailable,
    KarpyError,
    MachineNotFound,
    NoCapacity,
    NodeClassNotReady,
)
from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.kinds import KWOK_NODE_CLASS, NODE, Kind
from karpy.model.labels import CAPACITY_TYPE, RESERVED, ZONE
from karpy.model.records import ClaimRecord, Identity
from karpy.model.requirements import collect, one_of
from karpy.ports.cloud import CloudProvider
from karpy.sim.faults import InjectedFault, server_fault, throttled, unreachable
from tests.adapters.clouds.kwok.stage import Stage, kwok_stage, spec_of
from tests.sim.stories import condition, on_virtual_time, option, taints

NAME = node_name("c1", "uid-of-c1")
FINALIZER = "karpenter.sh/termination"


def node(stage: Stage, name: str = NAME) -> JsonObject:
    return stage.store.get(NODE, name)


def hold(stage: Stage) -> None:
    """Have a Node with a finalizer, as registration leaves it."""
    found = node(stage)
    meta = {**found["metadata"], "finalizers": [FINALIZER]}
    stage.store.replace(NODE, {**found, "metadata": meta})


@on_virtual_time
async def test_a_node_appears_with_the_launch_and_gets_ready() -> None:
    async with kwok_stage() as stage:
        cloud: CloudProvider = stage.provider

        machine = await cloud.launch(spec_of())
        await asyncio.sleep(60)

        assert machine.provider_id == f"kwok://{NAME}"
        assert node(stage)["spec"]["providerID"] == machine.provider_id
        assert condition(stage.world, "Ready", node=NAME) == "True"
        assert taints(stage.world, NAME) == ["unregistered:NoExecute"]


@on_virtual_time
async def test_a_node_takes_as_long_as_its_class_says() -> None:
    async with kwok_stage(delay="1m30s") as stage:
        await stage.provider.launch(spec_of())
        await asyncio.sleep(89)
        before = stage.nodes()

        await asyncio.sleep(2)

        assert (before, stage.nodes()) == ([], [NAME])


@on_virtual_time
async def test_a_machine_on_its_way_is_as_good_as_one_that_is_there() -> None:
    async with kwok_stage(delay="1m") as stage:
        machine = await stage.provider.launch(spec_of())
        found = await stage.provider.machine(machine.provider_id)
        listed = await stage.provider.machines()
        await asyncio.sleep(61)

        later = await stage.provider.machines()

        assert (found, listed) == (machine, [machine])
        assert [each.provider_id for each in later] == [machine.provider_id]


@on_virtual_time
async def test_a_node_that_appears_while_machines_are_listed_is_among_them() -> None:
    slow = InjectedFault(calls=("list",), delay_seconds=10)
    async with kwok_stage(slow, delay="5s") as stage:
        machine = await stage.provider.launch(spec_of())

        listed = await stage.provider.machines()

        assert [each.provider_id for each in listed] == [machine.provider_id]


@on_virtual_time
async def test_the_same_claim_never_gets_a_second_machine() -> None:
    async with kwok_stage(delay="1m") as stage:
        cloud = stage.provider
        first, second = await asyncio.gather(cloud.launch(spec_of()), cloud.launch(spec_of()))
        await asyncio.sleep(61)

        third = await cloud.launch(spec_of())

        assert second == first
        assert (third.provider_id, third.instance_type) == (first.provider_id, first.instance_type)
        assert stage.nodes() == [NAME]


@on_virtual_time
async def test_another_process_comes_to_the_same_machine() -> None:
    """The first one ended before it could write down what it had launched."""
    async with kwok_stage(delay="1m") as stage:
        first = await stage.provider.launch(spec_of())
        await stage.provider.close()
        stage.provider = stage.another()

        second = await stage.provider.launch(spec_of())
        await asyncio.sleep(61)

        assert second == first
        assert stage.nodes() == [NAME]


@on_virtual_time
async def test_a_repeated_launch_of_an_ending_machine_returns_it_as_ending() -> None:
    async with kwok_stage() as stage:
        await stage.provider.launch(spec_of())
        await asyncio.sleep(1)
        hold(stage)
        stage.store.delete(NODE, NAME)

        again = await stage.provider.launch(spec_of())

        assert again.is_terminating


@pytest.mark.parametrize("fault", [server_fault, unreachable, throttled])
@on_virtual_time
async def test_a_node_is_tried_until_it_is_made(fault: Callable[[], KarpyError]) -> None:
    faults = [InjectedFault(fault, calls=("create",), nth=number) for number in (1, 2, 3)]
    async with kwok_stage(*faults) as stage:
        await stage.provider.launch(spec_of())

        await asyncio.sleep(10)

        assert stage.nodes() == [NAME]
        assert stage.troubles == [(f"create node `{NAME}`", type(fault()).__name__)] * 3


@on_virtual_time
async def test_a_node_whose_answer_was_lost_is_made_once() -> None:
    lost = InjectedFault(unreachable, calls=("create",), nth=1, is_answer_lost=True)
    async with kwok_stage(lost) as stage:
        machine = await stage.provider.launch(spec_of())
        await asyncio.sleep(10)

        found = await stage.provider.machine(machine.provider_id)

        assert stage.nodes() == [NAME]
        assert found.claim == "c1"


@on_virtual_time
async def test_a_node_that_cannot_be_made_is_given_up_with_its_claim() -> None:
    async with kwok_stage(InjectedFault(server_fault, calls=("create",))) as stage:
        machine = await stage.provider.launch(spec_of())

        await asyncio.sleep(16 * 60)

        with pytest.raises(MachineNotFound):
            await stage.provider.machine(machine.provider_id)
        assert len(stage.troubles) < 50


@on_virtual_time
async def test_nothing_appears_once_the_provider_is_closed() -> None:
    async with kwok_stage(delay="1m") as stage:
        await stage.provider.launch(spec_of())

        await stage.provider.close()
        await asyncio.sleep(100)

        assert stage.nodes() == []


@on_virtual_time
async def test_a_machine_that_was_on_its_way_does_not_come_once_it_is_ended() -> None:
    async with kwok_stage(delay="1m") as stage:
        machine = await stage.provider.launch(spec_of())

        with pytest.raises(MachineNotFound):
            await stage.provider.terminate(machine.provider_id)
        await asyncio.sleep(100)

        assert stage.nodes() == []
        assert await stage.provider.machines() == []


@on_virtual_time
async def test_an_unregistered_node_is_deleted_with_its_machine() -> None:
    async with kwok_stage() as stage:
        machine = await stage.provider.launch(spec_of())
        await asyncio.sleep(1)

        with pytest.raises(MachineNotFound):
            await stage.provider.terminate(machine.provider_id)

        assert stage.nodes() == []


@on_virtual_time
async def test_a_node_that_is_drained_stays_until_its_finalizer_goes_but_is_no_machine() -> None:
    async with kwok_stage() as stage:
        machine = await stage.provider.launch(spec_of())
        await asyncio.sleep(1)
        hold(stage)
        stage.store.delete(NODE, NAME)
        version = node(stage)["metadata"]["resourceVersion"]

        with pytest.raises(MachineNotFound):
            await stage.provider.terminate(machine.provider_id)

        assert node(stage)["metadata"]["resourceVersion"] == version
        with pytest.raises(MachineNotFound):
            await stage.provider.machine(machine.provider_id)
        assert await stage.provider.machines() == []


@on_virtual_time
async def test_a_registered_node_without_a_claim_is_sent_to_be_drained() -> None:
    async with kwok_stage() as stage:
        machine = await stage.provider.launch(spec_of())
        await asyncio.sleep(1)
        hold(stage)

        with pytest.raises(MachineNotFound):
            await stage.provider.terminate(machine.provider_id)

        assert "deletionTimestamp" in node(stage)["metadata"]


@pytest.mark.parametrize("provider_id", ["kwok://other", "aws:///a/i-1", ""])
@on_virtual_time
async def test_what_is_not_there_is_not_found(provider_id: str) -> None:
    async with kwok_stage() as stage:
        cloud = stage.provider

        with pytest.raises(MachineNotFound):
            await cloud.machine(provider_id)
        with pytest.raises(MachineNotFound):
            await cloud.terminate(provider_id)
        with pytest.raises(MachineNotFound):
            await cloud.reboot(provider_id, "once")


@on_virtual_time
async def test_a_node_that_is_not_ours_is_left_alone() -> None:
    async with kwok_stage() as stage:
        stage.world.add_node("mine", provider_id="kwok://another")
        stage.world.add_node("yours")
        await asyncio.sleep(1)

        with pytest.raises(MachineNotFound):
            await stage.provider.terminate("kwok://mine")

        assert await stage.provider.machines() == []
        assert stage.nodes() == ["mine", "yours"]


@on_virtual_time
async def test_a_class_that_is_not_ready_cannot_be_launched_with() -> None:
    async with kwok_stage() as stage:
        found = stage.store.get(KWOK_NODE_CLASS, "default")
        ready = {**found["status"]["conditions"][0], "status": "False", "message": "no paper"}
        stage.store.replace(
            KWOK_NODE_CLASS, {**found, "status": {"conditions": [ready]}}, subresource="status"
        )

        with pytest.raises(NodeClassNotReady, match=r"`kwoknodeclass/default`.*no paper"):
            await stage.provider.launch(spec_of())


@on_virtual_time
async def test_a_class_that_is_gone_cannot_be_launched_with() -> None:
    async with kwok_stage() as stage:
        with pytest.raises(NodeClassNotReady, match="there is no KWOKNodeClass of that name"):
            await stage.provider.launch(spec_of(node_class="other"))


@on_virtual_time
async def test_what_is_not_sold_cannot_be_had() -> None:
    async with kwok_stage() as stage:
        with pytest.raises(NoCapacity, match="none of 1 offerings for NodeClaim `c1`"):
            await stage.provider.launch(spec_of(options=(option("z-1x"),)))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ("get", NODE, "get nodes `kwok-c1-"),
        ("get", KWOK_NODE_CLASS, "get kwoknodeclasses.karpenter.kwok.sh `default`"),
    ],
)
@on_virtual_time
async def test_a_launch_that_cannot_ask_says_so(call: str, kind: Kind, message: str) -> None:
    async with kwok_stage(InjectedFault(server_fault, calls=(call,), kind=kind)) as stage:
        with pytest.raises(CloudUnavailable, match=message):
            await stage.provider.launch(spec_of())


@on_virtual_time
async def test_every_call_that_cannot_ask_says_so() -> None:
    async with kwok_stage() as stage:
        machine = await stage.provider.launch(spec_of())
        await asyncio.sleep(1)
        stage.faults.add(InjectedFault(unreachable, calls=("list", "delete", "patch")))

        with pytest.raises(CloudUnavailable, match="list nodes"):
            await stage.provider.machines()
        with pytest.raises(CloudUnavailable, match="delete node"):
            await stage.provider.terminate(machine.provider_id)
        with pytest.raises(CloudUnavailable, match="patch node"):
            await stage.provider.reboot(machine.provider_id, "once")


@on_virtual_time
async def test_a_reboot_is_another_boot_id() -> None:
    async with kwok_stage() as stage:
        cloud: CloudProvider = stage.provider
        machine = await stage.provider.launch(spec_of())
        await asyncio.sleep(60)
        capacity = node(stage)["status"]["capacity"]

        await cloud.reboot(machine.provider_id, "once")
        await cloud.reboot(machine.provider_id, "once")

        status = node(stage)["status"]
        assert (status["nodeInfo"]["bootID"], status["capacity"]) == ("kwok-once", capacity)
        assert condition(stage.world, "Ready", node=NAME) == "True"


@on_virtual_time
async def test_a_machine_that_is_on_its_way_cannot_be_rebooted() -> None:
    async with kwok_stage(delay="1m") as stage:
        machine = await stage.provider.launch(spec_of())

        with pytest.raises(MachineNotFound):
            await stage.provider.reboot(machine.provider_id, "once")


@on_virtual_time
async def test_everything_is_on_sale_for_every_pool_and_nothing_ever_drifts() -> None:
    async with kwok_stage() as stage:
        cloud = stage.provider

        assert cloud.catalog() is kwok_catalog()
        assert not await cloud.drift(ClaimRecord(Identity("c1")))
        assert (cloud.name, cloud.repair_policies) == ("kwok", REPAIR_POLICIES)


@on_virtual_time
async def test_a_pool_with_types_of_its_own_sees_only_those() -> None:
    async with kwok_stage() as stage:
        few = kwok_catalog().types[:2]
        catalog = replace(kwok_catalog(), by_pool={"general": few})
        cloud = KwokProvider(stage.objects, stage.world.clock, catalog)

        assert cloud.catalog().types_for("general") == few
        assert cloud.catalog().types_for("other") == kwok_catalog().types


@on_virtual_time
async def test_a_claim_that_says_nothing_of_reservations_may_have_one() -> None:
    async with kwok_stage() as stage:
        label = "example.com/reservation-id"
        parts = (one_of(ZONE, "a"), one_of(CAPACITY_TYPE, RESERVED), one_of(label, "cr-1"))
        sold = Offering(collect(parts), 1, reservation_capacity=1, reservation_id="cr-1")
        catalog = Catalog(
            (InstanceType("big", {}, (sold,), {"cpu": 4000}),), reservation_label=label
        )
        cloud = KwokProvider(stage.objects, stage.world.clock, catalog)
        options = (option("big", "a", RESERVED),)

        machine = await cloud.launch(
            spec_of(options=options, requirements=collect([one_of(ZONE, "a")]))
        )
        await cloud.close()

        assert machine.labels[label] == "cr-1"
