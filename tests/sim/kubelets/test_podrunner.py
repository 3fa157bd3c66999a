import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE, POD
from karpy.ports.objects import Removal
from karpy.sim.kubelets.behaviour import EXIT_CODE, READY, RUN, START, STOP
from karpy.sim.world import World
from tests.sim.stories import (
    bare_world,
    bind,
    condition,
    get_pod,
    on_virtual_time,
    phase,
    pod,
    world_with_pod,
)

OF_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}


def _state(world: World, name: str) -> JsonObject:
    state: JsonObject = get_pod(world, name)["status"]["containerStatuses"][0]["state"]
    return state


@on_virtual_time
async def test_a_pod_is_created_then_runs() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web"))
        await asyncio.sleep(1)
        first = get_pod(world, "web")["status"]
        await asyncio.sleep(2)

        assert first["phase"] == "Pending"
        assert first["startTime"] == "2026-01-05T00:00:01Z"
        assert first["hostIP"] == "10.0.0.1"
        assert first["containerStatuses"][0]["state"] == {
            "waiting": {"reason": "ContainerCreating"}
        }
        status = get_pod(world, "web")["status"]
        assert (status["phase"], status["podIP"]) == ("Running", "10.64.0.1")
        assert {each["type"]: each["status"] for each in status["conditions"]} == {
            "PodScheduled": "True",
            "PodReadyToStartContainers": "True",
            "Initialized": "True",
            "Ready": "True",
            "ContainersReady": "True",
        }
        assert status["containerStatuses"] == [
            {
                "name": "app",
                "state": {"running": {"startedAt": "2026-01-05T00:00:03Z"}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "shop/app:1",
                "imageID": "shop/app:1",
                "started": True,
            }
        ]


@on_virtual_time
async def test_containers_wait_for_those_that_come_first() -> None:
    init = [
        {"name": "setup", "image": "x"},
        {"name": "mesh", "image": "y", "restartPolicy": "Always"},
    ]
    with bare_world() as world:
        await world_with_pod(world, pod("web", initContainers=init))
        await asyncio.sleep(1)
        first = condition(world, "Initialized", pod="web"), _state(world, "web")
        await asyncio.sleep(3)

        assert first == ("False", {"waiting": {"reason": "PodInitializing"}})
        assert condition(world, "Initialized", pod="web") == "True"
        states = [
            next(iter(each["state"]))
            for each in get_pod(world, "web")["status"]["initContainerStatuses"]
        ]
        assert states == ["terminated", "running"]


@on_virtual_time
async def test_a_pod_on_the_host_network_has_the_address_of_its_node() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web", hostNetwork=True))
        await asyncio.sleep(5)

        assert get_pod(world, "web")["status"]["podIP"] == "10.0.0.1"


@on_virtual_time
async def test_a_pod_says_how_long_it_takes_to_start_and_to_get_ready() -> None:
    made = pod("web", annotations={START: "10", READY: "20"})
    with bare_world() as world:
        await world_with_pod(world, made)
        await asyncio.sleep(9)
        first = phase(world, "web")
        await asyncio.sleep(2)
        second = phase(world, "web"), condition(world, "Ready", pod="web")
        await asyncio.sleep(20)

        assert (first, second) == ("Pending", ("Running", "False"))
        assert condition(world, "Ready", pod="web") == "True"


@on_virtual_time
async def test_a_pod_may_never_get_ready() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web", annotations={READY: "never"}))
        await asyncio.sleep(3600)

        assert condition(world, "Ready", pod="web") == "False"


@pytest.mark.parametrize("value", ["soon", "-1", "inf", "nan"])
@on_virtual_time
async def test_an_invalid_annotation_is_reported_in_the_status(value: str) -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web", annotations={START: value}))
        await asyncio.sleep(60)

        assert phase(world, "web") == "Pending"
        assert _state(world, "web")["waiting"] == {
            "reason": "CreateContainerConfigError",
            "message": f"annotation sim.karpy.dev/start-seconds is `{value}`: give a number, "
            "0 or more",
        }


@pytest.mark.parametrize(
    ("policy", "exit_code", "end"),
    [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")],
)
@on_virtual_time
async def test_containers_that_exit_end_their_pod(policy: str, exit_code: int, end: str) -> None:
    annotations = {RUN: "30", EXIT_CODE: str(exit_code)}
    with bare_world() as world:
        await world_with_pod(world, pod("job", annotations=annotations, restartPolicy=policy))
        await asyncio.sleep(31)
        before = phase(world, "job")
        await asyncio.sleep(2)

        assert (before, phase(world, "job")) == ("Running", end)
        assert _state(world, "job")["terminated"]["exitCode"] == exit_code
        assert condition(world, "Ready", pod="job") == "False"


@pytest.mark.parametrize(("policy", "exit_code"), [("Always", 0), ("Always", 1), ("OnFailure", 1)])
@on_virtual_time
async def test_containers_are_started_again_ever_more_slowly(policy: str, exit_code: int) -> None:
    annotations = {RUN: "1", EXIT_CODE: str(exit_code)}
    with bare_world() as world:
        await world_with_pod(world, pod("job", annotations=annotations, restartPolicy=policy))
        await asyncio.sleep(5)
        waiting = _state(world, "job")["waiting"]["reason"]
        await asyncio.sleep(40)

        status = get_pod(world, "job")["status"]["containerStatuses"][0]
        assert (waiting, phase(world, "job")) == ("CrashLoopBackOff", "Running")
        assert status["restartCount"] == 3
        assert status["lastState"]["terminated"]["exitCode"] == exit_code


@on_virtual_time
async def test_a_pod_of_a_job_ends_by_itself() -> None:
    made = pod("job", restartPolicy="Never")
    made["metadata"]["ownerReferences"] = [OF_JOB]
    with bare_world() as world:
        await world_with_pod(world, made)
        await asyncio.sleep(70)

        assert phase(world, "job") == "Succeeded"


@on_virtual_time
async def test_a_pod_that_runs_past_its_deadline_fails() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("job", activeDeadlineSeconds=20))
        await asyncio.sleep(21)

        status = get_pod(world, "job")["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


@on_virtual_time
async def test_a_pod_takes_its_time_to_stop() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web", annotations={STOP: "10"}))
        await asyncio.sleep(5)

        world.store.delete(POD, "web", namespace="default")
        await asyncio.sleep(9)
        still = phase(world, "web")
        await asyncio.sleep(2)

        assert (still, phase(world, "web")) == ("Running", "gone")


@on_virtual_time
async def test_a_pod_never_takes_longer_to_stop_than_its_grace_period() -> None:
    made = pod("web", annotations={STOP: "1000"}, terminationGracePeriodSeconds=20)
    with bare_world() as world:
        await world_with_pod(world, made)
        await asyncio.sleep(5)

        world.store.delete(POD, "web", namespace="default")
        await asyncio.sleep(19)
        still = phase(world, "web")
        await asyncio.sleep(2)

        assert (still, phase(world, "web")) == ("Running", "gone")


@on_virtual_time
async def test_a_second_deletion_may_shorten_the_grace_period() -> None:
    made = pod("web", annotations={STOP: "1000"}, terminationGracePeriodSeconds=600)
    with bare_world() as world:
        await world_with_pod(world, made)
        await asyncio.sleep(5)
        world.store.delete(POD, "web", namespace="default")
        await asyncio.sleep(1)

        world.store.delete(POD, "web", namespace="default", removal=Removal(grace_seconds=5))
        await asyncio.sleep(6)

        assert phase(world, "web") == "gone"


@on_virtual_time
async def test_a_hook_delays_the_stop() -> None:
    hook = {"preStop": {"sleep": {"seconds": 15}}}
    made = pod("web", containers=[{"name": "app", "image": "x", "lifecycle": hook}])
    with bare_world() as world:
        await world_with_pod(world, made)
        await asyncio.sleep(5)

        world.store.delete(POD, "web", namespace="default")
        await asyncio.sleep(15)
        still = phase(world, "web")
        await asyncio.sleep(2)

        assert (still, phase(world, "web")) == ("Running", "gone")


@on_virtual_time
async def test_a_pod_that_never_ran_stops_at_once() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web", annotations={START: "100"}))
        await asyncio.sleep(5)

        world.store.delete(POD, "web", namespace="default")
        await asyncio.sleep(0.1)

        assert phase(world, "web") == "gone"


@on_virtual_time
async def test_a_pod_with_a_finalizer_reports_how_it_ended() -> None:
    made = pod("web")
    made["metadata"]["finalizers"] = ["shop.example/keep"]
    with bare_world() as world:
        await world_with_pod(world, made)
        await asyncio.sleep(5)

        world.store.delete(POD, "web", namespace="default")
        await asyncio.sleep(60)

        held = get_pod(world, "web")
        assert held["status"]["phase"] == "Failed"
        assert held["metadata"]["deletionGracePeriodSeconds"] == 0
        assert _state(world, "web")["terminated"]["exitCode"] == 143


@on_virtual_time
async def test_a_gate_keeps_a_pod_from_being_ready_until_it_opens() -> None:
    made = pod("web", readinessGates=[{"conditionType": "shop.example/warm"}])
    with bare_world() as world:
        await world_with_pod(world, made)
        await asyncio.sleep(5)
        closed = (
            condition(world, "Ready", pod="web"),
            condition(world, "ContainersReady", pod="web"),
        )

        found = get_pod(world, "web")
        warm = {"type": "shop.example/warm", "status": "True"}
        status = {**found["status"], "conditions": [*found["status"]["conditions"], warm]}
        world.store.replace(POD, {**found, "status": status}, subresource="status")
        await asyncio.sleep(1)

        assert closed == ("False", "True")
        assert condition(world, "Ready", pod="web") == "True"


@on_virtual_time
async def test_nothing_happens_to_pods_while_their_kubelet_is_lost() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web"))
        await asyncio.sleep(1)
        world.kubelets.lose("n1")
        await asyncio.sleep(30)
        lost = phase(world, "web")

        world.kubelets.recover("n1")
        await asyncio.sleep(1)

        assert (lost, phase(world, "web")) == ("Pending", "Running")


@on_virtual_time
async def test_a_deleted_pod_stays_until_its_kubelet_is_back() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web"))
        await asyncio.sleep(5)
        world.kubelets.lose("n1")

        world.store.delete(POD, "web", namespace="default")
        await asyncio.sleep(100)
        held = phase(world, "web")
        world.kubelets.recover("n1")
        await asyncio.sleep(5)

        assert (held, phase(world, "web")) == ("Running", "gone")


@on_virtual_time
async def test_pods_are_slow_on_a_slow_node() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(1)
        world.kubelets.slow("n1", 10)
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")

        await asyncio.sleep(19)
        still = phase(world, "web")
        await asyncio.sleep(2)

        assert (still, phase(world, "web")) == ("Pending", "Running")


@on_virtual_time
async def test_another_pod_of_the_same_name_starts_from_the_beginning() -> None:
    with bare_world() as world:
        await world_with_pod(world, pod("web"))
        await asyncio.sleep(5)
        world.store.delete(POD, "web", namespace="default", removal=Removal(grace_seconds=0))

        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(1)
        first = phase(world, "web")
        await asyncio.sleep(2)

        assert (first, phase(world, "web")) == ("Pending", "Running")


@on_virtual_time
async def test_a_pod_bound_before_its_node_joins_waits_for_it() -> None:
    with bare_world() as world:
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(5)
        world.add_node("n1")

        await asyncio.sleep(5)

        assert phase(world, "web") == "Running"
        assert len(world.store.list(NODE)) == 1
