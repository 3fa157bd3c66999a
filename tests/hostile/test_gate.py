"""A node whose operator dies while it opens does not stay closed once another leads."""

import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, KWOK_NODE_CLASS, NODE, NODE_POOL
from tests.scenarios.manifests import deployment, node_class, one_of, pod_spec, pool
from tests.scenarios.stage import Stage, staged
from tests.sim.stories import on_virtual_time

DISRUPTED = ("karpenter.sh/disrupted", "NoSchedule")
UNREGISTERED = ("karpenter.sh/unregistered", "NoExecute")


def taints(node: JsonObject) -> list[JsonObject]:
    found: list[JsonObject] = node["spec"].get("taints") or []
    return found


def is_held(node: JsonObject) -> bool:
    """Say whether a node has registered and does not let pods in until they are nominated."""
    is_registered = "karpenter.sh/registered" in node["metadata"]["labels"]
    return is_registered and DISRUPTED in {(each["key"], each["effect"]) for each in taints(node)}


async def leave_nodes_half_open(stage: Stage) -> None:
    """Kill the operator between the two steps in which nodes open for pods of several sizes."""
    small_nodes = one_of("karpenter.kwok.sh/instance-cpu", "4")
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(NODE_POOL, pool(requirements=[small_nodes]))
    stage.apply(DEPLOYMENT, deployment("web", 3))
    stage.apply(DEPLOYMENT, deployment("db", 1, pod=pod_spec("3")))
    await stage.until(lambda: len(stage.nodes) == 2 and all(map(is_held, stage.nodes)))
    await stage.kill()


def take_over_as_karpenter(stage: Stage) -> None:
    """Do to each node what Karpenter 1.15 does before its first look at disruption."""
    for node in stage.nodes:
        kept = [each for each in taints(node) if (each["key"], each["effect"]) != DISRUPTED]
        stage.change(NODE, node["metadata"]["name"], {"spec": {"taints": kept}}, "take over")


@on_virtual_time
async def test_without_an_operator_it_is_closed() -> None:
    async with staged() as stage:
        await leave_nodes_half_open(stage)
        await asyncio.sleep(600)

        assert [is_held(each) for each in stage.nodes] == [True, True]


@on_virtual_time
async def test_the_next_leader_opens_it() -> None:
    async with staged() as stage:
        await leave_nodes_half_open(stage)
        await asyncio.sleep(60)
        stage.hire()
        await stage.until_running("web", 3)

        assert [taints(each) for each in stage.nodes] == [[], []]


@on_virtual_time
async def test_karpenter_opens_it() -> None:
    async with staged() as stage:
        await leave_nodes_half_open(stage)
        take_over_as_karpenter(stage)
        await stage.until_running("web", 3)

        assert [taints(each) for each in stage.nodes] == [[], []]


@on_virtual_time
async def test_kube_controller_manager_opens_a_node_that_is_not_held() -> None:
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(DEPLOYMENT, deployment("web", 3))
        await stage.until(
            lambda: any(
                "karpenter.sh/registered" in each["metadata"]["labels"] for each in stage.nodes
            )
        )
        await stage.kill()
        await stage.until_running("web", 3)

        assert [taints(each) for each in stage.nodes] == [[]]


@pytest.mark.parametrize("value", ["1772452740000", ""])
@on_virtual_time
async def test_the_gate_of_an_earlier_version_goes_from_a_node_in_use(value: str) -> None:
    relic = {"key": UNREGISTERED[0], "effect": "NoSchedule", "value": value}
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(DEPLOYMENT, deployment("web", 3))
        await stage.until_running("web", 3)
        await stage.kill()
        for name in stage.names(NODE):
            stage.change(NODE, name, {"spec": {"taints": [relic]}}, "leave a gate behind")
        stage.hire()
        await asyncio.sleep(10)

        assert [taints(each) for each in stage.nodes] == [[]]
