"""CapacityBuffers keep room free, on virtual time."""

import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    CAPACITY_BUFFER,
    CUSTOM_RESOURCE,
    DEPLOYMENT,
    NODE_POOL,
    POD,
    POD_TEMPLATE,
)
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.bufferwriters import (
    buffer,
    deployment,
    keeping_room,
    pod_template,
    said,
    status_of,
)
from tests.controllers.disruptions import claims_in, pool
from tests.controllers.operators import Heard, is_ready, until

BY_TEMPLATE = buffer(podTemplateRef={"name": "web"}, replicas=2)
FITS = {
    "ReadyForProvisioning": ("True", "Resolved"),
    "Provisioning": ("True", "FitsExistingCapacity"),
}


def stage(*, buffered: JsonObject | None = BY_TEMPLATE) -> World:
    """Have a world in which there is room to be made."""
    world = World()
    world.start()
    world.store.create(NODE_POOL, pool())
    world.store.create(POD_TEMPLATE, pod_template())
    if buffered is not None:
        world.store.create(CAPACITY_BUFFER, buffered)
    return world


def test_nodes_are_there_before_pods_are() -> None:
    heard = Heard()

    async def story() -> tuple[JsonObject, int, list[str]]:
        world = stage()
        async with keeping_room(world, heard) as room:
            await until(lambda: said(world) == FITS, seconds=300)
            found = status_of(world), len(claims_in(world)), room.audience.awaited
        world.stop()
        return found

    status, claims, awaited = run(story())

    del status["conditions"]
    assert status == {
        "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
        "podTemplateRef": {"name": "web"},
        "podTemplateGeneration": 1,
        "replicas": 2,
    }
    assert claims >= 1
    assert awaited == []
    assert [each for each in heard.notices if each.subject.kind == POD] == []
    assert heard.failures == []


def test_a_buffer_says_that_its_room_is_being_made() -> None:
    async def story() -> tuple[str, str]:
        world = stage()
        async with keeping_room(world, Heard()):
            await until(lambda: "Provisioning" in said(world), seconds=10)
            found = said(world)["Provisioning"]
        world.stop()
        return found

    assert run(story()) == ("False", "RequiresNewCapacity")


def test_nodes_with_room_for_a_buffer_are_not_empty_until_it_is_deleted() -> None:
    heard = Heard()

    async def story() -> tuple[int, list[str]]:
        world = stage()
        async with keeping_room(world, heard):
            await until(lambda: said(world) == FITS)
            await asyncio.sleep(30 * 60)
            kept = len(claims_in(world))
            world.store.delete(CAPACITY_BUFFER, "spare", namespace="default")
            await asyncio.sleep(5 * 60)
            left = claims_in(world)
        world.stop()
        return kept, left

    kept, left = run(story())

    assert kept >= 1
    assert left == []
    assert "has buffer pods" in heard.told("Unconsolidatable")[0]


def test_pods_take_the_room_at_once_and_it_is_made_anew() -> None:
    async def story() -> tuple[int, int, int]:
        world = stage()
        async with keeping_room(world, Heard()):
            await until(lambda: said(world) == FITS and all_ready(world))
            before = len(claims_in(world))
            world.store.create(DEPLOYMENT, deployment(2))
            await asyncio.sleep(3)
            bound = sum(bool(each["spec"].get("nodeName")) for each in world.store.list(POD))
            await asyncio.sleep(5 * 60)
            after = len(claims_in(world))
        world.stop()
        return before, bound, after

    before, bound, after = run(story())

    assert bound == 2
    assert after > before


def test_a_share_of_a_workload_follows_it() -> None:
    async def story() -> list[int]:
        world = stage(buffered=buffer(percentage=50))
        told = []
        async with keeping_room(world, Heard()):
            world.store.create(DEPLOYMENT, deployment(3, cpu="100m"))
            await asyncio.sleep(1)
            told.append(status_of(world)["replicas"])
            scale = Patch(PatchType.MERGE, {"spec": {"replicas": 8}})
            world.store.patch(DEPLOYMENT, "web", scale, namespace="default")
            await asyncio.sleep(1)
            told.append(status_of(world)["replicas"])
        world.stop()
        return told

    assert run(story()) == [2, 4]


def test_a_buffer_says_what_it_lacks_and_finds_it() -> None:
    async def story() -> list[tuple[str, str]]:
        world = stage(buffered=buffer(replicas=1))
        told = []
        async with keeping_room(world, Heard()) as room:
            await asyncio.sleep(1)
            told.append(said(world)["ReadyForProvisioning"])
            world.store.create(DEPLOYMENT, deployment(0))
            await asyncio.sleep(1)
            told.append(said(world)["ReadyForProvisioning"])
            world.store.delete(DEPLOYMENT, "web", namespace="default")
            await asyncio.sleep(1)
            told.append(said(world)["ReadyForProvisioning"])
            assert room.book.virtual_pods() == ()
        world.stop()
        return told

    missing = ("False", "ScalableRefNotFound")
    assert run(story()) == [missing, ("True", "Resolved"), missing]


def test_what_was_kept_free_stays_so_after_a_restart() -> None:
    async def story() -> tuple[list[str], list[str]]:
        world = stage()
        async with keeping_room(world, Heard()):
            await until(lambda: said(world) == FITS)
            before = claims_in(world)
        async with keeping_room(world, Heard()):
            await asyncio.sleep(10 * 60)
            after = claims_in(world)
        world.stop()
        return before, after

    before, after = run(story())

    assert before == after


def test_a_buffer_that_is_content_is_not_written() -> None:
    async def story() -> tuple[str, str, int]:
        world = stage()
        async with keeping_room(world, Heard()) as room:
            await until(lambda: said(world) == FITS)
            await asyncio.sleep(60)
            before, decisions = version_of(world), len(room.audience.verdicts)
            await asyncio.sleep(10 * 60)
            after = version_of(world)
            asked = len(room.audience.verdicts) - decisions
        world.stop()
        return before, after, asked

    before, after, asked = run(story())

    assert before == after
    assert asked == pytest.approx(20, abs=1)


def all_ready(world: World) -> bool:
    return all(is_ready(world, name) for name in claims_in(world))


def version_of(world: World) -> str:
    found = world.store.get(CAPACITY_BUFFER, "spare", "default")
    return str(found["metadata"]["resourceVersion"])


def test_without_the_kind_everything_else_goes_on() -> None:
    async def story() -> tuple[int, int]:
        world = stage(buffered=None)
        world.store.delete(CUSTOM_RESOURCE, "capacitybuffers.autoscaling.x-k8s.io")
        async with keeping_room(world, Heard()) as room:
            world.store.create(DEPLOYMENT, deployment(1))
            await until(lambda: len(claims_in(world)) == 1, seconds=60)
            found = len(claims_in(world)), len(room.book.virtual_pods())
        world.stop()
        return found

    assert run(story()) == (1, 0)
