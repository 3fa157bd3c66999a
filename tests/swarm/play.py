"""Plays a story: a cluster, operators, failures, then a calm end."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from karpy.model.kinds import (
    CAPACITY_BUFFER,
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    KWOK_NODE_CLASS,
    NODE_POOL,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from karpy.model.settings import Gates, Options
from karpy.sim.faults import Faults, InjectedFault
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.loop import run
from karpy.sim.world import World, WorldSettings
from tests.fuzz.dice import Dice
from tests.scenarios.manifests import node_class
from tests.scenarios.timeline import Timeline
from tests.swarm.acts import Act, calm_down, random_acts
from tests.swarm.clusters import Cluster, random_cluster
from tests.swarm.findings import Finding, Law
from tests.swarm.judge import is_waited_for, judge
from tests.swarm.operators import SMALL, Replica, StoryContext
from tests.swarm.troubles import (
    CLOSED_POOL,
    ClosedPool,
    Crash,
    random_crashes,
    random_faults,
    random_outages,
)
from tests.swarm.watchdog import Watchdog

QUIET_SECONDS: Final = 600
"""A story ends after this time without writes."""
_LOOK_SECONDS: Final = 30
_LAUNCHES_IN_THE_FIRST_HOUR: Final = 20
"""Most launches in vain for one pod by one operator: one at once, and one after each pause."""
_CALM_SECONDS_MAX: Final = 2 * 3600
_SETTINGS: Final = WorldSettings(
    timing=KubeletTiming(boot_seconds=20, ready_seconds=5, jitter_percent=40), has_events=False
)
_OPTIONS: Final = Options(gates=Gates(static_capacity=True, capacity_buffer=True))


@dataclass(frozen=True)
class Story:
    """All that follows from a seed."""

    seed: int
    cluster: Cluster
    acts: list[Act]
    faults: list[InjectedFault]
    crashes: list[Crash]
    outages: list[tuple[float, float]]
    """The begin and the duration of each outage."""
    seconds: int
    pauses: list[float]
    has_cloud: bool
    has_standby: bool
    has_closed_pool: bool


@dataclass
class Ending:
    """The result of a story."""

    findings: list[Finding] = field(default_factory=list)
    rest_second: float = 0.0
    """The second of the last write."""
    lives: int = 0
    launches: int = 0
    timeline: str = ""


def random_story(seed: int) -> Story:
    """Draw a story; equal seeds give equal stories."""
    dice = Dice(seed)
    seconds = dice.one([120, 300, 900, 1800])
    return Story(
        seed=seed,
        cluster=random_cluster(dice),
        acts=random_acts(dice, seconds),
        faults=random_faults(dice),
        crashes=random_crashes(dice),
        outages=random_outages(dice, seconds),
        seconds=seconds,
        pauses=[float(dice.number(0, 30)) for _ in range(4)],
        has_cloud=dice.chance(0.7),
        has_standby=dice.chance(0.15),
        has_closed_pool=dice.chance(0.25),
    )


def play(story: Story, *, has_timeline: bool = False) -> Ending:
    """Play a story from its beginning to its end; `has_timeline` writes a timeline."""
    return run(_Play(story, has_timeline=has_timeline).play())


class _Play:
    def __init__(self, story: Story, *, has_timeline: bool) -> None:
        self._story = story
        self._ending = Ending()
        settings = replace(_SETTINGS, deletes_nodes=story.has_cloud)
        self._world = World(settings, seed=story.seed, catalog=SMALL)
        self._timeline = (
            Timeline(self._world.store, self._world.clock, lambda: SMALL) if has_timeline else None
        )
        self._faults = Faults(*story.faults, seed=story.seed)
        self._context = StoryContext(
            self._world, self._faults, _OPTIONS, self._report, has_cloud=story.has_cloud
        )
        names = ("karpy-1", "karpy-2") if story.has_standby else ("karpy-1",)
        self._replicas = [
            Replica(name, self._context, story.crashes[number :: len(names)], story.pauses)
            for number, name in enumerate(names)
        ]
        self._closed_pool = ClosedPool(self._world)
        Watchdog(self._world, self._report)

    async def play(self) -> Ending:
        """Play the story."""
        self._world.start()
        self._furnish()
        if self._story.has_closed_pool:
            self._closed_pool.begin()
        for second, lasting in self._story.outages:
            asyncio.get_running_loop().call_later(second, self._context.outage.begin, lasting)
        has_rivals = len(self._replicas) > 1
        tasks = [asyncio.create_task(each.run(has_rivals=has_rivals)) for each in self._replicas]
        try:
            await self._act()
            await self._context.outage.wait()
            self._calm()
            await self._rest()
        finally:
            for task, replica in zip(tasks, self._replicas, strict=True):
                task.cancel()
                replica.end()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._world.stop()
        self._ending.lives = sum(each.lives for each in self._replicas)
        self._ending.launches = sum(each.startswith("launch") for each in self._context.orders)
        self._ending.timeline = "" if self._timeline is None else self._timeline.text()
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
            (CAPACITY_BUFFER, cluster.buffers),
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
        self._closed_pool.end()
        for replica in self._replicas:
            replica.calm()

    async def _rest(self) -> None:
        """Wait until there were no writes for a while, then check the laws."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _CALM_SECONDS_MAX
        counted, since = self._context.action_count, loop.time()
        while loop.time() - since < QUIET_SECONDS:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._context.action_count != counted or is_waited_for(self._world):
                counted, since = self._context.action_count, loop.time()
            if loop.time() > end:
                recent = [*self._context.objects.writes[-4:], *self._context.orders[-2:]]
                self._report(Law.QUIET, f"it still goes on: {recent}")
                break
        self._ending.rest_second = since
        await self._judge()

    def _count_launches(self) -> None:
        """Check that the launches in vain for the pod of the closed NodePool were few."""
        launches = {
            each for each in self._context.orders if each.startswith(f"launch {CLOSED_POOL}-")
        }
        lives = sum(each.lives for each in self._replicas)
        if len(launches) > lives * _LAUNCHES_IN_THE_FIRST_HOUR:
            self._report(Law.RUNAWAY, f"{len(launches)} machines for one pod")

    async def _judge(self) -> None:
        self._count_launches()
        leaders = [each for each in self._replicas if each.name in self._context.acting]
        if len(leaders) != 1 or leaders[0].operator is None or leaders[0].cloud is None:
            self._report(Law.ONE_LEADER, f"{len(leaders)} operators act in the end")
            return
        seen = leaders[0].operator.mirror.snapshot()
        for each in await judge(self._world, leaders[0].cloud, seen, _OPTIONS):
            self._report(each.law, each.text)

    def _report(self, law: Law, text: str) -> None:
        second = asyncio.get_running_loop().time()
        self._ending.findings.append(Finding(law, text, second))
        self._note(f"{law.name}: {text}")

    def _note(self, text: str) -> None:
        if text and self._timeline is not None:
            self._timeline.note(text)
