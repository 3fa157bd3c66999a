"""Conditions of NodeOverlays, and launches that follow them, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.overlaid import OverlaidCloud
from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.controllers.context import ControllerContext
from karpy.controllers.nodeclaimlifecycle import LifecycleController
from karpy.controllers.overlays import OverlayController
from karpy.controllers.writer import Writer
from karpy.core.scheduling.decide import decide
from karpy.model.kinds import CUSTOM_RESOURCE, NODE_CLAIM, NODE_OVERLAY, NODE_POOL, POD
from karpy.model.settings import Settings
from karpy.ports.cloud import CloudProvider
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, conditions, until
from tests.controllers.test_provisioning import pool

APPLIED = {"ValidationSucceeded": ("True", "ValidationSucceeded"), "Ready": ("True", "Ready")}
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
DONGLE = "example.com/dongle"


class Scene(Struct):
    """What a story about overlays has at hand."""

    context: ControllerContext
    mirror: Mirror
    cluster: MirroredCluster
    overlays: OverlayController


@asynccontextmanager
async def overlaying(
    world: World, heard: Heard, cloud: CloudProvider | None = None
) -> AsyncIterator[Scene]:
    """Run the controllers that judge overlays and launch claims by them."""
    mirror = Mirror(world.objects, world.clock, kwok_catalog, Settings(node_overlay=True))
    watching = asyncio.create_task(mirror.run())
    await mirror.wait_until_listed()
    cloud, writer = cloud or world.cloud, Writer(world.objects, heard, heard)
    context = ControllerContext(
        mirror.records, world.objects, cloud, writer, world.clock, on_failure=heard.fail
    )
    overlays = OverlayController(context)
    parts = (overlays, LifecycleController(replace(context, cloud=OverlaidCloud(cloud, mirror))))
    tasks = [watching, *(asyncio.create_task(each.run()) for each in parts)]
    try:
        yield Scene(context, mirror, MirroredCluster(mirror, world.objects), overlays)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def overlay(name: str, *types: str, **spec: object) -> JsonObject:
    wanted = {"key": INSTANCE_TYPE, "operator": "In", "values": list(types)}
    requirements = [wanted] if types else []
    return {"metadata": {"name": name}, "spec": {"requirements": requirements, **spec}}


def said(world: World, name: str) -> dict[str, tuple[str, str]]:
    """Return status and reason of an overlay's conditions."""
    status = world.store.get(NODE_OVERLAY, name).get("status") or {}
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def validity(world: World, *names: str) -> list[tuple[str, str]]:
    return [said(world, name)["ValidationSucceeded"] for name in names]


def test_an_overlay_that_is_applied_is_ready() -> None:
    heard = Heard()

    async def story() -> dict[str, tuple[str, str]]:
        world = World()
        world.store.create(NODE_POOL, pool())
        async with overlaying(world, heard):
            world.store.create(NODE_OVERLAY, overlay("cheap", price="0.1"))
            await asyncio.sleep(1)
            return said(world, "cheap")

    assert run(story()) == APPLIED
    assert heard.failures == []


def test_of_two_conflicting_overlays_one_has_the_condition_until_weights_decide() -> None:
    async def story() -> list[list[tuple[str, str]]]:
        world = World()
        world.store.create(NODE_POOL, pool())
        told = []
        async with overlaying(world, Heard()):
            world.store.create(NODE_OVERLAY, overlay("a", price="0.1"))
            world.store.create(NODE_OVERLAY, overlay("b", price="0.2"))
            await asyncio.sleep(1)
            told.append(validity(world, "a", "b"))
            heavier = Patch(PatchType.MERGE, {"spec": {"weight": 10}})
            world.store.patch(NODE_OVERLAY, "a", heavier)
            await asyncio.sleep(1)
            told.append(validity(world, "a", "b"))
        return told

    fine, conflict = ("True", "ValidationSucceeded"), ("False", "Conflict")
    assert run(story()) == [[conflict, fine], [fine, fine]]


def test_a_conflict_ends_with_the_other_overlay() -> None:
    async def story() -> dict[str, tuple[str, str]]:
        world = World()
        world.store.create(NODE_POOL, pool())
        async with overlaying(world, Heard()):
            world.store.create(NODE_OVERLAY, overlay("a", price="0.1"))
            world.store.create(NODE_OVERLAY, overlay("b", price="0.2"))
            await asyncio.sleep(1)
            world.store.delete(NODE_OVERLAY, "b")
            await asyncio.sleep(1)
            return said(world, "a")

    assert run(story()) == APPLIED


