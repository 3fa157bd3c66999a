"""The checks of a story find broken laws."""

import asyncio

import pytest

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.fields import JsonObject
from karpy.errors import Invalid
from karpy.model.commands import Command, CommandNode, DisruptionVerdict, Replacement
from karpy.model.kinds import KWOK_NODE_CLASS, NODE, NODE_CLAIM, NODE_POOL, POD
from karpy.model.labels import ON_DEMAND
from karpy.model.nodes import Node
from karpy.model.pools import DisruptionReason
from karpy.model.settings import Options, Settings
from karpy.model.snapshot import ValidationQuestion
from karpy.model.verdicts import Launch, LaunchOption
from karpy.ports.objects import Patch, PatchType
from karpy.sim.world import World
from tests.builders.clusters import snapshot
from tests.builders.nodes import node
from tests.builders.pods import NOON, owner, pod
from tests.controllers.operators import NODE_CLASS
from tests.scenarios.manifests import node_class, pod_spec, pool
from tests.sim.stories import bind, launch_spec, living, on_virtual_time
from tests.swarm.disruptions import Budgets, Ledger, homeless
from tests.swarm.findings import Law
from tests.swarm.judge import judge
from tests.swarm.operators import SMALL
from tests.swarm.troubles import Outage
from tests.swarm.watchdog import Watchdog
from tests.swarm.witnesses import Deadlines, WitnessedCloud, WitnessedObjects


class Reports:
    """Keeps the reported laws."""

    def __init__(self) -> None:
        self.laws: list[Law] = []

    def __call__(self, law: Law, text: str) -> None:
        del text
        self.laws.append(law)


def claim(name: str, provider_id: str = "") -> JsonObject:
    spec = {"requirements": [], "nodeClassRef": NODE_CLASS}
    made: JsonObject = {"metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "default"}}}
    status = {"providerID": provider_id, "capacity": {"cpu": "4"}} if provider_id else {}
    return {**made, "spec": spec, "status": status}


def put_claim(world: World, name: str, provider_id: str) -> None:
    world.store.create(NODE_CLAIM, claim(name))
    status = Patch(PatchType.MERGE, {"status": claim(name, provider_id)["status"]})
    world.store.patch(NODE_CLAIM, name, status, subresource="status")


@pytest.mark.parametrize(("limit", "laws"), [("8", []), ("7", [Law.LIMIT])])
@on_virtual_time
async def test_a_pool_beyond_its_limit_is_seen(limit: str, laws: list[Law]) -> None:
    reports = Reports()
    with living(World()) as world:
        Watchdog(world, reports)
        world.store.create(NODE_POOL, pool(limits={"cpu": limit}))
        put_claim(world, "a", "sim:///a")
        put_claim(world, "b", "sim:///b")

    assert reports.laws == laws


@on_virtual_time
async def test_a_limit_that_is_lowered_is_no_breach() -> None:
    reports = Reports()
    with living(World()) as world:
        Watchdog(world, reports)
        world.store.create(NODE_POOL, pool(limits={"cpu": "8"}))
        put_claim(world, "a", "sim:///a")
        put_claim(world, "b", "sim:///b")
        lower = Patch(PatchType.MERGE, {"spec": {"limits": {"cpu": "4"}}})
        world.store.patch(NODE_POOL, "default", lower)
        label = Patch(PatchType.MERGE, {"metadata": {"labels": {"a": "b"}}})
        world.store.patch(NODE_CLAIM, "a", label)

    assert reports.laws == []


@on_virtual_time
async def test_a_pod_that_is_deleted_instead_of_evicted_is_seen() -> None:
    reports = Reports()
    with living(World(parts=())) as world:
        world.add_node("n1", provider_id="sim:///a")
        await asyncio.sleep(1)
        meta = {"name": "web", "namespace": "default"}
        world.store.create(POD, {"metadata": meta, "spec": pod_spec()})
        bind(world.store, "web", "n1")
        objects = WitnessedObjects(world, reports, Outage(), Deadlines(world))
        await objects.delete(POD, "web", namespace="default")

    assert reports.laws == [Law.BUDGET]


@on_virtual_time
async def test_a_machine_that_ends_under_its_pods_is_seen() -> None:
    reports = Reports()
    with living(World(parts=())) as world:
        machine = await world.cloud.launch(launch_spec("a"))
        put_claim(world, "a", machine.provider_id)
        await asyncio.sleep(60)
        meta = {"name": "web", "namespace": "default"}
        world.store.create(POD, {"metadata": meta, "spec": pod_spec()})
        bind(world.store, "web", world.cloud.node_of(machine.provider_id))
        cloud = WitnessedCloud(world.cloud, world, reports, Deadlines(world))
        await cloud.terminate(machine.provider_id)

    assert reports.laws == [Law.DRAIN]


@on_virtual_time
async def test_a_write_that_is_refused_as_wrong_is_seen() -> None:
    reports = Reports()
    with living(World()) as world:
        objects = WitnessedObjects(world, reports, Outage(), Deadlines(world))
        with pytest.raises(Invalid):
            await objects.create(NODE_POOL, {"metadata": {"name": "web"}, "spec": {}})

    assert reports.laws == [Law.INVALID]


def put_marked(world: World, *names: str) -> None:
    """Put claims that are disrupted since they have drifted."""
    now = world.clock.now().isoformat().replace("+00:00", "Z")
    condition = {"type": "DisruptionReason", "status": "True", "reason": "Drifted", "message": ""}
    for name in names:
        put_claim(world, name, f"sim:///{name}")
        status = {"conditions": [{**condition, "lastTransitionTime": now}]}
        patch = Patch(PatchType.MERGE, {"status": status})
        world.store.patch(NODE_CLAIM, name, patch, subresource="status")


@pytest.mark.parametrize(
    ("budgets", "laws"),
    [
        ([{"nodes": "2"}], []),
        ([{"nodes": "1"}], [Law.DISRUPTION]),
        ([{"nodes": "1", "reasons": ["Empty"]}], []),
        ([{"nodes": "34%"}], []),
        ([{"nodes": "33%"}], [Law.DISRUPTION]),
        ([{"nodes": "0"}], [Law.DISRUPTION, Law.DISRUPTION]),
    ],
)
@on_virtual_time
async def test_more_nodes_than_budgets_allow_are_seen(
    budgets: list[JsonObject], laws: list[Law]
) -> None:
    reports = Reports()
    with living(World()) as world:
        objects = WitnessedObjects(world, reports, Outage(), Deadlines(world))
        objects.on_disruption.append(Budgets(world, reports).note)
        world.store.create(NODE_POOL, pool(disruption={"budgets": budgets}))
        put_marked(world, "a", "b", "c")
        for name in ("a", "b"):
            held = Patch(PatchType.MERGE, {"metadata": {"finalizers": ["example.com/held"]}})
            world.store.patch(NODE_CLAIM, name, held)
            await objects.delete(NODE_CLAIM, name)

    assert reports.laws == laws


@on_virtual_time
async def test_a_budget_that_is_lowered_while_nodes_go_is_no_breach() -> None:
    reports = Reports()
    with living(World()) as world:
        objects = WitnessedObjects(world, reports, Outage(), Deadlines(world))
        objects.on_disruption.append(Budgets(world, reports).note)
        world.store.create(NODE_POOL, pool(disruption={"budgets": [{"nodes": "1"}]}))
        put_marked(world, "a")
        lower = Patch(PatchType.MERGE, {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}})
        world.store.patch(NODE_POOL, "default", lower)
        await objects.delete(NODE_CLAIM, "a")

    assert reports.laws == []


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ([], ["default/web"]),
        ([node("b", cpu="1")], ["default/web"]),
        ([node("b", initialized=False)], ["default/web"]),
        ([node("b", deleting=True)], ["default/web"]),
        ([node("b")], []),
    ],
    ids=["none", "too small", "not initialized", "deleting", "room"],
)
def test_pods_without_a_place_elsewhere_are_seen(others: list[Node], left: list[str]) -> None:
    there = node("a")
    web = pod("web", cpu="2", on="a", owners=[owner(("apps/v1", "ReplicaSet"))])

    assert homeless(there, snapshot(nodes=(there, *others), pods=(web,)), NOON) == left


