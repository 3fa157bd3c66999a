"""Nodes and NodeClaims that are deleted end with their pods and their machine."""

import asyncio
from collections.abc import Callable

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    DISRUPTION_BUDGET,
    NODE,
    NODE_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    Kind,
)
from karpy.sim.faults import Faults, InjectedFault
from karpy.sim.faultyports import FaultyFeed
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import (
    Heard,
    claim,
    conditions,
    is_empty,
    is_ready,
    node_of,
    operator,
    until,
)

PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}


def pod(name: str, node: str, **meta: object) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}, **meta},
        "spec": {"containers": [container], "nodeName": node},
    }


def budget(name: str, least: int) -> JsonObject:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}},
    }


def message(world: World, type_: str) -> str:
    """Return what a condition of the claim says."""
    told = world.store.get(NODE_CLAIM, "web-1")["status"]["conditions"]
    return str(next(each["message"] for each in told if each["type"] == type_))


def pods_in(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.store.list(POD)]


async def make_node(world: World, **spec: object) -> str:
    """Have a claim whose node is ready for pods; return the node's name."""
    world.store.create(NODE_CLAIM, claim("web-1", **spec))
    await until(lambda: is_ready(world))
    return node_of(world)


async def has_no_machine(world: World) -> bool:
    return not await world.cloud.machines()


def the_claim(world: World) -> tuple[Kind, str]:
    del world
    return NODE_CLAIM, "web-1"


def the_node(world: World) -> tuple[Kind, str]:
    return NODE, node_of(world)


@pytest.mark.parametrize("which", [the_claim, the_node])
def test_deleting_either_of_them_drains_the_node_and_ends_both(
    which: Callable[[World], tuple[Kind, str]],
) -> None:
    heard = Heard()

    async def story() -> tuple[list[str], bool, bool]:
        world = World()
        world.start()
        async with operator(world, heard):
            node = await make_node(world)
            world.store.create(POD, pod("a", node))
            world.store.create(POD, pod("b", node))
            await asyncio.sleep(5)
            world.store.delete(*which(world))
            await asyncio.sleep(4)
            left = pods_in(world)
            await until(lambda: is_empty(world))
            is_gone = await has_no_machine(world)
        world.stop()
        return left, is_gone, is_empty(world)

    left, is_gone, is_all_gone = run(story())

    assert left == []
    assert is_gone
    assert is_all_gone
    assert heard.counted("pods_drained_total") == 2
    assert heard.counted("nodes_terminated_total") == 1
    assert heard.counted("nodeclaims_terminated_total") == 1
    assert heard.failures == []


def test_a_node_that_goes_takes_no_new_pods() -> None:
    async def story() -> JsonObject:
        world = World()
        world.start()
        async with operator(world, Heard()):
            node = await make_node(world)
            world.store.create(POD, pod("a", node, annotations=PROTECTED))
            world.store.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(3)
            found = world.store.get(NODE, node)
        world.stop()
        return found

    node = run(story())

    assert node["spec"]["taints"] == [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
    balancers = "node.kubernetes.io/exclude-from-external-load-balancers"
    assert node["metadata"]["labels"][balancers] == "karpenter"


def test_a_budget_holds_a_node_and_the_claim_says_which_pod_it_is() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], str, bool]:
        world = World()
        world.start()
        async with operator(world, heard):
            node = await make_node(world)
            world.store.create(DISRUPTION_BUDGET, budget("all", 2))
            world.store.create(POD, pod("a", node))
            world.store.create(POD, pod("b", node))
            await asyncio.sleep(10)
            world.store.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(600)
            left, why = pods_in(world), message(world, "Drained")
            world.store.delete(DISRUPTION_BUDGET, "all", namespace="default")
            await until(lambda: is_empty(world))
        world.stop()
        return left, why, is_empty(world)

    left, why, is_gone = run(story())

    assert left == ["a", "b"]
    assert why == (
        "Draining, blocked by default/a (evicting pod violates a PDB), "
        "default/b (evicting pod violates a PDB)"
    )
    assert is_gone
    assert any("blocked by default/a" in each for each in heard.told("FailedDraining"))
    assert heard.failures == []


def test_pods_go_one_by_one_as_their_budget_allows() -> None:
    async def story() -> tuple[int, bool]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            node = await make_node(world)
            world.store.create(DISRUPTION_BUDGET, budget("all", 1))
            world.store.create(POD, pod("a", node))
            world.store.create(POD, pod("b", node))
            await asyncio.sleep(10)
            world.store.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(60)
            left = len(pods_in(world))
            world.store.delete(DISRUPTION_BUDGET, "all", namespace="default")
            await until(lambda: is_empty(world))
        world.stop()
        return left, is_empty(world)

    assert run(story()) == (1, True)


