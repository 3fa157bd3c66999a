"""NodePools that keep a fixed number of nodes, and pools that are changed."""

import asyncio

from syrupy.assertion import SnapshotAssertion

from karpy.model.kinds import DEPLOYMENT, KWOK_NODE_CLASS, NODE_CLAIM, NODE_POOL
from karpy.model.options import Gates, Options
from tests.scenarios.manifests import deployment, node_class, pool
from tests.scenarios.stage import staged
from tests.sim.stories import on_virtual_time

STATIC = Options(gates=Gates(static_capacity=True))


@on_virtual_time
async def test_a_static_pool_keeps_its_number_of_nodes(snapshot: SnapshotAssertion) -> None:
    async with staged(options=STATIC) as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool("fixed", replicas=2))
        await stage.until(lambda: len(stage.nodes) == 2)
        stage.change(NODE_POOL, "fixed", {"spec": {"replicas": 3}}, "have three nodes")
        await stage.until(lambda: len(stage.nodes) == 3)
        stage.delete(NODE_CLAIM, stage.names(NODE_CLAIM)[0])
        await asyncio.sleep(60)
        kept = len(stage.nodes)
        stage.change(NODE_POOL, "fixed", {"spec": {"replicas": 1}}, "have one node")
        await stage.until(lambda: len(stage.nodes) == 1)

    assert kept == 3
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_static_pool_makes_no_node_for_pods(snapshot: SnapshotAssertion) -> None:
    async with staged(options=STATIC) as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool("fixed", replicas=1))
        stage.apply(DEPLOYMENT, deployment("big", 3))
        await asyncio.sleep(60)
        nodes = len(stage.nodes)

    assert nodes == 1
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_changed_template_is_told_on_its_claims(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(DEPLOYMENT, deployment(replicas=3))
        await stage.until_running("inflate", 3)
        labels = {"spec": {"template": {"metadata": {"labels": {"team": "shop"}}}}}
        stage.change(NODE_POOL, "default", labels, "label its nodes")
        await asyncio.sleep(60)

    assert stage.timeline.text() == snapshot
