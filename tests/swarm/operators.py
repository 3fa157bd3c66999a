"""Operators that crash and restart, behind ports with faults."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import cycle
from typing import Final

from msgspec.structs import replace

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.adapters.kube.leases import Candidacy, Election
from karpy.codec.catalogs import kwok_catalog
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import Bug
from karpy.model.instances import Catalog
from karpy.model.notices import Notice
from karpy.model.settings import Options
from karpy.model.snapshot import Snapshot
from karpy.ports.cloud import CloudProvider
from karpy.sim.crashes import Life
from karpy.sim.faults import Faults
from karpy.sim.faultyports import FaultyCloud, FaultyFeed, FaultyObjects
from karpy.sim.world import World
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.surface import Surface
from tests.swarm.disruptions import Budgets, Ledger, Moves
from tests.swarm.findings import Law
from tests.swarm.troubles import Crash, GappyFeed, Outage
from tests.swarm.witnesses import Deadlines, Report, WitnessedCloud, WitnessedObjects

_LIVES_MAX: Final = 50
_SIZES: Final = ("2x", "4x", "8x")


def small_catalog() -> Catalog:
    """Return a catalog of a dozen types, so that decisions are fast."""
    catalog = kwok_catalog()
    types = [
        each
        for each in catalog.types
        if each.name.endswith("linux")
        and each.name.split("-")[1] in _SIZES
        and each.name[0] in {"c", "m"}
    ]
    return replace(catalog, types=tuple(types))


SMALL: Final = small_catalog()


class StoryContext:
    """The world, the recording ports and the checks that all operators of a story share."""

    def __init__(
        self,
        world: World,
        faults: Faults,
        options: Options,
        report: Report,
        *,
        has_cloud: bool,
    ) -> None:
        self.world = world
        self.faults = faults
        self.options = options
        self.report = report
        self.has_cloud = has_cloud
        self.catalog = world.cloud.market.catalog if has_cloud else lambda: SMALL
        self.outage = Outage()
        self._deadlines = Deadlines(world)
        self.objects = WitnessedObjects(world, report, self.outage, self._deadlines)
        self.orders: list[str] = []
        """Launches and terminations."""
        self.acting: set[str] = set()
        self.operator: KarpyOperator | None = None
        """The operator that began to act last."""
        self.ledger = Ledger(report)
        budgets, moves = Budgets(world, report), Moves(world, report, self._snapshot)
        self.objects.on_disruption += [budgets.note, moves.note]

    def cloud(self, kwok: KwokProvider) -> CloudProvider:
        inner = self.world.cloud if self.has_cloud else kwok
        witness = WitnessedCloud(inner, self.world, self.report, self._deadlines)
        witness.orders = self.orders
        return witness

    @property
    def action_count(self) -> int:
        """The number of writes, launches and terminations so far."""
        return len(self.objects.writes) + len(self.orders)

    def _snapshot(self) -> Snapshot | None:
        """Return the snapshot of the operator."""
        return None if self.operator is None else self.operator.mirror.snapshot()

    def emit(self, notice: Notice) -> None:
        del notice

    def count(self, count: Count) -> None:
        del count

    def remark(self, remark: Remark) -> None:
        del remark

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        if isinstance(error, Bug):
            self.report(Law.DEATH, f"{controller} fails with {key}: {error!r}")


class Replica:
    """One operator process, restarted whenever it ends."""

    def __init__(
        self, name: str, context: StoryContext, crashes: list[Crash], pauses: list[float]
    ) -> None:
        self.name = name
        self.lives = 0
        self.operator: KarpyOperator | None = None
        self.cloud: CloudProvider | None = None
        self._context = context
        self._crashes = list(crashes)
        self._pauses = cycle(pauses)
        self._life = Life()
        self._is_doomed = False
        self._is_calm = False

    async def run(self, *, has_rivals: bool) -> None:
        """Run and restart the operator until cancelled."""
        while self.lives < _LIVES_MAX:
            self.lives += 1
            crash = Crash() if self._is_calm or not self._crashes else self._crashes.pop(0)
            self._is_doomed = crash != Crash()
            self._life = crash.life()
            live = self._live(has_rivals=has_rivals)
            [outcome] = await asyncio.gather(self._life.run(live), return_exceptions=True)
            self._context.acting.discard(self.name)
            if isinstance(outcome, Exception):
                self._context.report(Law.DEATH, repr(_cause(outcome)))
            await asyncio.sleep(0.0 if self._is_calm else next(self._pauses))

    def calm(self) -> None:
        """Cause the pending crash now, and no more crashes later."""
        self._is_calm = True
        if self._is_doomed:
            self._life.end()

    def end(self) -> None:
        """Kill the operator."""
        self._life.end()

    async def _live(self, *, has_rivals: bool) -> None:
        context = self._context
        world, faults = context.world, context.faults
        objects = FaultyObjects(context.objects, faults)
        kwok = KwokProvider(objects, world.clock, SMALL)
        cloud = context.cloud(kwok)
        surface = Surface(
            objects=objects,
            feed=FaultyFeed(GappyFeed(world.store, faults, context.outage), faults),
            clock=world.clock,
            cloud=FaultyCloud(cloud, faults),
        )
        operator = KarpyOperator(
            surface, context.options, notices=context, voice=context, journal=context.ledger
        )

        async def act() -> None:
            self.operator, self.cloud, context.operator = operator, cloud, operator
            self._become_current()
            kwok.start()
            try:
                await operator.act()
            finally:
                await kwok.close()
                context.acting.discard(self.name)

        candidacy = Candidacy("kube-system", identity=f"{self.name}-{self.lives}")
        election = Election(objects, world.clock, candidacy, dice=lambda: 0.5)
        working = _led(election, act) if has_rivals else act()
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(operator.watch())
            group.create_task(working).add_done_callback(lambda _: watching.cancel())

    def _become_current(self) -> None:
        if self._context.acting:
            rivals = ", ".join(sorted(self._context.acting))
            self._context.report(Law.ONE_LEADER, f"{self.name} leads beside {rivals}")
        self._context.acting.add(self.name)


async def _led(election: Election, act: Callable[[], Awaitable[None]]) -> None:
    await election.lead(act)


def _cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
