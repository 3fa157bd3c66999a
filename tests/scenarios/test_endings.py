"""Nodes that go: for whatever cause, and whatever stands in the way."""

import asyncio

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.model.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    KWOK_NODE_CLASS,
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    POD,
    Kind,
)
from tests.scenarios.manifests import budget, deployment, node_class, pod_spec, pool
from tests.scenarios.stage import Stage, staged
from tests.sim.stories import on_virtual_time


async def furnish(stage: Stage, *, replicas: int = 3, **template: object) -> None:
    """Have one node with the pods of a Deployment on it."""
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(NODE_POOL, pool(template=dict(template)))
    stage.apply(DEPLOYMENT, deployment("web", replicas))
    await stage.until_running("web", replicas)


@pytest.mark.parametrize("kind", [NODE, NODE_CLAIM], ids=str)
@on_virtual_time
async def test_what_is_deleted_is_drained_and_replaced(
    kind: Kind, snapshot: SnapshotAssertion
) -> None:
    async with staged() as stage:
        await furnish(stage)
        old = stage.names(kind)
        stage.delete(kind, old[0])
        await stage.until(lambda: len(stage.nodes) == 1 and stage.names(kind) != old)
        await stage.until_running("web", 3)

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_pool_that_is_deleted_takes_its_nodes_along(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        await furnish(stage)
        stage.delete(NODE_POOL, "default")
        await stage.until_empty()
        phases = {each["status"]["phase"] for each in stage.pods("web")}

    assert phases == {"Pending"}
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_budget_lets_pods_go_one_by_one(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        await furnish(stage)
        stage.apply(DISRUPTION_BUDGET, budget("web", maxUnavailable=1))
        await asyncio.sleep(1)
        old = stage.names(NODE)
        stage.delete(NODE, old[0])
        await stage.until(lambda: len(stage.nodes) == 1 and stage.names(NODE) != old)
        await stage.until_running("web", 3)

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_drain_that_a_budget_blocks_goes_on_when_it_may(
    snapshot: SnapshotAssertion,
) -> None:
    async with staged() as stage:
        await furnish(stage, replicas=2)
        stage.apply(DISRUPTION_BUDGET, budget("web", maxUnavailable=0))
        await asyncio.sleep(1)
        old = stage.names(NODE)
        stage.delete(NODE, old[0])
        await asyncio.sleep(120)
        kept = stage.names(NODE)
        stage.delete(DISRUPTION_BUDGET, "web")
        await stage.until(lambda: old[0] not in stage.names(NODE))
        await stage.until_running("web", 2)

    assert old[0] in kept
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_grace_period_ends_every_drain(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        await furnish(stage, replicas=2, terminationGracePeriod="5m")
        stage.apply(DISRUPTION_BUDGET, budget("web", maxUnavailable=0))
        await asyncio.sleep(1)
        old = stage.names(NODE)
        stage.delete(NODE, old[0])
        await stage.until(lambda: old[0] not in stage.names(NODE))
        await stage.until_running("web", 2)

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_pod_that_a_budget_holds_has_all_its_time_to_stop_in_the_end() -> None:
    slow = {**pod_spec(), "terminationGracePeriodSeconds": 60}
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool(template={"terminationGracePeriod": "10m"}))
        stage.apply(DEPLOYMENT, deployment("web", 1, pod=slow))
        await stage.until_running("web", 1)
        stage.apply(DISRUPTION_BUDGET, budget("web", maxUnavailable=0))
        await asyncio.sleep(1)
        (old,) = (each["metadata"]["uid"] for each in stage.pods("web"))
        stage.delete(NODE, stage.names(NODE)[0])

        def going() -> list[int]:
            return [
                each["metadata"]["deletionGracePeriodSeconds"]
                for each in stage.pods("web")
                if each["metadata"]["uid"] == old and "deletionTimestamp" in each["metadata"]
            ]

        await stage.until(lambda: bool(going()))

        assert going()[0] >= 59


@on_virtual_time
async def test_pods_get_the_time_they_ask_for(snapshot: SnapshotAssertion) -> None:
    slow = {**pod_spec(), "terminationGracePeriodSeconds": 60}
    template = {"sim.karpy.dev/stop-seconds": "45"}
    made = deployment("web", 1, pod=slow)
    made["spec"]["template"]["metadata"]["annotations"] = template
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(DEPLOYMENT, made)
        await stage.until_running("web", 1)
        old = stage.names(NODE)
        stage.delete(NODE_CLAIM, stage.names(NODE_CLAIM)[0])
        await stage.until(lambda: old[0] not in stage.names(NODE))
        await stage.until_running("web", 1)

    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_no_node_is_launched_for_a_pod_as_long_as_it_forbids_its_eviction() -> None:
    forbids = {"karpenter.sh/do-not-disrupt": "true"}
    made = deployment("web", 1)
    made["spec"]["template"]["metadata"]["annotations"] = forbids
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(DEPLOYMENT, made)
        await stage.until_running("web", 1)
        old = stage.names(NODE_CLAIM)
        stage.delete(NODE_CLAIM, old[0])
        await asyncio.sleep(3600)
        held = stage.names(NODE_CLAIM)
        bare = {"metadata": {"annotations": dict.fromkeys(forbids)}}
        stage.change(POD, stage.pods("web")[0]["metadata"]["name"], bare, "it may go")
        await stage.until(lambda: old[0] not in stage.names(NODE_CLAIM))
        await stage.until_running("web", 1)

    assert held == old
