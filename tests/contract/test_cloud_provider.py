"""The contract of the port `karpy.ports.cloud`, for every cloud."""

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

SOLD_NOWHERE = LaunchOption("z-1x", 1, "test-zone-a", "spot")


@pytest.fixture(params=CLOUDS)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """Each cloud in turn."""
    name: str = request.param
    plane = request.getfixturevalue("control_plane") if name == KWOK_REAL else None
    async with open_cloud(name, plane, f"test-{uuid4().hex[:8]}") as opened:
        yield opened


def spec(stage: Stage, claim: str = "c1", *options: LaunchOption, **labels: str) -> LaunchSpec:
    return LaunchSpec(
        claim=claim,
        token=f"uid-of-{claim}",
        pool="general",
        node_class="default",
        options=options or (stage.goods.on_demand,),
        labels={"karpenter.sh/nodepool": "general", **labels},
    )


def place(machine: Machine) -> tuple[str, str, str]:
    return machine.instance_type, machine.zone, machine.capacity_type


def place_of(option: LaunchOption) -> tuple[str, str, str]:
    return option.instance_type, option.zone, option.capacity_type


async def ids(cloud: CloudProvider) -> list[str]:
    return sorted(each.provider_id for each in await cloud.machines())


async def ended(cloud: CloudProvider, provider_id: str) -> bool:
    """Terminate a machine as controllers do: repeat the call until the machine is gone."""
    try:
        await cloud.terminate(provider_id)
    except MachineNotFound:
        return True
    return False


async def ready_node(stage: Stage, provider_id: str) -> JsonObject:
    async def look() -> JsonObject | None:
        node = await node_of(stage, provider_id)
        conditions = (node or {}).get("status", {}).get("conditions") or []
        is_ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
        return node if is_ready else None

    found = await until(look)
    assert found is not None
    return found


async def test_everything_is_listed_for_every_pool(stage: Stage) -> None:
    catalog = stage.cloud.catalog()

    types = catalog.types_for("general")
    assert len(types) == stage.goods.types
    goods = {stage.goods.on_demand.instance_type, stage.goods.dear.instance_type}
    assert goods <= {each.name for each in types}
    assert stage.cloud.catalog() is catalog


async def test_a_launch_returns_the_machine(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec(stage))

    assert machine.claim == "c1"
    wanted = stage.goods.on_demand
    assert place(machine) == place_of(wanted)
    assert machine.labels[INSTANCE_TYPE] == wanted.instance_type
    assert machine.labels[ZONE] == wanted.zone
    assert machine.labels[CAPACITY_TYPE] == "on-demand"
    assert machine.capacity["cpu"] == stage.goods.cpu
    assert machine.allocatable["cpu"] == stage.goods.allocatable
    assert not machine.is_terminating


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("dear", "on_demand", "spot"), "spot"),
        (("dear", "on_demand"), "on_demand"),
        (("sold nowhere", "dear"), "dear"),
    ],
)
async def test_a_launch_takes_the_cheapest_option_that_can_be_had(
    stage: Stage, options: tuple[str, ...], expected: str
) -> None:
    goods = {
        "on_demand": stage.goods.on_demand,
        "spot": stage.goods.spot,
        "dear": stage.goods.dear,
        "sold nowhere": SOLD_NOWHERE,
    }
    machine = await stage.cloud.launch(spec(stage, "c1", *(goods[each] for each in options)))

    assert place(machine) == place_of(goods[expected])


async def test_a_machine_is_what_its_claim_requires(stage: Stage) -> None:
    option = stage.goods.on_demand
    asked = collect([one_of(CAPACITY_TYPE, "on-demand"), one_of(ZONE, option.zone)])
    wanted = LaunchSpec("c1", "uid-1", "general", "default", (option,), requirements=asked)

    machine = await stage.cloud.launch(wanted)

    assert place(machine) == place_of(option)


