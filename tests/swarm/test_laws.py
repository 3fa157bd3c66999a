"""The judges of a story see what is wrong."""

import asyncio

import pytest

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.fields import JsonObject
from karpy.errors import Invalid
from karpy.model.kinds import KWOK_NODE_CLASS, NODE, NODE_CLAIM, NODE_POOL, POD
from karpy.model.options import Options
from karpy.model.settings import Settings
from karpy.ports.objects import Patch, PatchType
from karpy.sim.world import World
from tests.controllers.operators import NODE_CLASS
from tests.scenarios.manifests import node_class, pod_spec, pool
from tests.sim.stories import bind, launch_spec, living, on_virtual_time
from tests.swarm.findings import Law
from tests.swarm.judge import judge
from tests.swarm.operators import SMALL
from tests.swarm.troubles import Outage
from tests.swarm.watchdog import Watchdog
from tests.swarm.witnesses import Deadlines, WitnessedCloud, WitnessedObjects


class Told:
    """Keeps what is reported."""

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
    told = Told()
    with living(World()) as world:
        Watchdog(world, told)
        world.store.create(NODE_POOL, pool(limits={"cpu": limit}))
        put_claim(world, "a", "sim:///a")
        put_claim(world, "b", "sim:///b")

    assert told.laws == laws


@on_virtual_time
async def test_a_limit_that_is_lowered_is_no_breach() -> None:
    told = Told()
    with living(World()) as world:
        Watchdog(world, told)
        world.store.create(NODE_POOL, pool(limits={"cpu": "8"}))
        put_claim(world, "a", "sim:///a")
        put_claim(world, "b", "sim:///b")
        lower = Patch(PatchType.MERGE, {"spec": {"limits": {"cpu": "4"}}})
        world.store.patch(NODE_POOL, "default", lower)
        label = Patch(PatchType.MERGE, {"metadata": {"labels": {"a": "b"}}})
        world.store.patch(NODE_CLAIM, "a", label)

    assert told.laws == []


@on_virtual_time
async def test_a_pod_that_is_deleted_instead_of_evicted_is_seen() -> None:
    told = Told()
    with living(World(parts=())) as world:
        world.add_node("n1", provider_id="sim:///a")
        await asyncio.sleep(1)
        meta = {"name": "web", "namespace": "default"}
        world.store.create(POD, {"metadata": meta, "spec": pod_spec()})
        bind(world.store, "web", "n1")
        objects = WitnessedObjects(world, told, Outage(), Deadlines(world))
        await objects.delete(POD, "web", namespace="default")

    assert told.laws == [Law.BUDGET]


@on_virtual_time
async def test_a_machine_that_ends_under_its_pods_is_seen() -> None:
    told = Told()
    with living(World(parts=())) as world:
        machine = await world.cloud.launch(launch_spec("a"))
        put_claim(world, "a", machine.provider_id)
        await asyncio.sleep(60)
        meta = {"name": "web", "namespace": "default"}
        world.store.create(POD, {"metadata": meta, "spec": pod_spec()})
        bind(world.store, "web", world.cloud.node_of(machine.provider_id))
        cloud = WitnessedCloud(world.cloud, world, told, Deadlines(world))
        await cloud.terminate(machine.provider_id)

    assert told.laws == [Law.DRAIN]


@on_virtual_time
async def test_a_write_that_is_refused_as_wrong_is_seen() -> None:
    told = Told()
    with living(World()) as world:
        objects = WitnessedObjects(world, told, Outage(), Deadlines(world))
        with pytest.raises(Invalid):
            await objects.create(NODE_POOL, {"metadata": {"name": "web"}, "spec": {}})

    assert told.laws == [Law.INVALID]


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
