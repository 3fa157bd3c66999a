"""Scale, eviction, binding."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Conflict, NotFound, Throttled
from karpy.model.kinds import DEPLOYMENT, DISRUPTION_BUDGET, NODE, NODE_POOL, POD
from karpy.ports.objects import Patch, PatchType
from tests.contract.plain import budget, deployment, node, node_pool, pod
from tests.contract.worlds import World, until


def eviction(world: World, name: str) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": world.namespace},
    }


def binding(world: World, name: str, to: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": world.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": to},
    }


async def running(world: World, name: str, labels: dict[str, str]) -> None:
    """Create a pod with the condition Ready."""
    await world.create(POD, pod(name, labels=labels, nodeName="nowhere"))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await world.objects.patch(
        POD,
        name,
        Patch(PatchType.MERGE, {"status": ready}),
        namespace=world.namespace,
        subresource="status",
    )


async def allowed(world: World, name: str, count: int) -> None:
    """Wait until a budget allows a number of disruptions."""

    async def is_so() -> bool:
        status = (await world.get(DISRUPTION_BUDGET, name)).get("status", {})
        return "observedGeneration" in status and status.get("disruptionsAllowed") == count

    await until(is_so)


async def test_a_deployment_is_scaled(world: World) -> None:
    await world.create(DEPLOYMENT, deployment("a", replicas=0))

    scale = await world.objects.patch(
        DEPLOYMENT,
        "a",
        Patch(PatchType.MERGE, {"spec": {"replicas": 3}}),
        namespace=world.namespace,
        subresource="scale",
    )

    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 3)
    assert scale["status"]["selector"] == "app=a"
    assert (await world.get(DEPLOYMENT, "a"))["spec"]["replicas"] == 3


async def test_a_static_node_pool_is_scaled(world: World) -> None:
    await world.create(NODE_POOL, node_pool(replicas=2))

    await world.objects.patch(
        NODE_POOL,
        "default",
        Patch(PatchType.MERGE, {"spec": {"replicas": 5}}),
        subresource="scale",
    )

    assert (await world.get(NODE_POOL, "default"))["spec"]["replicas"] == 5


async def test_a_pod_without_a_budget_is_evicted(world: World) -> None:
    await running(world, "a", {"app": "a"})

    await world.objects.create(POD, eviction(world, "a"), subresource="eviction")

    going = await world.get(POD, "a")
    assert going["metadata"]["deletionTimestamp"]


async def test_a_budget_protects_its_pods(world: World) -> None:
    await world.create(DISRUPTION_BUDGET, budget("b", "a", minAvailable=1))
    await running(world, "a", {"app": "a"})
    await allowed(world, "b", 0)

    with pytest.raises(Throttled) as raised:
        await world.objects.create(POD, eviction(world, "a"), subresource="eviction")

    assert raised.value.status == 429
    assert "Cannot evict pod as it would violate the pod's disruption budget" in (
        raised.value.message
    )
    assert "deletionTimestamp" not in (await world.get(POD, "a"))["metadata"]


async def test_a_budget_is_spent_by_evictions(world: World) -> None:
    await world.create(DISRUPTION_BUDGET, budget("b", "a", minAvailable=1))
    await running(world, "a1", {"app": "a"})
    await running(world, "a2", {"app": "a"})
    await allowed(world, "b", 1)

    await world.objects.create(POD, eviction(world, "a1"), subresource="eviction")
    with pytest.raises(Throttled):
        await world.objects.create(POD, eviction(world, "a2"), subresource="eviction")

    status = (await world.get(DISRUPTION_BUDGET, "b"))["status"]
    assert status["disruptionsAllowed"] == 0


async def test_a_pod_that_does_not_run_yet_is_not_protected(world: World) -> None:
    await world.create(DISRUPTION_BUDGET, budget("b", "a", minAvailable=1))
    await world.create(POD, pod("a", labels={"app": "a"}))

    await world.objects.create(POD, eviction(world, "a"), subresource="eviction")

    with pytest.raises(NotFound):
        await world.get(POD, "a")


async def test_what_is_not_there_cannot_be_evicted(world: World) -> None:
    with pytest.raises(NotFound):
        await world.objects.create(POD, eviction(world, "a"), subresource="eviction")


async def test_a_pod_is_bound_to_a_node(world: World) -> None:
    await world.create(NODE, node("n1"))
    await world.create(POD, pod("a"))

    await world.objects.create(POD, binding(world, "a", "n1"), subresource="binding")

    bound = await world.get(POD, "a")
    assert bound["spec"]["nodeName"] == "n1"
    assert ("PodScheduled", "True") in {
        (each["type"], each["status"]) for each in bound["status"]["conditions"]
    }


async def test_a_pod_is_bound_once(world: World) -> None:
    await world.create(NODE, node("n1"))
    await world.create(POD, pod("a"))
    await world.objects.create(POD, binding(world, "a", "n1"), subresource="binding")

    with pytest.raises(Conflict) as raised:
        await world.objects.create(POD, binding(world, "a", "n2"), subresource="binding")

    assert "already assigned to node" in raised.value.message