async def test_a_launched_machine_is_found_at_once(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec(stage))

    found = await stage.cloud.machine(machine.provider_id)

    assert found.provider_id == machine.provider_id
    assert found.claim in {"c1", ""}
    assert place(found) == place(machine)
    if found.capacity:
        assert (found.capacity, found.allocatable) == (machine.capacity, machine.allocatable)
    assert await ids(stage.cloud) == [machine.provider_id]


async def test_the_same_token_never_starts_a_second_machine(stage: Stage) -> None:
    first, second = await asyncio.gather(
        stage.cloud.launch(spec(stage)), stage.cloud.launch(spec(stage))
    )
    await ready_node(stage, first.provider_id)

    third = await stage.cloud.launch(spec(stage))

    assert {second.provider_id, third.provider_id} == {first.provider_id}
    assert await ids(stage.cloud) == [first.provider_id]


async def test_another_operator_comes_to_the_same_machine_or_finds_both(stage: Stage) -> None:
    """The first operator may have crashed before it recorded the launch."""
    first = await stage.cloud.launch(spec(stage))

    await stage.restart()
    second = await stage.cloud.launch(spec(stage))

    assert place(second) == place(first)
    if stage.is_idempotent_for_ever:
        assert second.provider_id == first.provider_id
    assert await ids(stage.cloud) == sorted({first.provider_id, second.provider_id})


async def test_a_machine_joins_though_the_operator_that_launched_it_is_gone(stage: Stage) -> None:
    await stage.slow_down()
    machine = await stage.cloud.launch(spec(stage))
    await remember(stage, machine)

    await stage.restart()
    node = await ready_node(stage, machine.provider_id)

    if stage.labels_nodes:
        assert machine.labels.items() <= node["metadata"]["labels"].items()
    assert await ids(stage.cloud) == [machine.provider_id]


async def test_every_token_gets_a_machine_of_its_own(stage: Stage) -> None:
    launches = [stage.cloud.launch(spec(stage, f"c{number}")) for number in range(5)]

    machines = await asyncio.gather(*launches)

    assert len({each.provider_id for each in machines}) == 5
    assert await ids(stage.cloud) == sorted(each.provider_id for each in machines)


async def test_a_machine_joins_as_a_node_that_is_closed_to_pods(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec(stage, "c1", **{"example.com/team": "shop"}))

    node = await ready_node(stage, machine.provider_id)

    labels = node["metadata"]["labels"]
    keys = {(each["key"], each["effect"]) for each in node["spec"]["taints"]}
    if stage.labels_nodes:
        assert machine.labels.items() <= labels.items()
    assert labels["example.com/team"] == "shop"
    assert node["status"]["allocatable"]["cpu"] == f"{stage.goods.allocatable}m"
    assert ("karpenter.sh/unregistered", "NoExecute") in keys


async def test_a_machine_can_be_ended_and_is_gone_then(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec(stage))
    other = await stage.cloud.launch(spec(stage, "c2"))
    await ready_node(stage, machine.provider_id)

    await until(lambda: ended(stage.cloud, machine.provider_id))

    with pytest.raises(MachineNotFound):
        await stage.cloud.machine(machine.provider_id)
    with pytest.raises(MachineNotFound):
        await stage.cloud.terminate(machine.provider_id)
    assert await ids(stage.cloud) == [other.provider_id]


async def test_a_machine_can_be_ended_before_its_node_is_there(stage: Stage) -> None:
    machine = await stage.cloud.launch(spec(stage))

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
        await stage.cloud.launch(spec(stage, "c1", SOLD_NOWHERE))

    assert await ids(stage.cloud) == []


async def test_a_node_class_that_is_not_ready_is_not_launched_with(stage: Stage) -> None:
    said = await stage.spoil_class("no paper left")

    with pytest.raises(NodeClassNotReady, match=said):
        await stage.cloud.launch(spec(stage))

    assert await ids(stage.cloud) == []


async def test_a_machine_that_has_just_come_does_not_differ_from_its_class(stage: Stage) -> None:
    await stage.cloud.launch(spec(stage))

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
