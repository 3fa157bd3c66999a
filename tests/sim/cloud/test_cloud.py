import asyncio
from datetime import timedelta

import pytest

from karpy.errors import MachineNotFound, NoCapacity, NodeClassNotReady
from karpy.model.kinds import NODE, NODE_CLAIM
from karpy.model.records import ClaimRecord, Identity
from karpy.ports.cloud import CloudProvider, Machine
from karpy.sim.clock import LoopClock
from karpy.sim.cloud.cloud import SimCloud
from karpy.sim.cloud.interruptions import SpotInterruption
from karpy.sim.cloud.market import Good
from karpy.sim.cloud.terms import Terms
from karpy.sim.world import START, World, WorldSettings
from tests.sim.stories import (
    SMALL,
    bare_world,
    condition,
    launch_spec,
    living,
    on_virtual_time,
    option,
    taints,
)

SPOT = option(capacity_type="spot")
CLAIM = {
    "metadata": {"name": "c1"},
    "spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [],
        "taints": [{"key": "gpu", "effect": "NoSchedule", "value": "yes"}],
        "startupTaints": [{"key": "cilium", "effect": "NoExecute"}],
    },
}


@on_virtual_time
async def test_a_launch_returns_its_machine() -> None:
    with bare_world() as world:
        cloud: CloudProvider = world.cloud

        machine = await cloud.launch(launch_spec())

        assert machine == Machine(
            provider_id=machine.provider_id,
            claim="c1",
            instance_type=SMALL,
            zone="test-zone-a",
            capacity_type="on-demand",
            created=START,
            labels={
                "karpenter.kwok.sh/instance-cpu": "1",
                "karpenter.kwok.sh/instance-family": "c",
                "karpenter.kwok.sh/instance-memory": "2Gi",
                "karpenter.kwok.sh/instance-size": "1",
                "karpenter.sh/capacity-type": "on-demand",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": SMALL,
                "topology.kubernetes.io/zone": "test-zone-a",
            },
            capacity={
                "cpu": 1000,
                "memory": 2 * 2**30,
                "pods": 16,
                "ephemeral-storage": 20 * 2**30,
            },
            allocatable={
                "cpu": 900,
                "memory": 2 * 2**30 - 10 * 2**20,
                "pods": 16,
                "ephemeral-storage": 20 * 2**30,
            },
        )
        assert await cloud.machine(machine.provider_id) == machine
        assert await cloud.machines() == [machine]


@on_virtual_time
async def test_a_machine_joins_with_the_taints_of_its_claim_and_as_unregistered() -> None:
    with bare_world() as world:
        world.store.create(NODE_CLAIM, CLAIM)

        machine = await world.cloud.launch(launch_spec())
        await asyncio.sleep(60)

        name = world.cloud.node_of(machine.provider_id)
        node = world.store.get(NODE, name)
        assert node["spec"]["providerID"] == machine.provider_id
        assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == SMALL
        assert condition(world, "Ready", node=name) == "True"
        assert taints(world, name) == [
            "cilium:NoExecute",
            "gpu:NoSchedule",
            "unregistered:NoExecute",
        ]


@on_virtual_time
async def test_the_same_token_never_starts_a_second_machine() -> None:
    with bare_world() as world:
        first, second = await asyncio.gather(
            world.cloud.launch(launch_spec()), world.cloud.launch(launch_spec())
        )
        await world.cloud.terminate(first.provider_id)
        await asyncio.sleep(100)

        third = await world.cloud.launch(launch_spec())

        assert second == first
        assert (third.provider_id, third.is_terminating) == (first.provider_id, True)
        assert await world.cloud.machines() == []


@on_virtual_time
async def test_another_token_starts_another_machine() -> None:
    with bare_world() as world:
        await world.cloud.launch(launch_spec(uid="1"))
        await world.cloud.launch(launch_spec(uid="2"))

        assert len(await world.cloud.machines()) == 2


@on_virtual_time
async def test_a_machine_exists_though_the_answer_of_its_launch_was_lost() -> None:
    with bare_world() as world:
        launch = asyncio.create_task(world.cloud.launch(launch_spec()))
        await asyncio.sleep(0.5)

        launch.cancel()
        await asyncio.sleep(60)

        assert [each.claim for each in await world.cloud.machines()] == ["c1"]


@on_virtual_time
async def test_a_launch_takes_the_cheapest_option_that_is_left() -> None:
    stock = {Good(SMALL, "test-zone-a", "spot"): 1}
    options = (option("c-2x-amd64-linux"), SPOT)
    with bare_world(WorldSettings(stock=stock)) as world:
        first = await world.cloud.launch(launch_spec("c1", *options))
        second = await world.cloud.launch(launch_spec("c2", *options))

        assert (first.instance_type, first.capacity_type) == (SMALL, "spot")
        assert (second.instance_type, second.capacity_type) == ("c-2x-amd64-linux", "on-demand")


