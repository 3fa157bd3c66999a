"""A scale-in with the gate PodDeletionCostManagement, and without it."""

import asyncio
from collections import Counter

from karpy.model.kinds import DEPLOYMENT, KWOK_NODE_CLASS, NODE, NODE_POOL, POD
from karpy.model.labels import POD_DELETION_COST
from karpy.model.settings import Gates, Options
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from karpy.wiring.resident import BRISK, operating
from tests.scenarios.manifests import deployment, node_class, one_of, pod_spec, pool
from tests.wiring.test_operator import Heard

SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")
POLICY = {
    "consolidationPolicy": "WhenEmpty",
    "consolidateAfter": "0s",
    "budgets": [{"nodes": "100%"}],
}


async def scale_in(*, has_gate: bool) -> tuple[Counter[str], dict[str, str], int]:
    """
    Have nine pods on three nodes, six of them a few minutes later.

    Returns how many pods each node has left, what these cost, and how many nodes there are.
    """
    world = World(BRISK)
    world.start()
    options = Options(gates=Gates(pod_deletion_cost_management=has_gate))
    heard = Heard()
    async with operating(world, notices=heard, voice=heard, options=options):
        world.store.create(KWOK_NODE_CLASS, node_class())
        world.store.create(NODE_POOL, pool(requirements=[SMALL], disruption=POLICY))
        world.store.create(DEPLOYMENT, deployment(replicas=9, pod=pod_spec("1100m")))
        await asyncio.sleep(300)
        patch = Patch(PatchType.MERGE, {"spec": {"replicas": 6}})
        world.store.patch(DEPLOYMENT, "inflate", patch, namespace="default")
        await asyncio.sleep(300)
        pods = world.store.list(POD)
        nodes = len(world.store.list(NODE))
    world.stop()
    left = Counter(str(each["spec"]["nodeName"]) for each in pods)
    written = [
        (each["metadata"].get("annotations") or {}, each["spec"]["nodeName"]) for each in pods
    ]
    costs = {
        str(node): said[POD_DELETION_COST] for said, node in written if POD_DELETION_COST in said
    }
    return left, costs, nodes


def test_a_scale_in_empties_the_node_that_goes_next() -> None:
    left, costs, nodes = run(scale_in(has_gate=True))

    assert sorted(left.values()) == [3, 3]
    assert sorted(costs.values()) == ["-1", "-2"]
    assert nodes == 2


def test_without_the_gate_no_pod_is_marked() -> None:
    _, costs, nodes = run(scale_in(has_gate=False))

    assert costs == {}
    assert nodes == 3
