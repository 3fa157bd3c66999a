"""kube-scheduler on a real control plane."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.kube.connection import Connection, find_access
from karpy.codec.fields import JsonObject
from karpy.errors import AlreadyExists, NotFound
from karpy.model.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from karpy.model.labels import ZONE
from karpy.ports.objects import EventType, Objects
from tests.fidelity.clusters import Cluster
from tests.fidelity.words import CORDON, DRIVER, HARD_TAINTS, NAMESPACES, SEED, SOFT_TAINTS
from tests.fidelity.worlds import World, aside, until

_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_UNTIL_SEEN: Final = 0.15
_KNOWN_TAINTS: Final = sorted({each["key"] for each in (*HARD_TAINTS, *SOFT_TAINTS, CORDON)})


@asynccontextmanager
async def real_world(plane: ControlPlane) -> AsyncIterator[World]:
    """Open the world of a control plane, and provision volumes as a CSI driver does."""
    access = find_access(kubeconfig=str(plane.kubeconfig))
    async with Connection(access, rate=None) as connection:
        world = _RealWorld(connection.objects)
        version = (await world.objects.list(PERSISTENT_VOLUME_CLAIM)).version
        async with world.opened(), aside(_provision(world.objects, version)):
            yield world


class _RealWorld(World):
    """A world whose scheduler receives events with a delay."""

    async def settle(self, cluster: Cluster) -> None:
        """Create the cluster; return once the scheduler has received its nodes."""
        await super().settle(cluster)
        if cluster.has_volumes:
            await asyncio.sleep(_UNTIL_SEEN)
        await until(partial(self._is_known, cluster))

    async def _is_known(self, cluster: Cluster) -> bool:
        """Say whether the scheduler counts exactly the nodes of this cluster, all ready."""
        answer, canary = await super().ask(_canary(cluster.seed))
        await self.remove(canary)
        count = len(cluster.nodes)
        return answer.why.startswith(f"0/{count} ") and f" {count} Insufficient cpu" in answer.why


def _canary(seed: int) -> JsonObject:
    """Return a pod that nodes of a cluster refuse only for its size."""
    requests = {"cpu": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "canary", "namespace": next(iter(NAMESPACES))},
        "spec": {
            "nodeSelector": {SEED: str(seed)},
            "tolerations": [{"key": key, "operator": "Exists"} for key in _KNOWN_TAINTS],
            "containers": [
                {"name": "main", "image": "canary", "resources": {"requests": requests}}
            ],
        },
    }


async def _provision(objects: Objects, version: str) -> None:
    """Create a volume for each claim with a selected node."""
    while True:
        async for event in objects.watch(PERSISTENT_VOLUME_CLAIM, since=version):
            version = event.version
            if event.type in {EventType.ADDED, EventType.MODIFIED}:
                await _make_volume(objects, event.object)


async def _make_volume(objects: Objects, claim: JsonObject) -> None:
    meta, spec = claim["metadata"], claim["spec"]
    selected = (meta.get("annotations") or {}).get(_SELECTED_NODE)
    if not selected or spec.get("volumeName"):
        return
    volume: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{meta['uid']}"},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec["storageClassName"],
            "csi": {"driver": DRIVER, "volumeHandle": meta["uid"]},
            "claimRef": {key: meta[key] for key in ("namespace", "name", "uid")},
        },
    }
    with suppress(AlreadyExists, NotFound):
        node = await objects.get(NODE, selected)
        if zone := node["metadata"]["labels"].get(ZONE):
            rule = {"key": ZONE, "operator": "In", "values": [zone]}
            terms = [{"matchExpressions": [rule]}]
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        await objects.create(PERSISTENT_VOLUME, volume)
