"""Plays a story: a cluster, an operator, trouble, then calm."""

import asyncio
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final

from msgspec.structs import replace

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.codec.catalogs import kwok_catalog
from karpy.core.lifecycle.outcomes import Count, Remark
from karpy.errors import ClusterError, KarpyError
from karpy.model.instances import Catalog
from karpy.model.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    KWOK_NODE_CLASS,
    NODE_POOL,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from karpy.model.notices import Notice
from karpy.model.options import Options
from karpy.sim.crashes import Life
from karpy.sim.faults import Fault, Faults
from karpy.sim.faultyports import FaultyCloud, FaultyFeed, FaultyObjects
from karpy.sim.kubelets.timing import Timing
from karpy.sim.loop import run
from karpy.sim.world import World, WorldSettings
from karpy.wiring.operator import Operator, Surface
from tests.fuzz.dice import Dice
from tests.scenarios.manifests import node_class
from tests.scenarios.timeline import Timeline
from tests.swarm.acts import Act, calm_down, random_acts
from tests.swarm.clusters import Cluster, random_cluster
from tests.swarm.findings import Finding, Law
from tests.swarm.judge import is_waited_for, judge
from tests.swarm.troubles import Crash, GappyFeed, random_crashes, random_faults
from tests.swarm.watchdog import Watchdog
from tests.swarm.witnesses import WitnessedCloud, WitnessedObjects

QUIET_SECONDS: Final = 600
_LOOK_SECONDS: Final = 30
_CALM_SECONDS_MAX: Final = 2 * 3600
_CRASHES_MAX: Final = 20
_CPUS: Final = ("2x", "4x", "8x")
_SETTINGS: Final = WorldSettings(
    timing=Timing(boot_seconds=20, ready_seconds=5, jitter_percent=40),
    has_events=False,
)


@dataclass(frozen=True)
class Story:
    """Everything that a seed decides."""

    seed: int
    cluster: Cluster
    acts: list[Act]
    faults: list[Fault]
    crashes: list[Crash]
    seconds: int
    pauses: list[float]
    has_cloud: bool


def random_story(seed: int) -> Story:
    """Throw a story; the same seed gives the same one."""
    dice = Dice(seed)
    seconds = dice.one([120, 300, 900])
    return Story(
        seed=seed,
        cluster=random_cluster(dice),
        acts=random_acts(dice, seconds),
        faults=random_faults(dice),
        crashes=random_crashes(dice),
        seconds=seconds,
        pauses=[float(dice.number(0, 30)) for _ in range(4)],
        has_cloud=dice.chance(0.7),
    )


@dataclass
class Ending:
    """How a story ended."""

    findings: list[Finding] = field(default_factory=list)
    rest_second: float = 0.0
    """When everything had come to rest."""
    crashes: int = 0
    launches: int = 0
    timeline: str = ""


def play(seed: int, *, is_told: bool = False) -> Ending:
    """Play the story of a seed from its beginning to its end."""
    return run(_Play(random_story(seed), is_told=is_told).play())


def small_catalog() -> Catalog:
    """Return a dozen types in three zones, so that decisions are quick."""
    catalog = kwok_catalog()
    types = [
        each
        for each in catalog.types
        if each.name.endswith("linux")
        and each.name.split("-")[1] in _CPUS
        and each.name[0] in {"c", "m"}
    ]
    return replace(catalog, types=tuple(types))


class _Silence:
    """Hears everything and says nothing."""

    def tell(self, notice: Notice) -> None:
        del notice

    def count(self, count: Count) -> None:
        del count

    def remark(self, remark: Remark) -> None:
        del remark

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        assert isinstance(error, KarpyError), (controller, key, error)


