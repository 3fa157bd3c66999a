"""A story that has an operator do everything it can do, in any world."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    CAPACITY_BUFFER,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    NODE,
    NODE_OVERLAY,
    NODE_POOL,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    Kind,
)
from karpy.model.labels import HOSTNAME
from karpy.model.labels import NODE_POOL as NODE_POOL_LABEL
from karpy.ports.objects import Objects, Patch, PatchType, Query, Removal
from tests.scenarios.manifests import budget, deployment, one_of, pod_spec, pool

SETTINGS: Final = {
    "FEATURE_GATES": "NodeRepair=true,StaticCapacity=true,NodeOverlay=true,CapacityBuffer=true",
    "SCHEDULER_CONFIG": '{"podTopologySpread": {"defaultConstraints": [{"maxSkew": 3,'
    ' "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}]}}',
    "KARPY_NOMINATE_PODS": "Always",
    "DISABLE_LEADER_ELECTION": "false",
    "BATCH_MAX_DURATION": "10s",
    "BATCH_IDLE_DURATION": "2s",
}
"""What the operator is started with; batches are long, so that pods of both sizes share one."""
_LONG_AGO: Final = "2020-01-01T00:00:00Z"
_SECONDS: Final = 180.0
_GLANCE: Final = 0.2
_PLACE: Final = "default"
_NODES: Final = 11
_SMALL: Final = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")


class Everything:
    """What people and clouds do to a cluster, so that its operator has everything to do."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def happen(self) -> None:
        """Tell all stories at once, each with a NodePool of its own; the node class is there."""
        async with asyncio.TaskGroup() as stories:
            stories.create_task(self.correct_and_keep_room())
            stories.create_task(self.grow())
            stories.create_task(self.empty())
            stories.create_task(self.hurry())
            stories.create_task(self.keep_a_number())

    async def correct_and_keep_room(self) -> None:
        """Have a NodeOverlay and a CapacityBuffer; both say how they do."""
        spec: JsonObject = {"requirements": [_SMALL], "priceAdjustment": "-10%"}
        await self._create(NODE_OVERLAY, {"metadata": {"name": "cheap"}, "spec": spec})
        await self._until(lambda: self._has_status(NODE_OVERLAY, "cheap"))
        like = {"apiGroup": "apps", "kind": "Deployment", "name": "none"}
        spec = {"scalableRef": like, "replicas": 1}
        await self._create(CAPACITY_BUFFER, {"metadata": _meta("room"), "spec": spec})
        await self._until(lambda: self._has_status(CAPACITY_BUFFER, "room"))
        await self._remove(CAPACITY_BUFFER, "room")
        await self._remove(NODE_OVERLAY, "cheap")

    async def grow(self) -> None:
        """Have many nodes at once, of which one is replaced and one rebooted."""
        apart = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "large"}}}
        alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        await self._create(
            NODE_POOL, pool("shop", requirements=[_SMALL], disruption={"consolidateAfter": "Never"})
        )
        # Pods of two sizes: some of them hear of their node.
        for name, pod in {"large": pod_spec("2", affinity=alone), "little": pod_spec()}.items():
            await self._create(DEPLOYMENT, deployment(name, _NODES, pod={**pod, **_in("shop")}))
        await self._until(self._runs("large", _NODES))
        await self._until(self._runs("little", _NODES))
        broken, stuck, *_ = await self._nodes("shop")
        await self._set_condition(broken, "KWOKUnhealthy")
        await self._set_condition(stuck, "KWOKRebootRequired")
        await self._until(lambda: self._is_gone(NODE, broken))
        await self._until(lambda: self._was_rebooted(stuck))

    async def empty(self) -> None:
        """Have a node that no pod needs any more."""
        await self._create(
            NODE_POOL, pool("loft", requirements=[_SMALL], disruption={"consolidateAfter": "0s"})
        )
        await self._create(POD, _pod("brief", **_in("loft")))
        await self._until(self._runs("brief", 1))
        (node,) = await self._nodes("loft")
        await self._remove(POD, "brief")
        await self._until(lambda: self._is_gone(NODE, node))

    async def hurry(self) -> None:
        """Have a node drained whose pod a budget holds, until time is up; a volume stays on it."""
        await self._create(
            NODE_POOL,
            pool("bank", requirements=[_SMALL], template={"terminationGracePeriod": "10s"}),
        )
        await self._create(PERSISTENT_VOLUME, _volume())
        await self._create(PERSISTENT_VOLUME_CLAIM, _volume_claim())
        await self._create(DISRUPTION_BUDGET, budget("held", maxUnavailable=0))
        use = {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}
        anywhere: JsonObject = {"volumes": [use], "tolerations": [{"operator": "Exists"}]}
        for name, more in {"held": {}, "stays": anywhere}.items():
            await self._create(POD, _pod(name, **more, **_in("bank")))
            await self._until(self._runs(name, 1))
        (node,) = await self._nodes("bank")
        source = {"persistentVolumeName": "disk"}
        spec = {"attacher": "example.com", "nodeName": node, "source": source}
        await self._create(VOLUME_ATTACHMENT, {"metadata": {"name": "disk"}, "spec": spec})
        await self._remove(NODE_POOL, "bank")
        await self._until(lambda: self._is_gone(POD, "held"))
        await self._until(lambda: self._is_gone(NODE, node))
        await self._remove(VOLUME_ATTACHMENT, "disk")

    async def keep_a_number(self) -> None:
        """Have a NodePool of a fixed size whose node expires."""
        await self._create(
            NODE_POOL,
            pool("fixed", requirements=[_SMALL], template={"expireAfter": "15s"}, replicas=1),
        )
        await self._until(lambda: self._has_nodes("fixed"))
        (first,) = await self._nodes("fixed")
        await self._until(lambda: self._is_gone(NODE, first))
        await self._remove(NODE_POOL, "fixed")

    async def _create(self, kind: Kind, obj: JsonObject) -> None:
        await self._objects.create(kind, {"apiVersion": kind.api_version, "kind": kind.name, **obj})

    async def _remove(self, kind: Kind, name: str) -> None:
        await self._objects.delete(
            kind, name, namespace=_place_of(kind), removal=Removal(propagation="Background")
        )

    async def _set_condition(self, node: str, name: str) -> None:
        condition = {"type": name, "status": "True", "reason": "Test", "message": "Test"}
        condition |= {"lastTransitionTime": _LONG_AGO, "lastHeartbeatTime": _LONG_AGO}
        patch = Patch(PatchType.STRATEGIC, {"status": {"conditions": [condition]}})
        await self._objects.patch(NODE, node, patch, subresource="status")

    async def _nodes(self, pool: str) -> list[str]:
        page = await self._objects.list(NODE, Query(labels=f"{NODE_POOL_LABEL}={pool}"))
        return [each["metadata"]["name"] for each in page.items]

    async def _has_nodes(self, pool: str) -> bool:
        return bool(await self._nodes(pool))

    async def _is_gone(self, kind: Kind, name: str) -> bool:
        page = await self._objects.list(
            kind, Query(_place_of(kind), fields=f"metadata.name={name}")
        )
        return not page.items

    async def _has_status(self, kind: Kind, name: str) -> bool:
        found = await self._objects.get(kind, name, _place_of(kind))
        return bool(found.get("status"))

    async def _was_rebooted(self, node: str) -> bool:
        found = await self._objects.get(NODE, node)
        return str(found["status"]["nodeInfo"]["bootID"]).startswith("kwok-")

    def _runs(self, app: str, count: int) -> Callable[[], Awaitable[bool]]:
        async def look() -> bool:
            pods = (await self._objects.list(POD, Query(_PLACE, labels=f"app={app}"))).items
            phases = [each.get("status", {}).get("phase") for each in pods]
            return phases == ["Running"] * count

        return look

    async def _until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(_SECONDS):
            while True:
                if await holds():
                    return
                await asyncio.sleep(_GLANCE)


def _place_of(kind: Kind) -> str:
    return _PLACE if kind.is_namespaced else ""


def _in(pool: str) -> JsonObject:
    """Have a pod run on the nodes of a NodePool alone."""
    return {"nodeSelector": {NODE_POOL_LABEL: pool}}


def _meta(name: str) -> JsonObject:
    return {"name": name, "namespace": _PLACE}


def _pod(name: str, **spec: object) -> JsonObject:
    meta = {**_meta(name), "labels": {"app": name}}
    return {"metadata": meta, "spec": {**pod_spec(), **spec}}


def _volume() -> JsonObject:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "csi": {"driver": "example.com", "volumeHandle": "disk"},
        "claimRef": _meta("disk"),
    }
    return {"metadata": {"name": "disk"}, "spec": spec}


def _volume_claim() -> JsonObject:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "volumeName": "disk",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": _meta("disk"), "spec": spec}
