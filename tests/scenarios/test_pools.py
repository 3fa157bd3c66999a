"""NodePools that keep a fixed number of nodes, and pools that are changed."""

import asyncio

from syrupy.assertion import SnapshotAssertion

from karpy.model.kinds import (
    CAPACITY_BUFFER,
    DEPLOYMENT,
    KWOK_NODE_CLASS,
    NODE_CLAIM,
    NODE_POOL,
)
from karpy.model.labels import HOSTNAME
from karpy.model.settings import Gates, Options
from tests.scenarios.manifests import deployment, node_class, pod_spec, pool
from tests.scenarios.stage import staged
from tests.sim.stories import on_virtual_time

STATIC = Options(gates=Gates(static_capacity=True))
BUFFERS = Options(gates=Gates(capacity_buffer=True))


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
async def test_a_budget_lets_empty_nodes_go_one_by_one(snapshot: SnapshotAssertion) -> None:
    disruption = {"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]}
    apart = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "inflate"}}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool(disruption=disruption))
        stage.apply(DEPLOYMENT, deployment(replicas=3, pod=pod_spec(affinity=alone)))
        await stage.until_running("inflate", 3)
        stage.scale("inflate", 0)
        await stage.until_empty()

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_buffer_keeps_room_for_pods_to_come(snapshot: SnapshotAssertion) -> None:
    like = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    buffer = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scalableRef": like, "replicas": 3},
    }
    async with staged(options=BUFFERS) as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool(disruption={"consolidateAfter": "0s"}))
        stage.apply(DEPLOYMENT, deployment("web", 1))
        stage.apply(CAPACITY_BUFFER, buffer)
        await stage.until_running("web", 1)
        await asyncio.sleep(60)
        stage.scale("web", 4)
        await stage.until_running("web", 4)

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_changed_template_is_a_condition_of_its_claims(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(DEPLOYMENT, deployment(replicas=3))
        await stage.until_running("inflate", 3)
        labels = {"spec": {"template": {"metadata": {"labels": {"team": "shop"}}}}}
        stage.change(NODE_POOL, "default", labels, "label its nodes")
        await asyncio.sleep(60)

    assert stage.timeline.text() == snapshot
