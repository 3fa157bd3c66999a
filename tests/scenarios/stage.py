"""A stage: a world on virtual time, with operators and a timeline."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.adapters.kube.events import EventRecorder
from karpy.adapters.kube.leases import Candidacy, Election
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.kinds import DEPLOYMENT, NODE, NODE_CLAIM, POD, Kind
from karpy.model.nodes import RepairPolicy
from karpy.model.settings import Options
from karpy.ports.cloud import CloudProvider
from karpy.ports.objects import Patch, PatchType, Query
from karpy.sim.crashes import Life
from karpy.sim.faults import Faults
from karpy.sim.faultyports import FaultyCloud, FaultyObjects
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.world import START, World, WorldSettings
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.surface import Surface
from tests.scenarios.timeline import Timeline

NAMESPACE: Final = "default"
KWOK: Final = WorldSettings(timing=KubeletTiming(ready_seconds=0), has_events=False)
"""KWOK nodes are Ready as soon as they are created."""
CLOUD: Final = WorldSettings(has_events=False)
_PATIENCE: Final = 1800
_LOOKS: Final = 0.25


class Failure(Struct, frozen=True):
    """An error of a controller."""

    controller: str
    key: str
    error: BaseException


class Quiet:
    """Collects counts, log lines and failures."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self.counts: list[Count] = []
        self.remarks: list[Remark] = []

    def count(self, count: Count) -> None:
        self.counts.append(count)

    def remark(self, remark: Remark) -> None:
        self.remarks.append(remark)

    def counted(self, metric: str, **labels: str) -> float:
        """Return the sum of a metric over all counts with some labels."""
        return sum(
            each.value
            for each in self.counts
            if each.metric == metric and labels.items() <= each.labels.items()
        )

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        self.failures.append(Failure(controller, key, error))


class _Startable(Protocol):
    def start(self) -> None: ...

    async def close(self) -> None: ...


class _Nothing:
    """Replaces the provider's background work: the cloud of the world needs no start."""

    def start(self) -> None:
        return

    async def close(self) -> None:
        return


class MendingCloud(FaultyCloud):
    """A cloud with the repair policies of KWOK, which can reboot machines."""

    def __init__(self, cloud: CloudProvider, faults: Faults, world: World) -> None:
        super().__init__(cloud, faults)
        self._world = world

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return REPAIR_POLICIES

    async def reboot(self, provider_id: str, operation: str) -> None:
        del operation
        self._world.kubelets.reboot(self._world.cloud.node_of(provider_id))