@pytest.mark.parametrize(
    ("type_", "laws"), [("c-2x-amd64-linux", []), ("c-8x-amd64-linux", [Law.DEARER])]
)
def test_a_replacement_that_costs_more_is_seen(type_: str, laws: list[Law]) -> None:
    reports = Reports()
    zone = "test-zone-a"
    old = node("a", type="c-4x-amd64-linux", zone=zone)
    price = next(
        offering.price
        for each in SMALL.types
        for offering in each.offerings
        if each.name == type_ and offering.capacity_type == ON_DEMAND
    )
    option = LaunchOption(type_, price, zone, ON_DEMAND)
    launch = Launch("new", "default", (), {}, {}, (option,))
    going = (CommandNode("a", "a-claim", "default"),)
    reason = DisruptionReason.UNDERUTILIZED
    command = Command("single", reason, going, (Replacement(launch),))
    question = ValidationQuestion(snapshot(nodes=(old,), catalog=SMALL), command)

    Ledger(reports).record_disruption(question, DisruptionVerdict("single", (command,)))

    assert reports.laws == laws


@on_virtual_time
async def test_what_is_left_over_in_the_end_is_seen() -> None:
    with living(World()) as world:
        world.store.create(KWOK_NODE_CLASS, node_class())
        mirror = Mirror(world.objects, world.clock, lambda: SMALL, Settings())
        unaware = mirror.snapshot()
        await world.cloud.launch(launch_spec("nobody"))
        world.store.create(NODE, {"metadata": {"name": "stray"}})
        put_claim(world, "a", "sim:///a")
        found = await judge(world, world.cloud, unaware, Options())

    assert {each.law for each in found} == {Law.MIRROR, Law.ORPHAN, Law.UNFINISHED}
