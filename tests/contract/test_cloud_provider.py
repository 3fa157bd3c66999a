"""What every cloud promises: `karpy.ports.cloud`, line by line."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import uuid4

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import CloudError, MachineNotFound, NoCapacity, NodeClassNotReady
from karpy.model.kinds import NODE
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.model.records import ClaimRecord, Identity
from karpy.model.requirements import collect, one_of
from karpy.model.verdicts import LaunchOption
from karpy.ports.cloud import CloudProvider, LaunchSpec, Machine
from tests.contract.clouds import CLOUDS, KWOK_REAL, Stage, node_of, open_cloud, remember
from tests.contract.worlds import until

SMALL = "c-1x-amd64-linux"
MEDIUM = "c-2x-amd64-linux"
ON_DEMAND = LaunchOption(SMALL, 27147, "test-zone-b", "on-demand")
SPOT = LaunchOption(SMALL, 19003, "test-zone-c", "spot")
DEAR = LaunchOption(MEDIUM, 54294, "test-zone-b", "on-demand")
SOLD_NOWHERE = LaunchOption("z-1x", 1, "test-zone-a", "spot")


@pytest.fixture(params=CLOUDS)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """Every test runs with each cloud."""
    name: str = request.param
    plane = request.getfixturevalue("control_plane") if name == KWOK_REAL else None
    async with open_cloud(name, plane, f"test-{uuid4().hex[:8]}") as opened:
        yield opened


def spec(claim: str = "c1", *options: LaunchOption, **labels: str) -> LaunchSpec:
    return LaunchSpec(
        claim=claim,
        token=f"uid-of-{claim}",
        pool="general",
        node_class="default",
        options=options or (ON_DEMAND,),
        labels={"karpenter.sh/nodepool": "general", **labels},
    )


def place(machine: Machine) -> tuple[str, str, str]:
    return machine.instance_type, machine.zone, machine.capacity_type


async def ids(cloud: CloudProvider) -> list[str]:
    return sorted(each.provider_id for each in await cloud.machines())


async def ended(cloud: CloudProvider, provider_id: str) -> bool:
    """Ask for the end of a machine as controllers do, again and again until it is gone."""
    try:
        await cloud.terminate(provider_id)
    except MachineNotFound:
        return True
    return False


async def ready_node(stage: Stage, provider_id: str) -> JsonObject:
    async def look() -> JsonObject | None:
        node = await node_of(stage, provider_id)
        told = (node or {}).get("status", {}).get("conditions") or []
        is_ready = any((each["type"], each["status"]) == ("Ready", "True") for each in told)
        return node if is_ready else None

    found = await until(look)
    assert found is not None
    return found


async def test_everything_is_listed_for_every_pool(stage: Stage) -> None:
    catalog = stage.cloud.catalog()

    assert len(catalog.types) == 144
    assert {SMALL, MEDIUM} <= {each.name for each in catalog.types}
    assert stage.cloud.catalog() is catalog


async def test_a_launch_tells_what_machine_it_is(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec())

    assert machine.claim == "c1"
    assert place(machine) == (SMALL, "test-zone-b", "on-demand")
    assert machine.labels[INSTANCE_TYPE] == SMALL
    assert machine.labels[ZONE] == "test-zone-b"
    assert machine.labels[CAPACITY_TYPE] == "on-demand"
    assert machine.capacity["cpu"] == 1000
    assert machine.allocatable["cpu"] == 900
    assert not machine.is_ending


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((DEAR, ON_DEMAND, SPOT), (SMALL, "test-zone-c", "spot")),
        ((DEAR, ON_DEMAND), (SMALL, "test-zone-b", "on-demand")),
        ((SOLD_NOWHERE, DEAR), (MEDIUM, "test-zone-b", "on-demand")),
    ],
)
async def test_a_launch_takes_the_cheapest_option_that_can_be_had(
    stage: Stage, options: tuple[LaunchOption, ...], expected: tuple[str, str, str]
) -> None:
    machine = await stage.cloud.launch(spec("c1", *options))

    assert place(machine) == expected


async def test_a_machine_is_what_its_claim_requires(stage: Stage) -> None:
    asked = collect([one_of(CAPACITY_TYPE, "on-demand"), one_of(ZONE, "test-zone-b")])
    wanted = LaunchSpec("c1", "uid-1", "general", "default", (ON_DEMAND,), requirements=asked)

    machine = await stage.cloud.launch(wanted)

    assert place(machine) == (SMALL, "test-zone-b", "on-demand")


async def test_a_launched_machine_is_found_at_once(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec())

    found = await stage.cloud.machine(machine.provider_id)

    assert (found.provider_id, found.claim) == (machine.provider_id, "c1")
    assert place(found) == place(machine)
    assert (found.capacity, found.allocatable) == (machine.capacity, machine.allocatable)
    assert await ids(stage.cloud) == [machine.provider_id]


async def test_the_same_token_never_starts_a_second_machine(stage: Stage) -> None:
    first, second = await asyncio.gather(stage.cloud.launch(spec()), stage.cloud.launch(spec()))
    await ready_node(stage, first.provider_id)

    third = await stage.cloud.launch(spec())

    assert {second.provider_id, third.provider_id} == {first.provider_id}
    assert await ids(stage.cloud) == [first.provider_id]


async def test_another_operator_comes_to_the_same_machine(stage: Stage) -> None:
    """The first one may have died before it wrote down what it launched."""
    first = await stage.cloud.launch(spec())

    await stage.restart()
    second = await stage.cloud.launch(spec())

    assert (second.provider_id, place(second)) == (first.provider_id, place(first))
    assert await ids(stage.cloud) == [first.provider_id]


async def test_a_machine_joins_though_the_operator_that_launched_it_is_gone(stage: Stage) -> None:
    await stage.slow_down()
    machine = await stage.cloud.launch(spec())
    await remember(stage, machine)

    await stage.restart()
    node = await ready_node(stage, machine.provider_id)

    assert machine.labels.items() <= node["metadata"]["labels"].items()
    assert await ids(stage.cloud) == [machine.provider_id]


async def test_every_token_gets_a_machine_of_its_own(stage: Stage) -> None:
    launches = [stage.cloud.launch(spec(f"c{number}")) for number in range(5)]

    machines = await asyncio.gather(*launches)

    assert len({each.provider_id for each in machines}) == 5
    assert await ids(stage.cloud) == sorted(each.provider_id for each in machines)


async def test_a_machine_joins_as_a_node_that_is_closed_to_pods(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec("c1", **{"example.com/team": "shop"}))

    node = await ready_node(stage, machine.provider_id)

    labels = node["metadata"]["labels"]
    keys = {(each["key"], each["effect"]) for each in node["spec"]["taints"]}
    assert machine.labels.items() <= labels.items()
    assert labels["example.com/team"] == "shop"
    assert node["status"]["allocatable"]["cpu"] == "900m"
    assert ("karpenter.sh/unregistered", "NoExecute") in keys


async def test_a_machine_can_be_ended_and_is_gone_then(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec())
    other = await stage.cloud.launch(spec("c2"))
    await ready_node(stage, machine.provider_id)

    await until(lambda: ended(stage.cloud, machine.provider_id))

    with pytest.raises(MachineNotFound):
        await stage.cloud.machine(machine.provider_id)
    with pytest.raises(MachineNotFound):
        await stage.cloud.terminate(machine.provider_id)
    assert await ids(stage.cloud) == [other.provider_id]


async def test_a_machine_can_be_ended_before_its_node_is_there(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec())

    await until(lambda: ended(stage.cloud, machine.provider_id))

    with pytest.raises(MachineNotFound):
        await stage.cloud.machine(machine.provider_id)
    assert await ids(stage.cloud) == []


@pytest.mark.parametrize("provider_id", ["", "kwok://nobody", "sim:///test-zone-a/i-0"])
async def test_what_is_not_there_is_not_found(stage: Stage, provider_id: str) -> None:
    with pytest.raises(MachineNotFound):
        await stage.cloud.machine(provider_id)
    with pytest.raises(MachineNotFound):
        await stage.cloud.terminate(provider_id)


async def test_a_launch_without_anything_to_be_had_is_refused(stage: Stage) -> None:
    with pytest.raises(NoCapacity, match="`c1`"):
        await stage.cloud.launch(spec("c1", SOLD_NOWHERE))

    assert await ids(stage.cloud) == []


async def test_a_node_class_that_is_not_ready_is_not_launched_with(stage: Stage) -> None:
    await stage.spoil_class("no paper left")

    with pytest.raises(NodeClassNotReady, match="no paper left"):
        await stage.cloud.launch(spec())

    assert await ids(stage.cloud) == []


async def test_a_machine_that_has_just_come_does_not_differ_from_its_class(stage: Stage) -> None:
    await stage.cloud.launch(spec())

    assert not await stage.cloud.drift(ClaimRecord(Identity("c1")))


async def test_nodes_of_others_are_no_machines(stage: Stage) -> None:
    stranger: JsonObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "stranger", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"providerID": "kwok://another"},
    }
    await stage.objects.create(NODE, stranger)

    with suppress(CloudError):
        await stage.cloud.terminate("kwok://stranger")

    assert await ids(stage.cloud) == []
    assert (await stage.objects.get(NODE, "stranger"))["spec"]["providerID"] == "kwok://another"
