"""Pods of StatefulSets, created anew only after their predecessors have ended, have their room."""

import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, KWOK_NODE_CLASS, NODE_POOL, STATEFUL_SET
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from tests.scenarios.ledger import Ledger
from tests.scenarios.manifests import deployment, node_class, one_of, pod_spec, pool
from tests.scenarios.stage import Stage, staged
from tests.scenarios.test_drift import relabel, teams
from tests.sim.stories import on_virtual_time

SMALL, MIDDLE = "c-2x-amd64-linux", "c-4x-amd64-linux"


def slow_set(cpu: str, replicas: int) -> JsonObject:
    """A StatefulSet that creates each pod 20 seconds after the one before it is ready."""
    labels = {"app": "db"}
    return {
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "minReadySeconds": 20,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(cpu)},
        },
    }


def pool_of(share: str, *types: str) -> JsonObject:
    """A pool of on-demand nodes of some types, whose empty nodes are deleted at once."""
    disruption = {"consolidateAfter": "0s", "budgets": [{"nodes": share}]}
    wanted = [one_of(INSTANCE_TYPE, *types), one_of(CAPACITY_TYPE, "on-demand")]
    return pool(requirements=wanted, disruption=disruption)


async def furnish(stage: Stage, made: JsonObject, cpu: str, replicas: int, others: int = 0) -> None:
    """Have the pods of a StatefulSet, a node each, and some smaller pods beside them."""
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(NODE_POOL, made)
    stage.apply(STATEFUL_SET, slow_set(cpu, replicas))
    stage.apply(DEPLOYMENT, deployment("web", others))
    await stage.until_running("db", replicas)
    await stage.until_running("web", others)
    await asyncio.sleep(600)


@pytest.mark.parametrize(
    ("has_cloud", "share", "others"),
    [(True, "50%", 4), (True, "100%", 0), (True, "100%", 4), (False, "1", 0)],
)
@on_virtual_time
async def test_drift_launches_one_node_for_each_that_it_replaces(
    share: str, others: int, *, has_cloud: bool
) -> None:
    async with staged(has_cloud=has_cloud) as stage:
        await furnish(stage, pool_of(share, MIDDLE), "2500m", 6, others)
        ledger = Ledger(stage)
        relabel(stage)
        await stage.until(lambda: set(teams(stage)) == {"shop"}, seconds=7200)
        await stage.until_running("db", 6)
        await stage.until_running("web", others)
        await asyncio.sleep(900)

        assert len(ledger.names("created")) == len(stage.nodes) == 6


@pytest.mark.parametrize("has_cloud", [True, False])
@on_virtual_time
async def test_a_node_that_replaces_several_has_its_pods_before_it_is_looked_at_again(
    *, has_cloud: bool
) -> None:
    async with staged(has_cloud=has_cloud) as stage:
        await furnish(stage, pool_of("100%", SMALL), "1100m", 5)
        ledger, larger = Ledger(stage), pool_of("100%", SMALL, MIDDLE)
        stage.change(NODE_POOL, "default", {"spec": larger["spec"]}, "allow a larger type")
        await asyncio.sleep(1800)

        assert len(ledger.names("created")) == 1
        assert len(ledger.names("deleted")) == 3
        assert stage.is_running("db", 5)