class Stage:
    """
    A cluster without nodes, with helpers that act on it and record a timeline.

    With `has_cloud`, machines are launched in the cloud of the world, with stock, delays and
    failures; without, Nodes appear at once, as with KWOK. `has_zones` shows the zones of machines
    in the timeline: without a rule on zones KWOK chooses one by the random name of the claim.
    """

    def __init__(
        self,
        settings: WorldSettings | None = None,
        *,
        options: Options | None = None,
        has_cloud: bool = False,
        has_zones: bool = False,
        start: datetime = START,
        seed: int = 0,
    ) -> None:
        self.world = World(settings or (CLOUD if has_cloud else KWOK), seed=seed, start=start)
        self.store = self.world.store
        self.options = options or Options()
        self.faults = Faults(seed=seed)
        self.voice = Quiet()
        self._has_cloud = has_cloud
        self.catalog = self.world.cloud.market.catalog if has_cloud else kwok_catalog
        self.timeline = Timeline(
            self.store, self.world.clock, self.catalog, has_zones=has_zones or has_cloud
        )
        self._lives: dict[str, tuple[Life, asyncio.Task[bool]]] = {}

    # --- operators ---------------------------------------------------------------------------

    def hire(self, name: str = "karpy", *, is_elected: bool = False) -> None:
        """Start an operator, as `karpy run` does; with `is_elected` it waits for the lease."""
        life = Life()
        task = asyncio.create_task(life.run(self._live(name, is_elected=is_elected)))
        self._lives[name] = life, task

    async def kill(self, name: str = "karpy") -> None:
        """Kill an operator without cleanup, as `kill -9` does."""
        life, task = self._lives.pop(name)
        life.end()
        await task

    async def close(self) -> None:
        """Kill all operators and stop the world."""
        for name in list(self._lives):
            await self.kill(name)
        self.world.stop()

    async def _live(self, name: str, *, is_elected: bool) -> None:
        world, clock = self.world, self.world.clock
        objects = FaultyObjects(world.objects, self.faults)
        kwok = KwokProvider(objects, clock, kwok_catalog())
        nodes: _Startable = _Nothing() if self._has_cloud else kwok
        recorder = EventRecorder(objects, clock, instance=name)
        operator = KarpyOperator(
            Surface(
                objects=objects,
                feed=world.objects,
                clock=clock,
                cloud=MendingCloud(world.cloud if self._has_cloud else kwok, self.faults, world),
            ),
            self.options,
            notices=recorder,
            voice=self.voice,
        )

        async def act() -> None:
            if is_elected:
                self.timeline.note(f"{name} leads")
            nodes.start()
            try:
                await operator.act()
            finally:
                await nodes.close()

        election = Election(
            objects, clock, Candidacy("kube-system", identity=name), dice=lambda: 0.5
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(recorder.run())
            group.create_task(operator.watch())
            group.create_task(_led(election, act) if is_elected else act())

    # --- acts of users -----------------------------------------------------------------------

    def apply(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Create an object."""
        return self.store.create(kind, obj)

    def scale(self, name: str, replicas: int) -> None:
        """Set the replicas of a Deployment."""
        self.timeline.note(f"scale {name} to {replicas}")
        patch = Patch(PatchType.MERGE, {"spec": {"replicas": replicas}})
        self.store.patch(DEPLOYMENT, name, patch, namespace=NAMESPACE)

    def change(self, kind: Kind, name: str, body: JsonObject, why: str) -> None:
        """Change an object."""
        self.timeline.note(why)
        namespace = NAMESPACE if kind.is_namespaced else ""
        self.store.patch(kind, name, Patch(PatchType.MERGE, body), namespace=namespace)

    def delete(self, kind: Kind, name: str) -> None:
        """Delete an object, as kubectl does."""
        self.timeline.note(f"delete {kind.name.lower()} {name}")
        self.store.delete(kind, name, namespace=NAMESPACE if kind.is_namespaced else "")

    def delete_node_of(self, app: str) -> None:
        """Delete the node of the first pod of an app."""
        self.delete(NODE, self.pods(app)[0]["spec"]["nodeName"])

    def untaint(self, why: str, key: str) -> None:
        """Remove a taint from all nodes, as an agent on them does."""
        for node in self.nodes:
            kept = [each for each in node["spec"].get("taints") or () if each["key"] != key]
            self.change(NODE, node["metadata"]["name"], {"spec": {"taints": kept}}, why)

    # --- state ---------------------------------------------------------------------------------

    @property
    def claims(self) -> list[JsonObject]:
        return self.store.list(NODE_CLAIM)

    @property
    def nodes(self) -> list[JsonObject]:
        return self.store.list(NODE)

    def pods(self, app: str = "") -> list[JsonObject]:
        return self.store.list(POD, Query(NAMESPACE, labels=f"app={app}" if app else ""))

    def names(self, kind: Kind) -> list[str]:
        return [each["metadata"]["name"] for each in self.store.list(kind)]

    def pods_by_label(self, app: str, label: str) -> dict[str, int]:
        """Count the pods of an app by a label of their nodes."""
        nodes = {each["metadata"]["name"]: each["metadata"]["labels"] for each in self.nodes}
        return dict(Counter(nodes[each["spec"]["nodeName"]][label] for each in self.pods(app)))

    def is_running(self, app: str, count: int) -> bool:
        """Say whether an app has exactly `count` pods, and all of them run."""
        pods = self.pods(app)
        return len(pods) == count and all(
            each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
            for each in pods
        )

    async def until(self, holds: Callable[[], bool], seconds: int = _PATIENCE) -> None:
        """Wait until a condition holds; fail with the timeline after a timeout."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not holds():
            if loop.time() > end:
                raise AssertionError("it did not happen\n" + self.timeline.text())
            await asyncio.sleep(_LOOKS)

    async def until_running(self, app: str, count: int) -> None:
        await self.until(lambda: self.is_running(app, count))

    async def until_empty(self) -> None:
        """Wait until no claim and no node is left."""
        await self.until(lambda: not self.claims and not self.nodes)


async def _led(election: Election, act: Callable[[], Awaitable[None]]) -> None:
    await election.lead(act)


@asynccontextmanager
async def staged(
    settings: WorldSettings | None = None,
    *,
    options: Options | None = None,
    has_cloud: bool = False,
    has_zones: bool = False,
    has_operator: bool = True,
    start: datetime = START,
) -> AsyncIterator[Stage]:
    """Run a stage, by default with an operator."""
    stage = Stage(settings, options=options, has_cloud=has_cloud, has_zones=has_zones, start=start)
    stage.world.start()
    if has_operator:
        stage.hire()
    try:
        yield stage
    finally:
        await stage.close()
