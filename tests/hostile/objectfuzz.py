"""An operator among objects that a seed has spoilt, and what must hold all the same."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import thread_time
from typing import Final, Generic, TypeVar
from unittest.mock import patch

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.codec.fields import JsonObject
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import Bug
from karpy.model.constraints import SpreadConstraint, WhenUnsatisfiable
from karpy.model.kinds import (
    CAPACITY_BUFFER,
    CSI_NODE,
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    KWOK_NODE_CLASS,
    LIMIT_RANGE,
    NODE_CLAIM,
    NODE_OVERLAY,
    NODE_POOL,
    PERSISTENT_VOLUME,
    POD,
    POD_TEMPLATE,
    REPLICATION_CONTROLLER,
    RUNTIME_CLASS,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Kind,
)
from karpy.model.labels import ZONE
from karpy.model.notices import Notice
from karpy.model.settings import Gates, Options
from karpy.ports.objects import (
    EVERYTHING,
    Change,
    Page,
    Patch,
    PatchType,
    Query,
    Reader,
    Synced,
)
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.loop import run
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store
from karpy.sim.world import World, WorldSettings
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.surface import Surface
from tests.hostile.mutations import KEPT, WITNESS, Mutations, encode
from tests.scenarios.manifests import (
    NODE_CLASS,
    budget,
    daemon_set,
    deployment,
    limit_range,
    node_class,
    one_of,
    pod_spec,
    pool,
    stateful_set,
    storage_class,
)
from tests.swarm.operators import SMALL

T = TypeVar("T")

STEP_SECONDS: Final = 1.0
"""No step on the event loop takes more of a processor."""
_ACT_SECONDS: Final = 120
_REPLICAS: Final = 3
_OPTIONS: Final = Options(
    gates=Gates(static_capacity=True, capacity_buffer=True, node_overlay=True, node_repair=True),
    default_spreads=(SpreadConstraint(ZONE, 1, WhenUnsatisfiable.SCHEDULE_ANYWAY),),
)
_SETTINGS: Final = WorldSettings(
    timing=KubeletTiming(boot_seconds=10, ready_seconds=2), has_events=False
)
_TAINT: Final = {"key": WITNESS, "effect": "NoSchedule", "value": "yes"}
_DO_NOT_DISRUPT: Final = {"karpenter.sh/do-not-disrupt": "true"}


@dataclass
class Ending:
    """What a seed has shown."""

    findings: list[str] = field(default_factory=list)
    set_aside: int = 0
    """How many versions of objects could not be read."""
    kinds: set[Kind] = field(default_factory=set)
    """The kinds of the objects that were read."""
    contained: list[str] = field(default_factory=list)
    """Unforeseen failures, each held by the barrier around one object."""


def play(seed: int) -> Ending:
    """Have an operator keep a cluster of which some objects are spoilt."""
    return run(_Play(seed).play())


class SpoiltObjects(EmbeddedObjects):
    """What an API server says, with some objects spoilt; what is written goes to the real ones."""

    def __init__(self, store: Store, mutations: Mutations, ending: Ending) -> None:
        super().__init__(store)
        self._sound = EmbeddedObjects(store, unreadable=lambda *_: self._note_unreadable())
        self._mutations = mutations
        self._ending = ending

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        self._ending.kinds.add(kind)
        return self._mutations.spoil(kind, await super().get(kind, name, namespace))

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        page = await super().list(kind, query, limit=limit, token=token)
        self._ending.kinds |= {kind} if page.items else set()
        items = tuple(self._mutations.spoil(kind, each) for each in page.items)
        return Page(items, page.version, page.token, page.remaining)

    def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[T] | Synced]:
        spoilt = _SpoiltReader(kind, reader, self._mutations, self._ending)
        return self._sound.follow(kind, spoilt, query)

    def _note_unreadable(self) -> None:
        self._ending.set_aside += 1


class _SpoiltReader(Generic[T]):
    """Reads objects from bytes, as over the wire."""

    def __init__(self, kind: Kind, reader: Reader[T], mutations: Mutations, ending: Ending) -> None:
        self._kind = kind
        self._reader = reader
        self._mutations = mutations
        self._ending = ending

    def from_object(self, obj: JsonObject) -> T:
        self._ending.kinds.add(self._kind)
        return self._reader.from_bytes(encode(self._mutations.spoil(self._kind, obj)))

    def from_bytes(self, data: bytes) -> T:
        return self._reader.from_bytes(data)


class _Play:
    def __init__(self, seed: int) -> None:
        self._ending = Ending()
        self._world = World(_SETTINGS, seed=seed, catalog=SMALL)
        self._objects = SpoiltObjects(self._world.store, Mutations(seed), self._ending)

    def emit(self, notice: Notice) -> None:
        del notice

    def count(self, count: Count) -> None:
        del count

    def remark(self, remark: Remark) -> None:
        del remark

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        if isinstance(error, Bug):
            self._ending.contained.append(f"{controller} with {key}: {error.__cause__!r}")

    async def play(self) -> Ending:
        """Let everything happen."""
        world = self._world
        world.start()
        self._furnish()
        kwok = KwokProvider(self._objects, world.clock, SMALL)
        surface = Surface(self._objects, self._objects, world.clock, kwok)
        operator = KarpyOperator(surface, _OPTIONS, notices=self, voice=self)
        kwok.start()
        task = asyncio.create_task(operator.run())
        try:
            with self._timed_steps():
                await self._act(task)
        finally:
            task.cancel()
            await asyncio.wait((task,))
            await kwok.close()
            world.stop()
        return self._ending

    async def _act(self, task: "asyncio.Task[None]") -> None:
        await asyncio.sleep(_ACT_SECONDS)
        kept = self._nodes_of(KEPT)
        self._scale(WITNESS, _REPLICAS)
        await asyncio.sleep(_ACT_SECONDS)
        if (running := self._running(WITNESS)) != _REPLICAS:
            self._find(f"{running} of {_REPLICAS} pods of {WITNESS} run")
        self._scale(WITNESS, 0)
        self._scale("web", 0)
        await asyncio.sleep(2 * _ACT_SECONDS)
        if self._nodes_of(WITNESS, NODE_CLAIM):
            self._find("the nodes of nothing but daemons stay")
        if not kept <= self._nodes_of(KEPT):
            self._find(f"the nodes {sorted(kept)} of pods that forbid it were disrupted")
        if task.done():
            self._find(f"the operator has ended: {task.exception()!r}")

    def _furnish(self) -> None:
        made: list[tuple[Kind, JsonObject]] = [
            (KWOK_NODE_CLASS, node_class()),
            (KWOK_NODE_CLASS, {"metadata": {"name": WITNESS}}),
            (STORAGE_CLASS, storage_class("fast")),
            (NODE_POOL, pool(disruption={"consolidateAfter": "5s"})),
            (NODE_POOL, pool("other", limits={"cpu": "100"}, weight=10)),
            (NODE_POOL, _witness_pool()),
            (NODE_POOL, pool("fixed", replicas=1)),
            (NODE_OVERLAY, _overlay()),
            (DEPLOYMENT, deployment("web", 3, pod=pod_spec("1", "1Gi"))),
            (DEPLOYMENT, deployment(WITNESS, 1, pod=_witness_pod())),
            (STATEFUL_SET, stateful_set("db", 2, "fast")),
            (LIMIT_RANGE, limit_range(defaultRequest={"memory": "64Mi"})),
            (RUNTIME_CLASS, _runtime_class()),
            (PERSISTENT_VOLUME, _volume()),
            (VOLUME_ATTACHMENT, _attachment()),
            (CSI_NODE, _csi_node()),
            (SERVICE, _in_default("web", selector={"app": "web"}, ports=[{"port": 80}])),
            (REPLICATION_CONTROLLER, _controller()),
            (POD_TEMPLATE, _template()),
            (DAEMON_SET, daemon_set("agent", pod_spec("100m", runtimeClassName="sandbox"))),
            (DISRUPTION_BUDGET, budget("web", minAvailable=1)),
            (CAPACITY_BUFFER, _buffer()),
            (CAPACITY_BUFFER, _in_default("spare", podTemplateRef={"name": "web"}, replicas=1)),
            (POD, _kept_pod()),
        ]
        for kind, obj in made:
            self._world.store.create(kind, obj)

    def _scale(self, name: str, replicas: int) -> None:
        scaled = Patch(PatchType.MERGE, {"spec": {"replicas": replicas}})
        self._world.store.patch(DEPLOYMENT, name, scaled, namespace="default")

    def _running(self, name: str) -> int:
        return sum(
            each["metadata"]["name"].startswith(name)
            and each.get("status", {}).get("phase") == "Running"
            for each in self._world.store.list(POD)
        )

    def _nodes_of(self, word: str, kind: Kind = POD) -> set[str]:
        """Return where the pods with a word in their name are, or the claims of such a pool."""
        store = self._world.store
        if kind == NODE_CLAIM:
            return {
                each["metadata"]["name"]
                for each in store.list(kind)
                if each["metadata"]["labels"]["karpenter.sh/nodepool"] == word
            }
        return {
            each["spec"]["nodeName"]
            for each in store.list(kind)
            if word in each["metadata"]["name"] and each["spec"].get("nodeName")
        }

    @contextmanager
    def _timed_steps(self) -> Iterator[None]:
        """Find steps that hold the event loop for too long."""
        original: Callable[[asyncio.Handle], None] = vars(asyncio.Handle)["_run"]

        def timed(handle: asyncio.Handle) -> None:
            began = thread_time()
            original(handle)
            if (took := thread_time() - began) > STEP_SECONDS:
                self._find(f"a step takes {took:.1f} s: {handle!r}"[:300])

        with patch.object(asyncio.Handle, "_run", timed):
            yield

    def _find(self, text: str) -> None:
        self._ending.findings.append(text)


def _witness_pool() -> JsonObject:
    return pool(
        WITNESS,
        labels={"for": WITNESS},
        template={"taints": [_TAINT], "nodeClassRef": {**NODE_CLASS, "name": WITNESS}},
        disruption={"consolidateAfter": "5s"},
    )


def _witness_pod() -> JsonObject:
    return pod_spec(
        "1",
        tolerations=[{"key": WITNESS, "operator": "Exists"}],
        nodeSelector={"for": WITNESS},
    )


def _kept_pod() -> JsonObject:
    return {
        "metadata": {"name": KEPT, "namespace": "default", "annotations": _DO_NOT_DISRUPT},
        "spec": {**pod_spec("1"), "affinity": {"nodeAffinity": _near()}},
    }


def _near() -> JsonObject:
    terms = [{"matchExpressions": [_linux()]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _overlay() -> JsonObject:
    return {
        "metadata": {"name": "dear"},
        "spec": {
            "requirements": [one_of("kubernetes.io/arch", "arm64")],
            "priceAdjustment": "+10%",
        },
    }


def _buffer() -> JsonObject:
    return {
        "metadata": {"name": "room", "namespace": "default"},
        "spec": {
            "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"},
            "replicas": 1,
        },
    }


def _in_default(name: str, **spec: object) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _runtime_class() -> JsonObject:
    tolerations = [{"key": "sandbox", "operator": "Exists"}]
    return {
        "metadata": {"name": "sandbox"},
        "handler": "runsc",
        "overhead": {"podFixed": {"memory": "16Mi"}},
        "scheduling": {"nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": tolerations},
    }


def _volume() -> JsonObject:
    source = {"driver": "csi.example.com", "volumeHandle": "v"}
    return {
        "metadata": {"name": "old"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": source,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [_linux()]}]}},
        },
    }


def _attachment() -> JsonObject:
    source = {"persistentVolumeName": "old"}
    spec = {"attacher": "csi.example.com", "nodeName": "elsewhere", "source": source}
    return {"metadata": {"name": "old"}, "spec": spec}


def _csi_node() -> JsonObject:
    driver = {"name": "csi.example.com", "nodeID": "elsewhere", "allocatable": {"count": 10}}
    return {"metadata": {"name": "elsewhere"}, "spec": {"drivers": [driver]}}


def _controller() -> JsonObject:
    labels = {"app": "old"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec("100m")}
    return _in_default("old", replicas=1, selector=labels, template=template)


def _template() -> JsonObject:
    meta = {"name": "web", "namespace": "default"}
    return {
        "metadata": meta,
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec()},
    }


def _linux() -> JsonObject:
    return one_of("kubernetes.io/os", "linux")
