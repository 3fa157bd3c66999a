"""The changes that increase the version of consolidation."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.model.instances import Catalog
from karpy.model.kinds import DISRUPTION_BUDGET, NODE, NODE_CLAIM, NODE_POOL, POD
from karpy.model.settings import Settings
from karpy.ports.objects import Patch, PatchType
from karpy.sim.world import World
from tests.controllers.disruptions import pool
from tests.controllers.operators import claim
from tests.controllers.test_nodetermination import budget, pod
from tests.sim.stories import bind, on_virtual_time


@asynccontextmanager
async def followed(
    catalog: Callable[[], Catalog] = kwok_catalog,
) -> AsyncIterator[tuple[World, Mirror]]:
    """Have a node with a pod, a claim and a NodePool, and a mirror that follows them."""
    world = World(parts=())
    world.store.create(NODE_POOL, pool())
    world.store.create(NODE_CLAIM, claim())
    world.store.create(NODE, {"metadata": {"name": "n1"}, "spec": {"providerID": "kwok://n1"}})
    world.store.create(POD, pod("old", "n1"))
    mirror = Mirror(world.objects, world.clock, catalog, Settings())
    task = asyncio.create_task(mirror.run())
    await mirror.wait_until_listed()
    try:
        yield world, mirror
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _bind_pod(world: World) -> None:
    world.store.create(POD, pod("new", ""))
    bind(world.store, "new", "n1")


def _make_consolidatable(world: World) -> None:
    said = {
        "type": "Consolidatable",
        "status": "True",
        "reason": "Consolidatable",
        "message": "",
        "lastTransitionTime": "2026-01-05T00:00:00Z",
    }
    patch = Patch(PatchType.MERGE, {"status": {"conditions": [said]}})
    world.store.patch(NODE_CLAIM, "web-1", patch, subresource="status")


def _cordon(world: World) -> None:
    world.store.patch(NODE, "n1", Patch(PatchType.MERGE, {"spec": {"unschedulable": True}}))


def _edit_pool(world: World) -> None:
    body = {"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}
    world.store.patch(NODE_POOL, "web", Patch(PatchType.MERGE, body))


@pytest.mark.parametrize(
    "change",
    [
        _bind_pod,
        lambda world: world.store.delete(POD, "old", namespace="default"),
        lambda world: world.store.create(NODE_CLAIM, claim("web-2")),
        _make_consolidatable,
        _cordon,
        _edit_pool,
        lambda world: world.store.create(DISRUPTION_BUDGET, budget("all", 1)),
    ],
    ids=["bound", "gone", "claim", "consolidatable", "cordon", "pool", "budget"],
)
@on_virtual_time
async def test_it_moves_with_what_consolidation_reads(change: Callable[[World], object]) -> None:
    async with followed() as (world, mirror):
        before = mirror.consolidation_version
        change(world)
        await asyncio.sleep(1)

        assert mirror.consolidation_version != before


def _beat(world: World) -> None:
    ready = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "",
        "lastHeartbeatTime": "2026-01-05T00:10:00Z",
        "lastTransitionTime": "2026-01-05T00:00:00Z",
    }
    patch = Patch(PatchType.MERGE, {"status": {"conditions": [ready]}})
    world.store.patch(NODE, "n1", patch, subresource="status")


@pytest.mark.parametrize(
    "change",
    [_beat, lambda world: world.store.create(POD, pod("waiting", ""))],
    ids=["heartbeat", "pending pod"],
)
@on_virtual_time
async def test_it_stays_with_everything_else(change: Callable[[World], object]) -> None:
    async with followed() as (world, mirror):
        before = mirror.consolidation_version
        change(world)
        await asyncio.sleep(1)

        assert mirror.consolidation_version == before


@on_virtual_time
async def test_a_catalog_that_is_made_anew_counts_only_if_it_differs() -> None:
    sold = [kwok_catalog()]
    async with followed(lambda: sold[-1]) as (_, mirror):
        before = mirror.consolidation_version
        sold.append(replace(sold[0], types=(*sold[0].types,)))
        same = mirror.consolidation_version
        sold.append(replace(sold[0], types=sold[0].types[:-1]))
        other = mirror.consolidation_version

    assert same == before
    assert other != before