@on_virtual_time
async def test_a_launch_fails_if_every_option_is_sold_out() -> None:
    stock = {Good(SMALL, "test-zone-a", "spot"): 0}
    with bare_world(WorldSettings(stock=stock)) as world:
        with pytest.raises(NoCapacity, match="none of 1 offerings for NodeClaim `c1`"):
            await world.cloud.launch(launch_spec("c1", SPOT))

        assert await world.cloud.machines() == []


@on_virtual_time
async def test_what_is_not_in_the_catalog_cannot_be_had() -> None:
    with bare_world() as world:
        with pytest.raises(NoCapacity):
            await world.cloud.launch(launch_spec("c1", option("mainframe")))

        assert await world.cloud.machines() == []


@on_virtual_time
async def test_a_machine_ends_after_a_while_and_leaves_its_node_behind() -> None:
    with bare_world() as world:
        machine = await world.cloud.launch(launch_spec())
        await asyncio.sleep(60)

        await world.cloud.terminate(machine.provider_id)
        await world.cloud.terminate(machine.provider_id)
        ending = await world.cloud.machine(machine.provider_id)
        await asyncio.sleep(31)

        assert ending.is_terminating
        assert await world.cloud.machines() == []
        assert world.kubelets.living() == []
        assert len(world.store.list(NODE)) == 1


@pytest.mark.parametrize("call", ["terminate", "machine"])
@on_virtual_time
async def test_a_machine_that_is_gone_is_not_found(call: str) -> None:
    with bare_world() as world:
        machine = await world.cloud.launch(launch_spec())
        world.cloud.kill(machine.provider_id)

        with pytest.raises(MachineNotFound):
            await getattr(world.cloud, call)(machine.provider_id)

        with pytest.raises(MachineNotFound):
            await getattr(world.cloud, call)("sim:///nowhere/i-0")


@on_virtual_time
async def test_drift_is_what_it_was_set_to() -> None:
    with bare_world() as world:
        world.cloud.set_drift("c1", "ImageDrift")
        world.cloud.set_drift("c2", "ImageDrift")
        world.cloud.set_drift("c2", None)

        reasons = [await world.cloud.drift(ClaimRecord(Identity(each))) for each in ("c1", "c2")]
        assert reasons == ["ImageDrift", ""]


@on_virtual_time
async def test_nothing_is_launched_with_a_node_class_that_is_not_ready() -> None:
    with bare_world() as world:
        world.cloud.refuse("default", "no subnets")
        with pytest.raises(NodeClassNotReady, match="no subnets"):
            await world.cloud.launch(launch_spec())

        world.cloud.refuse("default", "")

        assert (await world.cloud.launch(launch_spec())).claim == "c1"


@on_virtual_time
async def test_a_spoiled_machine_never_joins() -> None:
    with bare_world() as world:
        world.cloud.spoil(1)

        await world.cloud.launch(launch_spec("c1"))
        good = await world.cloud.launch(launch_spec("c2"))
        await asyncio.sleep(600)

        names = [node["metadata"]["name"] for node in world.store.list(NODE)]
        assert names == [world.cloud.node_of(good.provider_id)]


@on_virtual_time
async def test_an_interruption_is_announced_two_minutes_ahead() -> None:
    with bare_world() as world:
        stream = world.cloud.interruptions()
        machine = await world.cloud.launch(launch_spec("c1", SPOT))
        await asyncio.sleep(59)

        world.cloud.interrupt(machine.provider_id)
        await asyncio.sleep(119)
        still = world.cloud.has(machine.provider_id)
        await asyncio.sleep(2)

        at = START + timedelta(seconds=60)
        ends = at + timedelta(seconds=120)
        assert await anext(stream) == SpotInterruption(machine.provider_id, at, ends)
        assert (still, world.cloud.has(machine.provider_id)) == (True, False)


@on_virtual_time
async def test_spot_machines_are_interrupted_by_seed_and_others_are_not() -> None:
    terms = Terms(interruption_percent=50)
    with bare_world(WorldSettings(terms=terms), seed=3) as world:
        await world.cloud.launch(launch_spec("c1", SPOT))
        await world.cloud.launch(launch_spec("c2"))

        await asyncio.sleep(24 * 3600)

        assert [each.claim for each in await world.cloud.machines()] == ["c2"]


@on_virtual_time
async def test_a_cloud_can_launch_without_booting_machines() -> None:
    clock = LoopClock(START)
    with living(World(parts=())) as world:
        cloud = SimCloud(world.cloud.market, clock)

        machine = await cloud.launch(launch_spec())
        cloud.kill(machine.provider_id)

        assert await cloud.machines() == []
        assert world.store.list(NODE) == []
