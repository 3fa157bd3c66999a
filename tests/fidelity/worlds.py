"""A scheduler that is queried through its API server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from karpy.codec.fields import JsonObject
from karpy.errors import AlreadyExists, NotFound
from karpy.model.kinds import (
    CSI_NODE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    STORAGE_CLASS,
    Kind,
)
from karpy.ports.objects import EventType, Objects, Patch, PatchType, Query, Removal
from tests.fidelity.closets import CLASSES
from tests.fidelity.clusters import Cluster
from tests.fidelity.words import NAMESPACES, PRIORITIES

AT_ONCE: Final = Removal(grace_seconds=0)
SECONDS_TO_DECIDE: Final = 30.0
_GLANCE: Final = 0.01
_GATE: Final = "fidelity/wait"
_OURS: Final = "fidelity-"


@asynccontextmanager
async def aside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine in the background during the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    """Poll until a condition holds."""
    async with asyncio.timeout(SECONDS_TO_DECIDE):
        while True:
            if await look():
                return
            await asyncio.sleep(_GLANCE)


@dataclass(frozen=True)
class Answer:
    """The decision of a scheduler for a pod: a node, or the message why there is none."""

    node: str = ""
    why: str = ""

    def __str__(self) -> str:
        return self.node or self.why


@dataclass(frozen=True)
class Storage:
    """The volumes and claims of an API server at a moment."""

    volumes: tuple[JsonObject, ...] = ()
    claims: tuple[JsonObject, ...] = ()


class World:
    """An API server with a scheduler, for one cluster at a time."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self._pods: dict[str, JsonObject] = {}
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Create the objects that all clusters share, and follow the pods."""
        for name, labels in NAMESPACES.items():
            meta = {"name": name, "labels": labels}
            await self._ensure(
                NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
            )
        for priority in PRIORITIES:
            await self._ensure(PRIORITY_CLASS, priority)
        for storage_class in CLASSES:
            await self._ensure(STORAGE_CLASS, storage_class)
        version = (await self.objects.list(POD)).version
        async with aside(self._follow(version)):
            yield

    async def settle(self, cluster: Cluster) -> None:
        """Create the nodes, the storage and the running pods of a cluster."""
        await asyncio.gather(*map(self._make_node, cluster.nodes))
        await self._create_all(CSI_NODE, cluster.limits)
        if cluster.has_volumes:
            await self._store(cluster)
        await self._create_all(POD, cluster.bound)
        ending = [each for each in cluster.bound if each["metadata"]["name"] in cluster.ending]
        await asyncio.gather(*(self._delete(POD, each, Removal()) for each in ending))

    async def ask(self, pod: JsonObject, nominated: str = "") -> tuple[Answer, JsonObject]:
        """
        Create a pod and return the answer of the scheduler, and the admitted pod.

        A scheduler prefers a nominated node to all others, if the pod fits there.
        """
        if not nominated:
            made = await self.objects.create(POD, pod)
            return await self._answer(made), made
        spec = {**pod["spec"], "schedulingGates": [{"name": _GATE}]}
        made = await self.objects.create(POD, {**pod, "spec": spec})
        wish = {"status": {"nominatedNodeName": nominated}}
        await self._patch(made, wish, subresource="status")
        made = await self._patch(made, {"spec": {"schedulingGates": None}})
        return await self._answer(made), made

    async def put(self, pod: JsonObject, node: str) -> None:
        """Create a pod that is bound to a node."""
        await self.objects.create(POD, {**pod, "spec": {**pod["spec"], "nodeName": node}})

    async def remove(self, pod: JsonObject) -> None:
        """Delete a pod without grace."""
        await self._delete(POD, pod, AT_ONCE)

    async def storage(self) -> Storage:
        """Return the current volumes and claims."""
        volumes, claims = await asyncio.gather(
            self.objects.list(PERSISTENT_VOLUME), self.objects.list(PERSISTENT_VOLUME_CLAIM)
        )
        return Storage(
            tuple(filter(_is_ours, volumes.items)), tuple(filter(_is_ours, claims.items))
        )

    async def listed(self) -> list[JsonObject]:
        """Return all objects on which decisions depend."""
        kinds = (NODE, CSI_NODE, NAMESPACE, STORAGE_CLASS, POD)
        pages = await asyncio.gather(*map(self.objects.list, kinds))
        storage = await self.storage()
        ours = [each for page in pages for each in page.items if _is_ours(each)]
        return [*ours, *storage.volumes, *storage.claims]

    async def furnish(self, storage: Storage) -> None:
        """Replace all volumes and claims by these."""
        raise NotImplementedError

    async def clean(self, cluster: Cluster) -> None:
        """Delete the cluster; return once all its objects are gone."""
        pods = [await self.objects.list(POD, Query(name)) for name in NAMESPACES]
        await self._delete_all(POD, [each for page in pods for each in page.items])
        await self._delete_all(NODE, cluster.nodes)
        await self._delete_all(CSI_NODE, cluster.limits)
        if cluster.has_volumes:
            storage = await self.storage()
            await self._delete_all(PERSISTENT_VOLUME_CLAIM, storage.claims)
            await self._delete_all(PERSISTENT_VOLUME, storage.volumes)
            await until(self._is_bare)

    async def _is_bare(self) -> bool:
        return await self.storage() == Storage()

    async def _answer(self, pod: JsonObject) -> Answer:
        meta = pod["metadata"]
        key = f"{meta['namespace']}/{meta['name']}"
        try:
            async with asyncio.timeout(SECONDS_TO_DECIDE):
                while True:
                    self._changed.clear()
                    seen = self._pods.get(key)
                    if seen is not None and seen["metadata"]["uid"] == meta["uid"]:
                        answer = _read_answer(seen)
                        if answer is not None:
                            return answer
                    await self._changed.wait()
        except TimeoutError:
            return Answer(why=f"no answer after {SECONDS_TO_DECIDE:.0f} s")

    async def _follow(self, version: str) -> None:
        while True:
            async for event in self.objects.watch(POD, since=version):
                version = event.version
                if event.type is not EventType.BOOKMARK:
                    meta = event.object["metadata"]
                    self._pods[f"{meta['namespace']}/{meta['name']}"] = event.object
                    self._changed.set()

    async def _make_node(self, node: JsonObject) -> None:
        made = await self.objects.create(NODE, node)
        wanted = node["spec"].get("taints")
        if made["spec"].get("taints") != wanted:
            # An API server adds the not-ready taint to a new node.
            patch = Patch(PatchType.MERGE, {"spec": {"taints": wanted}})
            await self.objects.patch(NODE, node["metadata"]["name"], patch)

    async def _store(self, cluster: Cluster) -> None:
        """Create volumes before claims: a claim without a volume is retried only much later."""
        await self._create_all(PERSISTENT_VOLUME, cluster.volumes)
        await self._until_phase(PERSISTENT_VOLUME, cluster.volumes, "Available")
        await self._create_all(PERSISTENT_VOLUME_CLAIM, cluster.claims)
        kept = [each for each in cluster.claims if "volumeName" in each["spec"]]
        await self._until_phase(PERSISTENT_VOLUME_CLAIM, kept, "Bound")

    async def _until_phase(self, kind: Kind, some: Iterable[JsonObject], phase: str) -> None:
        names = {each["metadata"]["name"] for each in some}

        async def is_so() -> bool:
            there = (await self.objects.list(kind)).items
            done = [each for each in there if (each.get("status") or {}).get("phase") == phase]
            return names <= {each["metadata"]["name"] for each in done}

        await until(is_so)

    async def _patch(self, pod: JsonObject, body: JsonObject, subresource: str = "") -> JsonObject:
        meta, patch = pod["metadata"], Patch(PatchType.MERGE, body)
        return await self.objects.patch(
            POD, meta["name"], patch, namespace=meta["namespace"], subresource=subresource
        )

    async def _ensure(self, kind: Kind, obj: JsonObject) -> None:
        with suppress(AlreadyExists):
            await self.objects.create(kind, obj)

    async def _create_all(self, kind: Kind, some: Iterable[JsonObject]) -> None:
        await asyncio.gather(*(self.objects.create(kind, each) for each in some))

    async def _delete_all(self, kind: Kind, some: Iterable[JsonObject]) -> None:
        await asyncio.gather(*(self._delete(kind, each, AT_ONCE) for each in some))

    async def _delete(self, kind: Kind, obj: JsonObject, removal: Removal) -> None:
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        with suppress(NotFound):
            await self.objects.delete(kind, meta["name"], namespace=namespace, removal=removal)


def _read_answer(pod: JsonObject) -> Answer | None:
    if node := pod["spec"].get("nodeName"):
        return Answer(node)
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") != "SchedulingGated":
            return Answer(why=condition.get("message") or condition.get("reason") or "no reason")
    return None


def _is_ours(obj: JsonObject) -> bool:
    """Say whether an object belongs to these clusters: other tests may use the same server."""
    meta, spec = obj["metadata"], obj.get("spec") or {}
    if meta.get("namespace"):
        return bool(meta["namespace"].startswith(_OURS))
    storage_class = spec.get("storageClassName") or ""
    return meta["name"].startswith(_OURS) or storage_class.startswith(_OURS) or _is_node(obj)


def _is_node(obj: JsonObject) -> bool:
    return obj["kind"] in {NODE.name, CSI_NODE.name}