def test_a_conflict_may_begin_with_a_pool() -> None:
    async def story() -> list[list[tuple[str, str]]]:
        world = World()
        told = []
        async with overlaying(world, Heard()):
            world.store.create(NODE_OVERLAY, overlay("a", price="0.1"))
            world.store.create(NODE_OVERLAY, overlay("b", price="0.2"))
            await asyncio.sleep(1)
            told.append(validity(world, "a", "b"))
            world.store.create(NODE_POOL, pool())
            await asyncio.sleep(1)
            told.append(validity(world, "a", "b"))
        return told

    fine, conflict = ("True", "ValidationSucceeded"), ("False", "Conflict")
    assert run(story()) == [[fine, fine], [conflict, fine]]


def test_an_invalid_overlay_has_the_condition_and_is_not_applied() -> None:
    async def story() -> tuple[tuple[str, str], tuple[str, str], int]:
        world = World()
        world.store.create(NODE_POOL, pool())
        wanted = {"key": "team", "operator": "NotIn", "values": ["not a value!"]}
        broken = overlay("broken", price="0.1")
        broken["spec"]["requirements"] = [wanted]
        async with overlaying(world, Heard()) as scene:
            world.store.create(NODE_OVERLAY, broken)
            await asyncio.sleep(1)
            found = said(world, "broken")
            applied = len(scene.mirror.overlays.all())
            return found["ValidationSucceeded"], found["Ready"], applied

    invalid, unready = ("False", "RuntimeValidation"), ("False", "UnhealthyDependents")
    assert run(story()) == (invalid, unready, 0)


def test_overlays_that_are_content_are_not_written() -> None:
    async def story() -> tuple[str, str]:
        world = World()
        world.store.create(NODE_POOL, pool())
        async with overlaying(world, Heard()):
            world.store.create(NODE_OVERLAY, overlay("cheap", price="0.1"))
            await asyncio.sleep(1)
            before = world.store.get(NODE_OVERLAY, "cheap")["metadata"]["resourceVersion"]
            await asyncio.sleep(24 * 60 * 60)
            after = world.store.get(NODE_OVERLAY, "cheap")["metadata"]["resourceVersion"]
            return before, after

    before, after = run(story())

    assert before == after


def test_without_the_kind_everything_else_goes_on_and_it_is_found_later() -> None:
    async def story() -> tuple[int, dict[str, tuple[str, str]]]:
        world = World()
        world.store.create(NODE_POOL, pool())
        world.store.delete(CUSTOM_RESOURCE, "nodeoverlays.karpenter.sh")
        async with overlaying(world, Heard()) as scene:
            await asyncio.sleep(60)
            pools = len(scene.cluster.snapshot().pools)
            (kind,) = (each for each in CUSTOM_KINDS if each.kind == NODE_OVERLAY)
            world.store.create(CUSTOM_RESOURCE, kind.to_json())
            world.store.create(NODE_OVERLAY, overlay("cheap", price="0.1"))
            await asyncio.sleep(60)
            return pools, said(world, "cheap")

    assert run(story()) == (1, APPLIED)


def test_a_claim_may_ask_for_what_only_an_overlay_knows() -> None:
    async def story() -> tuple[JsonObject, dict[str, str]]:
        world = World()
        world.start()
        world.store.create(NODE_POOL, pool())
        special = overlay("dongles", "c-4x-amd64-linux", capacity={DONGLE: "2"})
        world.store.create(NODE_OVERLAY, special)
        resources = {"requests": {"cpu": "1", DONGLE: "1"}, "limits": {DONGLE: "1"}}
        container = {"name": "c", "image": "i", "resources": resources}
        meta = {"name": "web", "namespace": "default"}
        world.store.create(POD, {"metadata": meta, "spec": {"containers": [container]}})
        await asyncio.sleep(5)
        async with overlaying(world, Heard()) as scene:
            (launch,) = decide(scene.cluster.snapshot()).launches
            name = await scene.cluster.apply(launch)
            await until(lambda: conditions(world, name).get("Registered") == "True")
            found = world.store.get(NODE_CLAIM, name)
        world.stop()
        return found, conditions(world, name)

    claim, told = run(story())

    assert claim["metadata"]["annotations"]["karpenter.sh/capacity-overlay-applied"] == "true"
    assert claim["metadata"]["labels"][INSTANCE_TYPE] == "c-4x-amd64-linux"
    assert told["Launched"] == "True"
