"""NodeClaims of a decision on the embedded cluster are in the next snapshot."""

import asyncio

import pytest

from karpy.adapters.clock import WallClock
from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.codec.validation.validator import CrdValidator
from karpy.core.scheduling.decide import decide
from karpy.errors import NotFound
from karpy.model.kinds import CUSTOM_RESOURCE, NODE_CLAIM, NODE_POOL, POD
from karpy.model.settings import Settings
from karpy.ports.objects import Patch, PatchType
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store

SOON = 5.0
POOL: JsonObject = {
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [],
                "nodeClassRef": {
                    "group": "karpenter.kwok.sh",
                    "kind": "KWOKNodeClass",
                    "name": "default",
                },
            }
        }
    },
}


@pytest.fixture
def store() -> Store:
    """A store with a NodePool and a pod that kube-scheduler has given up on."""
    made = Store(WallClock(), validator=CrdValidator)
    for kind in CUSTOM_KINDS:
        made.create(CUSTOM_RESOURCE, kind.to_json())
    made.create(NODE_POOL, POOL)
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
    made.create(
        POD,
        {"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": [container]}},
    )
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    made.patch(
        POD,
        "web",
        Patch(PatchType.MERGE, {"status": {"conditions": [refused]}}),
        namespace="default",
        subresource="status",
    )
    return made


async def test_a_launch_becomes_a_claim_that_the_next_decision_counts_on(store: Store) -> None:
    objects = EmbeddedObjects(store)
    mirror = Mirror(objects, WallClock(), kwok_catalog, Settings())
    cluster = MirroredCluster(mirror, objects)
    task = asyncio.create_task(mirror.run())
    async with asyncio.timeout(SOON):
        await mirror.wait_until_listed()

    verdict = decide(cluster.snapshot())
    name = await cluster.apply(verdict.launches[0])
    is_synced = cluster.is_synced
    await objects.patch(
        NODE_CLAIM,
        name,
        machine_of(verdict.launches[0].options[0].instance_type),
        subresource="status",
    )
    async with asyncio.timeout(SOON):
        while True:
            if cluster.is_synced:
                break
            await asyncio.sleep(0.001)
    again = decide(cluster.snapshot())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert not is_synced
    assert again.launches == ()
    assert [(each.node, each.pods) for each in again.nominations] == [(name, ("default/web",))]


def machine_of(instance_type: str) -> Patch:
    """Say what a machine of a type is, as a cloud provider would."""
    (kind,) = (each for each in kwok_catalog().types if each.name == instance_type)
    room = {"cpu": f"{kind.allocatable['cpu']}m", "memory": str(kind.allocatable["memory"])}
    room["pods"] = "100"
    status = {"providerID": "kwok://n1", "capacity": room, "allocatable": room}
    return Patch(PatchType.MERGE, {"status": status})


async def test_a_launch_for_a_pool_that_is_gone_is_refused(store: Store) -> None:
    objects = EmbeddedObjects(store)
    mirror = Mirror(objects, WallClock(), kwok_catalog, Settings())
    task = asyncio.create_task(mirror.run())
    async with asyncio.timeout(SOON):
        await mirror.wait_until_listed()
    verdict = decide(mirror.snapshot())
    store.delete(NODE_POOL, "default")
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    with pytest.raises(NotFound, match="NodePool `default` is gone"):
        await MirroredCluster(mirror, objects).apply(verdict.launches[0])
