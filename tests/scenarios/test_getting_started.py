"""The first hour with Karpy: pods come, nodes come; pods go, nodes go."""

import asyncio

from syrupy.assertion import SnapshotAssertion

from karpy.model.kinds import DEPLOYMENT, KWOK_NODE_CLASS, NODE, NODE_POOL
from karpy.model.settings import Options, PodNomination
from tests.scenarios.manifests import deployment, node_class, pod_spec, pool
from tests.scenarios.stage import staged
from tests.sim.stories import on_virtual_time


@on_virtual_time
async def test_pods_that_wait_get_nodes(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(DEPLOYMENT, deployment())
        await asyncio.sleep(5)
        stage.scale("inflate", 5)
        await stage.until_running("inflate", 5)
        stage.scale("inflate", 20)
        await stage.until_running("inflate", 20)

    assert stage.timeline.text() == snapshot
    assert stage.voice.failures == []


@on_virtual_time
async def test_nodes_that_no_pod_needs_are_deleted(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool(disruption={"consolidateAfter": "30s"}))
        stage.apply(DEPLOYMENT, deployment(replicas=5))
        await stage.until_running("inflate", 5)
        stage.scale("inflate", 0)
        await stage.until_empty()

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_pool_made_later_helps_pods_that_wait(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        stage.apply(DEPLOYMENT, deployment(replicas=2))
        await asyncio.sleep(30)
        stage.timeline.note("create the NodePool")
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        await stage.until_running("inflate", 2)

    assert stage.timeline.text() == snapshot


async def _nodes_for_two_sizes(options: Options) -> int:
    """Have large and small pods come at once; return how many nodes it took."""
    async with staged(options=options) as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        up_to_16 = {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["17"]}
        stage.apply(NODE_POOL, pool(requirements=[up_to_16]))
        stage.apply(DEPLOYMENT, deployment("large", 40, pod=pod_spec("3800m", "7500Mi")))
        stage.apply(DEPLOYMENT, deployment("small", 48, pod=pod_spec("950m", "3900Mi")))
        await stage.until_running("large", 40)
        await stage.until_running("small", 48)
        return len(stage.store.list(NODE))


@on_virtual_time
async def test_pods_get_the_places_that_were_made_for_them() -> None:
    nodes = await _nodes_for_two_sizes(Options())

    assert nodes == 13


@on_virtual_time
async def test_without_nominations_more_nodes_are_needed() -> None:
    untold = await _nodes_for_two_sizes(Options(nominate_pods=PodNomination.NEVER))

    assert untold > 13