class _Play:
    def __init__(self, story: Story, *, is_told: bool) -> None:
        self._story = story
        self._ending = Ending()
        self._faults = Faults(*story.faults, seed=story.seed)
        self._options = Options()
        self._world = World(
            replace(_SETTINGS, deletes_nodes=story.has_cloud),
            seed=story.seed,
            catalog=small_catalog(),
        )
        self._objects = WitnessedObjects(self._world, self._report)
        self._timeline = (
            Timeline(self._world.store, self._world.clock, small_catalog) if is_told else None
        )
        Watchdog(self._world, self._report)
        self._life: Life | None = None
        self._operator: Operator | None = None
        self._cloud: WitnessedCloud | None = None
        self._is_calm = False
        self._orders: list[str] = []

    async def play(self) -> Ending:
        """Let everything happen."""
        self._world.start()
        self._furnish()
        operating = asyncio.create_task(self._operate())
        try:
            await self._act()
            self._calm()
            await self._rest()
        finally:
            operating.cancel()
            if self._life is not None:
                self._life.end()
            await asyncio.gather(operating, return_exceptions=True)
            self._world.stop()
        if self._timeline is not None:
            self._ending.timeline = self._timeline.text()
        self._ending.launches = sum(each.startswith("launch") for each in self._orders)
        return self._ending

    def _furnish(self) -> None:
        store, cluster = self._world.store, self._story.cluster
        store.create(KWOK_NODE_CLASS, node_class())
        kinds = (
            (STORAGE_CLASS, cluster.storage_classes),
            (NODE_POOL, cluster.pools),
            (DISRUPTION_BUDGET, cluster.budgets),
            (DAEMON_SET, cluster.daemon_sets),
            (DEPLOYMENT, cluster.deployments),
            (STATEFUL_SET, cluster.stateful_sets),
        )
        for kind, objects in kinds:
            for each in objects:
                store.create(kind, each)

    async def _act(self) -> None:
        loop = asyncio.get_running_loop()
        for act in self._story.acts:
            await asyncio.sleep(act.second - loop.time())
            self._note(act.do(self._world))
        await asyncio.sleep(self._story.seconds - loop.time())

    def _calm(self) -> None:
        self._note("calm")
        self._faults.clear()
        calm_down(self._world)
        self._is_calm = True
        if self._life is not None and self._is_doomed:
            self._life.end()

    async def _rest(self) -> None:
        """Wait until nobody has written anything for a while, then look around."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _CALM_SECONDS_MAX
        counted, since = self._writes(), loop.time()
        while loop.time() - since < QUIET_SECONDS:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._writes() != counted or is_waited_for(self._world):
                counted, since = self._writes(), loop.time()
            if loop.time() > end:
                recent = [*self._objects.writes[-4:], *self._orders[-2:]]
                self._report(Law.QUIET, f"it still goes on: {recent}")
                break
        self._ending.rest_second = since
        if self._operator is not None and self._cloud is not None:
            seen = self._operator.mirror.snapshot()
            self._ending.findings += await judge(self._world, self._cloud, seen, self._options)

    async def _operate(self) -> None:
        """Have an operator, and another one whenever that dies."""
        crashes = iter(self._story.crashes)
        pauses = cycle(self._story.pauses)
        while self._ending.crashes < _CRASHES_MAX:
            crash = Crash() if self._is_calm else next(crashes, Crash())
            self._is_doomed = crash != Crash()
            self._life = crash.life()
            try:
                await self._life.run(self._live())
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
                self._hear_death(error)
            self._ending.crashes += 1
            self._note("the operator is dead")
            await asyncio.sleep(0.0 if self._is_calm else next(pauses))

    def _hear_death(self, error: Exception) -> None:
        """An operator that cannot even begin may die of that: somebody starts it again."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        has_begun = self._operator is not None and self._operator.mirror.is_listed
        if has_begun or not isinstance(error, ClusterError):
            self._report(Law.DEATH, repr(error))

    async def _live(self) -> None:
        world, faults = self._world, self._faults
        objects = FaultyObjects(self._objects, faults)
        kwok = KwokProvider(objects, world.clock, small_catalog())
        inner = world.cloud if self._story.has_cloud else kwok
        self._cloud = WitnessedCloud(inner, world, self._report)
        self._cloud.orders = self._orders
        catalog = world.cloud.market.catalog if self._story.has_cloud else small_catalog
        surface = Surface(
            objects=objects,
            feed=FaultyFeed(GappyFeed(world.store, faults), faults),
            clock=world.clock,
            cloud=FaultyCloud(self._cloud, faults),
            catalog=catalog,
        )
        silence = _Silence()
        self._operator = Operator(surface, self._options, notices=silence, voice=silence)
        kwok.start()
        try:
            await self._operator.run()
        finally:
            await kwok.close()

    def _writes(self) -> int:
        return len(self._objects.writes) + len(self._orders)

    def _report(self, law: Law, text: str) -> None:
        second = asyncio.get_running_loop().time()
        self._ending.findings.append(Finding(law, text, second))
        self._note(f"{law.name}: {text}")

    def _note(self, text: str) -> None:
        if text and self._timeline is not None:
            self._timeline.note(text)
