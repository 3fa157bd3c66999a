"""CapacityBuffers: how soon their room is there, there again, and given up."""

import asyncio
from collections.abc import Callable

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    CAPACITY_BUFFER,
    DEPLOYMENT,
    KWOK_NODE_CLASS,
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    POD_TEMPLATE,
)
from karpy.model.settings import Gates, Options
from tests.scenarios.ledger import Ledger
from tests.scenarios.manifests import deployment, node_class, pod_spec, pool
from tests.scenarios.stage import Stage, staged
from tests.sim.stories import on_virtual_time

OPTIONS = Options(gates=Gates(capacity_buffer=True))


def buffer(replicas: int) -> JsonObject:
    return {
        "metadata": {"name": "room", "namespace": "default"},
        "spec": {"podTemplateRef": {"name": "room"}, "replicas": replicas},
    }


def furnish(stage: Stage, *, replicas: int = 2) -> None:
    """Ask for room for some pods of three CPUs, on nodes of four."""
    small = {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}
    disruption = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(NODE_POOL, pool(requirements=[small], disruption=disruption))
    template = {"metadata": {"labels": {"app": "room"}}, "spec": pod_spec("3")}
    stage.apply(
        POD_TEMPLATE,
        {"metadata": {"name": "room", "namespace": "default"}, "template": template},
    )
    stage.apply(CAPACITY_BUFFER, buffer(replicas))


def provisioning(stage: Stage) -> str:
    """Return the reason that the buffer gives for whether its room is there."""
    found = stage.store.get(CAPACITY_BUFFER, "room", "default").get("status") or {}
    reasons = {each["type"]: each["reason"] for each in found.get("conditions") or ()}
    return str(reasons.get("Provisioning", ""))


def is_there(stage: Stage) -> bool:
    return provisioning(stage) == "FitsExistingCapacity"


async def seconds_until(stage: Stage, holds: Callable[[], bool]) -> float:
    """Wait until something holds; return how long that took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await stage.until(holds)
    return loop.time() - began


@on_virtual_time
async def test_room_is_there_a_moment_after_its_nodes_are() -> None:
    async with staged(options=OPTIONS) as stage:
        furnish(stage)
        took = await seconds_until(stage, lambda: is_there(stage))

        assert len(stage.nodes) == 2
        assert took < 10


@on_virtual_time
async def test_room_that_pods_took_is_there_again_at_once() -> None:
    async with staged(options=OPTIONS) as stage:
        furnish(stage)
        await stage.until(lambda: is_there(stage))
        await asyncio.sleep(60)
        stage.apply(DEPLOYMENT, deployment("web", 2, pod=pod_spec("3")))
        lost = await seconds_until(stage, lambda: not is_there(stage))
        took = await seconds_until(stage, lambda: is_there(stage))

        assert len(stage.nodes) == 4
        assert lost < 5
        assert took < 10


@on_virtual_time
async def test_room_on_a_node_that_is_deleted_is_there_again_at_once() -> None:
    async with staged(options=OPTIONS) as stage:
        furnish(stage)
        await stage.until(lambda: is_there(stage))
        await asyncio.sleep(60)
        stage.delete(NODE_CLAIM, stage.names(NODE_CLAIM)[0])
        lost = await seconds_until(stage, lambda: not is_there(stage))
        took = await seconds_until(stage, lambda: is_there(stage))
        await stage.until(lambda: len(stage.nodes) == 2)

        assert lost < 5
        assert took < 10


@on_virtual_time
async def test_room_stays_while_the_nodes_that_have_it_are_replaced() -> None:
    async with staged(options=OPTIONS) as stage:
        furnish(stage)
        await stage.until(lambda: is_there(stage))
        await asyncio.sleep(60)
        labels = {"spec": {"template": {"metadata": {"labels": {"team": "shop"}}}}}
        stage.change(NODE_POOL, "default", labels, "label its nodes")
        lost: list[str] = []

        def are_replaced() -> bool:
            if not is_there(stage):
                lost.append(provisioning(stage))
            labels = [each["metadata"]["labels"] for each in stage.nodes]
            return [each.get("team") for each in labels] == ["shop"] * 2

        await stage.until(are_replaced)

        assert lost == []
        assert stage.voice.counted("nodeclaims_created_total", reason="drifted") == 2


@on_virtual_time
async def test_room_that_a_limit_denies_is_there_once_pods_leave_some() -> None:
    async with staged(options=OPTIONS) as stage:
        furnish(stage, replicas=0)
        limits = {"spec": {"limits": {"cpu": "8"}}}
        stage.change(NODE_POOL, "default", limits, "two nodes at most")
        stage.apply(DEPLOYMENT, deployment("web", 2, pod=pod_spec("3")))
        await stage.until_running("web", 2)
        stage.change(CAPACITY_BUFFER, "room", {"spec": {"replicas": 1}}, "ask for room")
        await stage.until(lambda: provisioning(stage) == "RequiresNewCapacity")
        await asyncio.sleep(60)
        stage.scale("web", 1)
        took = await seconds_until(stage, lambda: is_there(stage))

        assert len(stage.nodes) == 2
        assert took < 10


@on_virtual_time
async def test_nodes_that_kept_room_go_soon_after_their_buffer() -> None:
    async with staged(options=OPTIONS) as stage:
        furnish(stage)
        await stage.until(lambda: is_there(stage))
        await asyncio.sleep(600)
        kept = len(stage.names(NODE))
        stage.delete(CAPACITY_BUFFER, "room")
        took = await seconds_until(stage, lambda: not stage.nodes)

        assert kept == 2
        # A pass within ten seconds, the validation after fifteen, and the drains.
        assert took < 40


@on_virtual_time
async def test_pods_beside_the_room_of_a_buffer_are_not_moved_for_ever() -> None:
    """Kube-scheduler would put the small pods on the emptiest node, which keeps the room."""
    async with staged(options=OPTIONS) as stage:
        furnish(stage, replicas=0)
        stage.apply(DEPLOYMENT, deployment("small", 2, pod=pod_spec("500m")))
        await stage.until_running("small", 2)
        stage.change(CAPACITY_BUFFER, "room", {"spec": {"replicas": 1}}, "ask for room")
        await stage.until(lambda: is_there(stage))
        stage.apply(DEPLOYMENT, deployment("large", 1, pod=pod_spec("2500m")))
        await stage.until_running("large", 1)
        await asyncio.sleep(600)
        ledger = Ledger(stage)
        await asyncio.sleep(12 * 3600)

        assert is_there(stage)
        assert ledger.names("created") == []


@on_virtual_time
async def test_a_satisfied_buffer_causes_at_most_two_decisions_per_minute() -> None:
    async with staged(options=OPTIONS) as stage:
        furnish(stage)
        await stage.until(lambda: is_there(stage))
        await asyncio.sleep(60)
        before = decisions(stage)
        await asyncio.sleep(600)

        assert decisions(stage) - before <= 20


def decisions(stage: Stage) -> int:
    """Count the decisions about pods so far."""
    metric = "scheduler_scheduling_duration_seconds"
    return sum(each.metric == metric for each in stage.voice.counts)
