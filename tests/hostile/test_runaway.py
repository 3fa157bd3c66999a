"""Workloads that would cause endless launches if DaemonSet pods were counted before admission."""

import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    KWOK_NODE_CLASS,
    LIMIT_RANGE,
    NODE_CLAIM,
    NODE_POOL,
    POD,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
)
from tests.scenarios.manifests import (
    asking,
    daemon_set,
    deployment,
    limit_range,
    node_class,
    pod_spec,
    pool,
)
from tests.scenarios.stage import Stage, staged
from tests.sim.stories import on_virtual_time

LONG = 300.0
USUAL = pytest.mark.parametrize(
    "usual",
    [
        {"default": {"cpu": "2", "memory": "1Gi"}},
        {"defaultRequest": {"cpu": "2", "memory": "1Gi"}},
    ],
    ids=["default", "defaultRequest"],
)


def prepare(stage: Stage) -> set[str]:
    """Set the stage up; return a set that collects the names of all NodeClaims."""
    names: set[str] = set()
    stage.store.subscribe(NODE_CLAIM, lambda event, _: names.add(event.object["metadata"]["name"]))
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(NODE_POOL, pool())
    stage.apply(PRIORITY_CLASS, {"metadata": {"name": "first"}, "value": 1000})
    return names


def agent(**spec: object) -> JsonObject:
    """Return a DaemonSet of high priority without CPU requests."""
    return daemon_set(
        "agent", asking({"limits": {"memory": "1Gi"}}, priorityClassName="first", **spec)
    )


def web(name: str = "web") -> JsonObject:
    """Return a Deployment of one pod without CPU requests."""
    return deployment(name, 1, pod=asking({"requests": {"memory": "4"}}))


def are_running(stage: Stage, *apps: str) -> bool:
    """Say whether each app has its one pod running."""
    return all(stage.is_running(app, 1) for app in apps)


@USUAL
@on_virtual_time
async def test_a_limit_range_costs_one_node_for_one_pod(usual: JsonObject) -> None:
    async with staged() as stage:
        claims = prepare(stage)
        stage.apply(LIMIT_RANGE, limit_range(**usual))
        stage.apply(DAEMON_SET, agent())
        stage.apply(DEPLOYMENT, web())
        await asyncio.sleep(LONG)

        assert (len(claims), are_running(stage, "web", "agent")) == (1, True)


@USUAL
@on_virtual_time
async def test_a_limit_range_costs_one_node_more_once_the_daemon_runs(usual: JsonObject) -> None:
    """The requests of the DaemonSet are then read from its pod."""
    async with staged() as stage:
        claims = prepare(stage)
        stage.apply(LIMIT_RANGE, limit_range(**usual))
        stage.apply(DAEMON_SET, agent())
        stage.apply(DEPLOYMENT, web("first"))
        await stage.until_running("first", 1)
        await stage.until_running("agent", 1)
        stage.apply(DEPLOYMENT, deployment("second", 1, pod=asking({"limits": {"cpu": "7"}})))
        await asyncio.sleep(LONG)

        assert (len(claims), are_running(stage, "first", "second")) == (2, True)


@on_virtual_time
async def test_a_runtime_class_costs_one_node_for_one_pod() -> None:
    async with staged() as stage:
        claims = prepare(stage)
        sandbox = {"handler": "runsc", "overhead": {"podFixed": {"cpu": "2"}}}
        stage.apply(RUNTIME_CLASS, {"metadata": {"name": "sandboxed"}, **sandbox})
        stage.apply(DAEMON_SET, agent(runtimeClassName="sandboxed"))
        stage.apply(DEPLOYMENT, deployment("web", 1, pod=pod_spec(cpu="1500m")))
        await asyncio.sleep(LONG)

        assert (len(claims), are_running(stage, "web", "agent")) == (1, True)


@on_virtual_time
async def test_a_pod_that_poses_as_a_daemon_takes_no_room_of_new_nodes() -> None:
    """The permission to create pods must not suffice to stop all launches."""
    async with staged() as stage:
        claims = prepare(stage)
        made = stage.apply(DAEMON_SET, daemon_set("agent", pod_spec(cpu="100m")))
        stage.apply(DEPLOYMENT, deployment("first", 1))
        await stage.until_running("agent", 1)
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
        meta = {
            "name": "forged",
            "labels": {"app": "agent"},
            "namespace": "default",
            "ownerReferences": [{**owner, "uid": made["metadata"]["uid"]}],
        }
        stage.apply(POD, {"metadata": meta, "spec": pod_spec(cpu="1000")})
        stage.apply(DEPLOYMENT, deployment("second", 1, pod=pod_spec(cpu="3")))
        await stage.until_running("second", 1)

        assert (len(claims), are_running(stage, "first", "second")) == (2, True)


@on_virtual_time
async def test_a_daemon_that_no_machine_can_hold_stops_no_launch() -> None:
    """The permission to create DaemonSets must not suffice to stop all launches."""
    async with staged() as stage:
        claims = prepare(stage)
        everywhere = [{"operator": "Exists"}]
        stage.apply(DAEMON_SET, daemon_set("agent", pod_spec("1000", tolerations=everywhere)))
        stage.apply(DEPLOYMENT, deployment("first", 1))
        await stage.until_running("first", 1)

        assert len(claims) == 1
