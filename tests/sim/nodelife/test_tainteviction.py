import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.constraints import Taint
from karpy.model.kinds import NODE, POD
from karpy.ports.objects import Patch, PatchType
from karpy.sim.nodelife.tainteviction import patience
from karpy.sim.store.conditions import condition_of
from karpy.sim.world import World
from tests.sim.stories import bare_world, bind, get_pod, on_virtual_time, phase, pod

UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
TAINTS = (Taint("a", "NoExecute"), Taint("b", "NoExecute", "x"))


def _tolerates(key: str, seconds: int | None = None) -> JsonObject:
    made = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return made if seconds is None else {**made, "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0.0),
        ([_tolerates("a")], 0.0),
        ([_tolerates("a"), _tolerates("b")], None),
        ([_tolerates("a", 30), _tolerates("b")], 30.0),
        ([_tolerates("a", 30), _tolerates("b", 20)], 20.0),
        ([_tolerates("a", -5), _tolerates("b")], 0.0),
        ([{"operator": "Exists"}], None),
        ([_tolerates("a"), {"key": "b", "value": "x", "tolerationSeconds": 7}], 7.0),
        ([_tolerates("a"), {"key": "b", "value": "other"}], 0.0),
    ],
)
def test_the_shortest_toleration_counts(
    tolerations: list[JsonObject], seconds: float | None
) -> None:
    assert patience({"tolerations": tolerations}, TAINTS) == seconds


def _taint(world: World, *taints: JsonObject) -> None:
    world.store.patch(NODE, "n1", Patch(PatchType.MERGE, {"spec": {"taints": list(taints)}}))


@on_virtual_time
async def test_a_pod_leaves_a_lost_node_after_five_minutes() -> None:
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(10)

        world.kubelets.lose("n1")
        await asyncio.sleep(50 + 299)
        before = get_pod(world, "web")["metadata"].get("deletionTimestamp")
        await asyncio.sleep(2)

        found = get_pod(world, "web")
        target = condition_of(found, "DisruptionTarget")
        assert before is None
        assert "deletionTimestamp" in found["metadata"]
        assert target is not None
        assert target["reason"] == "DeletionByTaintManager"


@on_virtual_time
async def test_a_pod_stays_if_its_node_recovers_in_time() -> None:
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(10)

        world.kubelets.lose("n1")
        await asyncio.sleep(300)
        world.kubelets.recover("n1")
        await asyncio.sleep(3600)

        assert phase(world, "web") == "Running"


@on_virtual_time
async def test_a_pod_that_does_not_tolerate_a_taint_goes_at_once() -> None:
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web"))
        world.store.create(POD, pod("daemon", tolerations=[{"operator": "Exists"}]))
        bind(world.store, "web", "n1")
        bind(world.store, "daemon", "n1")
        await asyncio.sleep(10)

        _taint(world, UNREGISTERED)
        await asyncio.sleep(5)

        assert (phase(world, "web"), phase(world, "daemon")) == ("gone", "Running")


@on_virtual_time
async def test_a_pod_that_comes_to_a_tainted_node_goes_too() -> None:
    with bare_world() as world:
        world.add_node("n1", taints=[UNREGISTERED])
        await asyncio.sleep(10)

        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(5)

        assert phase(world, "web") == "gone"


@on_virtual_time
async def test_another_taint_does_not_start_the_time_anew() -> None:
    made = pod("web", tolerations=[_tolerates("a", 100), _tolerates("b", 100)])
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, made)
        bind(world.store, "web", "n1")
        await asyncio.sleep(10)

        _taint(world, {"key": "a", "effect": "NoExecute"})
        await asyncio.sleep(90)
        _taint(world, {"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"})
        await asyncio.sleep(15)

        assert phase(world, "web") == "gone"


@on_virtual_time
async def test_time_starts_anew_once_all_taints_were_gone() -> None:
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web", tolerations=[_tolerates("a", 100)]))
        bind(world.store, "web", "n1")
        await asyncio.sleep(10)

        _taint(world, {"key": "a", "effect": "NoExecute"})
        await asyncio.sleep(90)
        _taint(world)
        await asyncio.sleep(1)
        _taint(world, {"key": "a", "effect": "NoExecute"})
        await asyncio.sleep(90)

        assert phase(world, "web") == "Running"
