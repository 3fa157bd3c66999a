"""NodePools as metrics, on virtual time."""

import asyncio

from karpy.adapters.telemetry.metrics import Metrics
from karpy.controllers.nodepools import NodePoolController, NodePoolMetrics
from karpy.errors import CloudUnavailable
from karpy.model.instances import Catalog
from karpy.model.kinds import NODE_CLAIM, NODE_POOL
from karpy.sim.cloud.cloud import SimCloud
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, claim, is_ready, until
from tests.controllers.poolwriters import (
    Loop,
    Scene,
    add_class,
    claim_writers,
    pool,
    running,
    scene_of,
)


def told(metrics: Metrics) -> dict[str, float]:
    """Return what is told of NodePools, by series."""
    lines = metrics.render().decode().splitlines()
    pairs = [each.rsplit(" ", 1) for each in lines if each.startswith("karpenter_nodepools_")]
    return {series: float(value) for series, value in pairs}


def gauges(scene: Scene, metrics: Metrics) -> NodePoolMetrics:
    return NodePoolMetrics(scene.context, metrics, scene.classes.is_our_pool)


COST = 'karpenter_nodepools_cost_total{nodepool="web"}'
LIMIT = 'karpenter_nodepools_limit{nodepool="web",resource_type="cpu"}'
USAGE = 'karpenter_nodepools_usage{nodepool="web",resource_type="cpu"}'


def test_a_pool_is_shown_as_long_as_it_is_there() -> None:
    metrics = Metrics()

    async def story() -> list[dict[str, float]]:
        world = World()
        world.start()
        add_class(world)
        shown = []
        async with scene_of(world, Heard()) as scene:
            pools = NodePoolController(scene.context, scene.classes, scene.nodes)
            loops: tuple[Loop, ...] = (pools, gauges(scene, metrics), *claim_writers(scene.context))
            async with running(*loops):
                world.store.create(NODE_POOL, pool(limits={"cpu": "10"}))
                world.store.create(NODE_CLAIM, claim())
                await until(lambda: is_ready(world))
                await asyncio.sleep(20)
                shown.append(told(metrics))
                world.store.delete(NODE_POOL, "web")
                await asyncio.sleep(20)
                shown.append(told(metrics))
        world.stop()
        return shown

    before, after = run(story())

    assert (before[LIMIT], before[USAGE]) == (10.0, 4.0)
    assert 0.1 < before[COST] < 0.2
    assert after == {}


class MuteCloud(SimCloud):
    """A cloud that sometimes does not tell its prices."""

    is_mute = False

    def catalog(self) -> Catalog:
        if self.is_mute:
            raise CloudUnavailable(call="list prices", problem="no route")
        return super().catalog()


def test_the_rest_is_shown_though_prices_cannot_be_asked_for() -> None:
    metrics, heard = Metrics(), Heard()

    async def story() -> list[dict[str, float]]:
        world = World()
        world.start()
        add_class(world)
        cloud = MuteCloud(world.cloud.market, world.clock, world.kubelets)
        world.cloud = cloud
        shown = []
        async with scene_of(world, heard) as scene:
            looker = gauges(scene, metrics)
            async with running(*claim_writers(scene.context)):
                world.store.create(NODE_POOL, pool(limits={"cpu": "10"}))
                world.store.create(NODE_CLAIM, claim())
                await until(lambda: is_ready(world))
                cloud.is_mute = True
                async with running(looker):
                    await asyncio.sleep(20)
                    shown.append(told(metrics))
                    cloud.is_mute = False
                    await asyncio.sleep(20)
                    shown.append(told(metrics))
        world.stop()
        return shown

    before, after = run(story())

    assert (before[LIMIT], before[COST]) == (10.0, 0.0)
    assert after[COST] > 0.1
    assert {type(each) for each in heard.failures} == {CloudUnavailable}
