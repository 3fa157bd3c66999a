import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from karpy.errors import Invalid
from karpy.model.kinds import CUSTOM, CUSTOM_RESOURCE, DEPLOYMENT, JOB, NODE, NODE_POOL, POD, Kind
from karpy.ports.objects import Patch, PatchType
from karpy.sim.cloud.terms import Terms
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.store.conditions import is_true
from karpy.sim.world import World, WorldSettings
from tests.sim.digests import digest_of
from tests.sim.stories import (
    condition,
    deployment,
    launch_spec,
    living,
    on_virtual_time,
    phase,
    pod,
)
from tests.tidy.repository import ROOT

FAST = WorldSettings(timing=KubeletTiming(speed=200, ready_seconds=1))


def _ready_pods(world: World) -> int:
    return sum(is_true(each, "Ready") for each in world.store.list(POD))


@on_virtual_time
async def test_a_deployment_runs_on_the_nodes_there_are() -> None:
    with living(World()) as world:
        world.add_node("n1", cpu="2")
        world.add_node("n2", cpu="2")
        world.store.create(DEPLOYMENT, deployment(10))

        await asyncio.sleep(60)

        assert _ready_pods(world) == 10
        assert {each["spec"]["nodeName"] for each in world.store.list(POD)} == {"n1", "n2"}
        assert world.store.get(DEPLOYMENT, "web", "default")["status"]["readyReplicas"] == 10


@on_virtual_time
async def test_a_rollout_replaces_every_pod() -> None:
    patch = Patch(
        PatchType.MERGE, {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    )
    with living(World()) as world:
        world.add_node("n1")
        world.store.create(DEPLOYMENT, deployment(5))
        await asyncio.sleep(60)
        before = {each["metadata"]["uid"] for each in world.store.list(POD)}

        world.store.patch(DEPLOYMENT, "web", patch, namespace="default")
        await asyncio.sleep(300)

        after = {each["metadata"]["uid"] for each in world.store.list(POD)}
        assert (len(after), before & after, _ready_pods(world)) == (5, set(), 5)


@on_virtual_time
async def test_pods_of_a_lost_node_are_replaced_elsewhere() -> None:
    with living(World()) as world:
        world.add_node("n1")
        world.add_node("n2")
        world.store.create(DEPLOYMENT, deployment(6))
        await asyncio.sleep(60)

        world.kubelets.lose("n1")
        await asyncio.sleep(600)

        ready = [each for each in world.store.list(POD) if is_true(each, "Ready")]
        assert [each["spec"]["nodeName"] for each in ready] == ["n2"] * 6


@on_virtual_time
async def test_a_job_ends() -> None:
    job = {
        "metadata": {"name": "once", "namespace": "default"},
        "spec": {"template": {"spec": pod("x", restartPolicy="Never")["spec"]}},
    }
    with living(World()) as world:
        world.add_node("n1")
        world.store.create(JOB, job)

        await asyncio.sleep(120)

        assert world.store.get(JOB, "once", "default")["status"]["succeeded"] == 1


@on_virtual_time
async def test_a_pending_pod_runs_once_a_machine_was_launched() -> None:
    settings = WorldSettings(terms=Terms(taints=()))
    with living(World(settings)) as world:
        world.store.create(POD, pod("web"))
        await asyncio.sleep(10)
        before = phase(world, "web")

        await world.cloud.launch(launch_spec())
        await asyncio.sleep(120)

        assert (before, phase(world, "web")) == ("Pending", "Running")


@pytest.mark.parametrize("kind", CUSTOM, ids=str)
def test_the_kinds_of_karpenter_are_served(kind: Kind) -> None:
    assert World(parts=()).store.list(kind) == []


def test_the_rules_of_these_kinds_hold() -> None:
    with pytest.raises(Invalid):
        World(parts=()).store.create(NODE_POOL, {"metadata": {"name": "x"}, "spec": {}})


def test_the_same_seed_gives_the_same_events_to_the_last_byte() -> None:
    first = digest_of(1)

    assert digest_of(1) == first
    assert digest_of(2) != first


def _digest_under(hash_seed: int) -> str:
    """Live in a process of its own; sets of strings have another order there."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.digests"],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_events_are_the_same_under_any_hash_seed() -> None:
    one = _digest_under(1)

    assert len(one) == 65
    assert _digest_under(2) == one


def test_a_world_begins_at_its_start_time() -> None:
    start = datetime(2030, 6, 1, tzinfo=UTC)

    world = World(start=start, parts=())

    definition = world.store.get(CUSTOM_RESOURCE, "nodepools.karpenter.sh")
    assert definition["metadata"]["creationTimestamp"] == "2030-06-01T00:00:00Z"


async def test_a_world_lives_in_real_time_too() -> None:
    with living(World(FAST)) as world:
        world.store.create(POD, pod("web"))
        await world.cloud.launch(launch_spec())
        world.add_node("n1")

        await asyncio.wait_for(_until_running(world), timeout=30)

        assert condition(world, "Ready", node="n1") == "True"


async def _until_running(world: World) -> None:
    changed = asyncio.Event()
    end = world.store.subscribe(POD, lambda *_: changed.set())
    if phase(world, "web") != "Running":
        changed.clear()
        await changed.wait()
        await _until_running(world)
    end()


@on_virtual_time
async def test_a_stopped_world_can_be_left_without_a_trace() -> None:
    with living(World()) as world:
        world.add_node("n1")
        world.store.create(DEPLOYMENT, deployment(3))
        await asyncio.sleep(10)

    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    assert tasks == set()
    assert len(world.store.list(NODE)) == 1
