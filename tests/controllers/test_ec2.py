"""NodeClaims that are kept in step with what EC2 makes of their machines."""

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from karpy.codec.fields import JsonObject
from karpy.controllers.ec2 import (
    CapacityController,
    PartitionController,
    ReservationExpirationController,
    ReservationTypeController,
)
from karpy.errors import MachineNotFound
from karpy.model.ec2 import Instance
from karpy.model.ec2nodeclass import FoundReservation
from karpy.model.kinds import NODE, NODE_CLAIM
from karpy.model.labels import CAPACITY_TYPE
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.builders.ec2classes import STATUS, node_class
from tests.controllers.operators import Heard, context_of

REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"
PARTITION = "karpenter.k8s.aws/placement-group-partition"
RESERVED = {CAPACITY_TYPE: "reserved", RESERVATION: "cr-1"}
MACHINE = Instance("i-1", "m5.large", "eu-west-1a")


def put(world: World, labels: Mapping[str, str]) -> None:
    """Have a NodeClaim with a Node."""
    claim: JsonObject = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "web-1", "labels": dict(labels)},
        "spec": {"nodeClassRef": REF, "requirements": []},
    }
    world.store.create(NODE_CLAIM, claim)
    body: JsonObject = {
        "status": {"providerID": "aws:///eu-west-1a/i-1", "nodeName": "n", "imageID": "ami-amd"}
    }
    world.store.patch(NODE_CLAIM, "web-1", Patch(PatchType.MERGE, body), subresource="status")
    registered = {"karpenter.sh/registered": "true"}
    node: JsonObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {**labels, **registered}},
        "spec": {"providerID": "aws:///eu-west-1a/i-1"},
        "status": {"capacity": {"memory": "7000Mi"}},
    }
    world.store.create(NODE, node)


def labels_of(world: World) -> tuple[dict[str, str], dict[str, str]]:
    claim = world.store.get(NODE_CLAIM, "web-1")["metadata"].get("labels", {})
    node = world.store.get(NODE, "n")["metadata"].get("labels", {})
    its = {key: value for key, value in node.items() if key != "karpenter.sh/registered"}
    return claim, its


def test_a_machine_whose_reservation_has_ended_is_on_demand() -> None:
    async def story() -> tuple[dict[str, str], dict[str, str]]:
        world, heard = World(), Heard()
        put(world, {**RESERVED, "team": "a"})

        async def find(id_: str) -> Instance:
            assert id_ == "i-1"
            return MACHINE

        async with context_of(world, heard) as context:
            await ReservationTypeController(context, find).look()
        assert heard.failures == []
        return labels_of(world)

    wanted = {CAPACITY_TYPE: "on-demand", "team": "a"}
    assert run(story()) == (wanted, wanted)


def test_a_machine_that_is_still_reserved_or_gone_stays_as_it_is() -> None:
    async def story(found: Instance | Exception) -> tuple[dict[str, str], dict[str, str]]:
        world, heard = World(), Heard()
        put(world, RESERVED)

        async def find(id_: str) -> Instance:
            del id_
            if isinstance(found, Exception):
                raise found
            return found

        async with context_of(world, heard) as context:
            await ReservationTypeController(context, find).look()
        return labels_of(world)

    for each in (replace(MACHINE, capacity_type="reserved"), MachineNotFound(provider_id="i-1")):
        assert run(story(each)) == (RESERVED, RESERVED)


def test_a_machine_of_a_block_that_ends_soon_loses_its_claim() -> None:
    async def story(state: str) -> bool:
        world, heard = World(), Heard()
        put(world, RESERVED)
        block = FoundReservation("cr-1", "p5.48xlarge", "eu-west-1a", state=state)
        classes = [node_class(status=replace(STATUS, reservations=(block,)))]
        async with context_of(world, heard) as context:
            await ReservationExpirationController(context, lambda: classes).look()
        return bool((await world.objects.list(NODE_CLAIM)).items)

    assert run(story("active"))
    assert not run(story("expiring"))


def test_the_partition_that_ec2_has_chosen_is_written_once_it_is_known() -> None:
    async def story() -> list[str]:
        world, heard, partitions = World(), Heard(), iter(["", "3"])
        put(world, {PARTITION: ""})

        async def find(id_: str) -> Instance:
            del id_
            return replace(MACHINE, partition=next(partitions))

        told = []
        async with context_of(world, heard) as context:
            for _ in range(3):
                await PartitionController(context, find).look()
                await asyncio.sleep(1)
                told += [each[PARTITION] for each in labels_of(world)]
        return told

    assert run(story()) == ["", "", "3", "3", "3", "3"]


def test_nodes_tell_how_much_memory_machines_have() -> None:
    heard: list[tuple[str, tuple[str, ...], Mapping[str, int]]] = []

    async def story() -> None:
        world = World()
        put(world, {"node.kubernetes.io/instance-type": "m5.large"})
        async with context_of(world, Heard()) as context:
            controller = CapacityController(
                context, lambda: [node_class()], lambda *each: heard.append(each)
            )
            await controller.look()

    run(story())

    assert heard == [("default", ("ami-amd", "ami-arm"), {"m5.large": 7000 * 2**20})]
