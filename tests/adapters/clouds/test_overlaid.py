import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from karpy.adapters.clouds.overlaid import OverlaidCloud
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE_OVERLAY, NODE_POOL
from karpy.model.settings import Settings
from karpy.sim.loop import run
from karpy.sim.world import World

NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
PRICE = 100_000


@asynccontextmanager
async def mirroring(world: World, *, has_overlays: bool = True) -> AsyncIterator[Mirror]:
    """Have a mirror that is up to date."""
    settings = Settings(node_overlay=has_overlays)
    mirror = Mirror(world.objects, world.clock, kwok_catalog, settings)
    task = asyncio.create_task(mirror.run())
    await mirror.wait_until_listed()
    try:
        yield mirror
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def pool(name: str) -> JsonObject:
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    return {"metadata": {"name": name}, "spec": {"template": template}}


def overlay(name: str, *pools: str, price: str = "0.1") -> JsonObject:
    wanted = {"key": "karpenter.sh/nodepool", "operator": "In", "values": list(pools)}
    spec = {"requirements": [wanted], "price": price}
    return {"metadata": {"name": name}, "spec": spec}


def world_of(*overlays: JsonObject) -> World:
    world = World()
    world.store.create(NODE_POOL, pool("red"))
    world.store.create(NODE_POOL, pool("blue"))
    for each in overlays:
        world.store.create(NODE_OVERLAY, each)
    return world


def prices(world: World, mirror: Mirror, name: str) -> set[int]:
    """Return what things cost in a pool, as launches see it."""
    catalog = OverlaidCloud(world.cloud, mirror).catalog()
    return {each.price for type_ in catalog.types_for(name) for each in type_.offerings}


def test_prices_are_those_of_the_overlays_of_a_pool() -> None:
    async def story() -> tuple[set[int], int]:
        world = world_of(overlay("a", "red"))
        async with mirroring(world) as mirror:
            red, blue = prices(world, mirror, "red"), prices(world, mirror, "blue")
            return red, len(blue)

    red, blue = run(story())

    assert red == {PRICE}
    assert blue > 1


def test_an_overlay_that_contradicts_in_one_pool_is_applied_in_none() -> None:
    async def story() -> set[int]:
        world = world_of(overlay("a", "red", "blue"), overlay("b", "blue", price="0.2"))
        async with mirroring(world) as mirror:
            return prices(world, mirror, "red")

    assert len(run(story())) > 1


def test_what_has_not_changed_is_not_worked_out_again() -> None:
    async def story() -> tuple[bool, bool, bool]:
        world = world_of(overlay("a", "red"))
        async with mirroring(world) as mirror:
            cloud = OverlaidCloud(world.cloud, mirror)
            first, whole = cloud.catalog(), mirror.overlaid_catalog()
            again = cloud.catalog()
            is_whole_same = mirror.overlaid_catalog() is whole
            world.store.delete(NODE_OVERLAY, "a")
            await asyncio.sleep(1)
            after = cloud.catalog()
            is_same = again.types_for("red") is first.types_for("red")
            return is_same, is_whole_same, after.types_for("red") == first.types_for("red")

    assert run(story()) == (True, True, False)


def test_decisions_see_the_prices_of_the_overlays() -> None:
    async def story() -> tuple[set[int], bool, int]:
        world = world_of(overlay("a", "red"))
        async with mirroring(world) as mirror:
            first, again = mirror.snapshot(), mirror.snapshot()
            seen = {
                each.price for type_ in first.catalog.types_for("red") for each in type_.offerings
            }
            return seen, first.catalog is again.catalog, len(first.overlays)

    assert run(story()) == ({PRICE}, True, 0)


def test_with_the_gate_closed_the_catalog_is_the_clouds_own() -> None:
    async def story() -> bool:
        world = world_of(overlay("a", "red"))
        async with mirroring(world, has_overlays=False) as mirror:
            return mirror.overlaid_catalog() is kwok_catalog()

    assert run(story())