def test_two_budgets_for_one_pod_cause_an_event() -> None:
    async def story() -> str:
        world = World()
        world.start()
        async with operator(world, Heard()):
            node = await make_node(world)
            world.store.create(DISRUPTION_BUDGET, budget("one", 0))
            world.store.create(DISRUPTION_BUDGET, budget("two", 0))
            world.store.create(POD, pod("a", node))
            await asyncio.sleep(10)
            world.store.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(30)
            why = message(world, "Drained")
        world.stop()
        return why

    assert run(story()) == (
        "Draining, blocked by default/a (eviction does not support multiple PDBs)"
    )


def test_a_pod_that_must_not_be_disturbed_holds_its_node_until_time_is_up() -> None:
    heard = Heard()

    async def story() -> tuple[str, list[str], list[str], bool]:
        world = World()
        world.start()
        async with operator(world, heard):
            node = await make_node(world, terminationGracePeriod="10m")
            world.store.create(POD, pod("a", node, annotations=PROTECTED))
            await asyncio.sleep(5)
            world.store.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(9 * 60)
            why, before = message(world, "Drained"), pods_in(world)
            await asyncio.sleep(60)
            after = pods_in(world)
            await until(lambda: is_empty(world))
        world.stop()
        return why, before, after, is_empty(world)

    why, before, after, is_gone = run(story())

    assert why == "Draining, blocked by default/a (karpenter.sh/do-not-disrupt)"
    assert before == ["a"]
    assert after == []
    assert is_gone
    (note,) = heard.told("Disrupted")
    assert note.startswith("Deleting the pod because its node ends by")
    assert heard.told("TerminationGracePeriodExpiring")


def test_without_a_grace_period_a_protected_pod_holds_its_node_for_ever() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            node = await make_node(world)
            world.store.create(POD, pod("a", node, annotations=PROTECTED))
            await asyncio.sleep(5)
            world.store.delete(NODE, node)
            await asyncio.sleep(3600)
            left = pods_in(world)
        world.stop()
        return left

    assert run(story()) == ["a"]


def test_a_node_waits_for_its_volumes() -> None:
    async def story() -> tuple[dict[str, str], bool]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            node = await make_node(world)
            attachment = {
                "metadata": {"name": "va-1"},
                "spec": {
                    "attacher": "ebs.csi.aws.com",
                    "nodeName": node,
                    "source": {"persistentVolumeName": "pv-1"},
                },
            }
            world.store.create(VOLUME_ATTACHMENT, attachment)
            world.store.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(120)
            told = conditions(world)
            world.store.delete(VOLUME_ATTACHMENT, "va-1")
            await until(lambda: is_empty(world))
        world.stop()
        return told, is_empty(world)

    told, is_gone = run(story())

    assert (told["Drained"], told["VolumesDetached"]) == ("True", "Unknown")
    assert is_gone


def test_a_node_whose_machine_is_gone_is_let_go_with_its_pods() -> None:
    async def story() -> bool:
        world = World()
        world.start()
        async with operator(world, Heard()):
            node = await make_node(world)
            world.store.create(POD, pod("a", node, annotations=PROTECTED))
            await asyncio.sleep(5)
            world.cloud.kill(world.store.get(NODE, node)["spec"]["providerID"])
            await until(lambda: is_unready(world, node))
            world.store.delete(NODE, node)
            await until(lambda: is_empty(world))
        world.stop()
        return is_empty(world)

    assert run(story())


def is_unready(world: World, node: str) -> bool:
    told = world.store.get(NODE, node)["status"]["conditions"]
    return not any(each["type"] == "Ready" and each["status"] == "True" for each in told)


def test_a_node_without_a_claim_is_not_touched() -> None:
    async def story() -> list[JsonObject]:
        world = World()
        world.start()
        world.add_node("theirs")
        async with operator(world, Heard()):
            await asyncio.sleep(60)
            found = world.store.list(NODE)
        world.stop()
        return found

    (node,) = run(story())

    assert "finalizers" not in node["metadata"]


def test_a_pod_that_no_watch_has_delivered_is_evicted() -> None:
    """The cache may lag, and the termination of a machine cannot be undone."""
    heard = Heard()

    async def story() -> list[str]:
        world = World(parts=())
        world.start()
        late = FaultyFeed(
            world.objects, Faults(InjectedFault(None, ("event",), POD, delay_seconds=60))
        )
        async with operator(world, heard, feed=late):
            node = await make_node(world)
            world.store.create(POD, pod("web", node))
            world.store.delete(NODE, node)
            await until(lambda: is_empty(world))
        world.stop()
        return heard.told("Evicted")

    assert run(story()) == ["Evicted pod: Forceful Termination"]
