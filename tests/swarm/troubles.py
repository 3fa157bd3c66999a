"""Random faults between an operator and its world, and when it dies."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from karpy.errors import Expired
from karpy.model.kinds import NODE, NODE_CLAIM, POD, Kind
from karpy.ports.objects import EVERYTHING, EventType, Page, Query, WatchEvent
from karpy.sim.crashes import Life
from karpy.sim.faults import (
    WRITES,
    Fault,
    Faults,
    cloud_unavailable,
    conflict,
    no_capacity,
    server_fault,
    throttled,
    unreachable,
)
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store
from tests.fuzz.dice import Dice

_CLOUD: Final = ("catalog", "launch", "terminate", "machine", "machines", "drift")
_READS: Final = ("get", "list")
_GAP: Final = "gap"
_GONE: Final = 410


@dataclass(frozen=True)
class Crash:
    """When an operator dies: at its n-th await, or at its n-th call, made or not."""

    awaits: int = 0
    calls: int = 0
    is_call_done: bool = False

    def life(self) -> Life:
        return Life(
            crash_at_await=self.awaits, crash_at_call=self.calls, is_call_done=self.is_call_done
        )


def random_crashes(dice: Dice) -> list[Crash]:
    """Throw when operators die, one after the other."""
    return [_random_crash(dice) for _ in range(dice.one([0, 0, 1, 1, 2, 3]))]


def _random_crash(dice: Dice) -> Crash:
    if dice.chance(0.5):
        return Crash(awaits=dice.number(1, 10 ** dice.number(1, 4)))
    return Crash(calls=dice.number(1, 10 ** dice.number(1, 2)), is_call_done=dice.chance(0.5))


def random_faults(dice: Dice) -> list[Fault]:
    """Throw what goes wrong: a few kinds of trouble, some of it often, some of it once."""
    return [_random_fault(dice) for _ in range(dice.one([0, 1, 2, 3, 4]))]


def _random_fault(dice: Dice) -> Fault:
    nth = dice.number(1, 30) if dice.chance(0.4) else 0
    percent = 100 if nth else dice.one([2, 5, 10, 20])
    match dice.number(0, 6):
        case 0:
            return Fault(conflict, ("replace", "patch", "delete"), nth=nth, percent=percent)
        case 1:
            error = dice.one([server_fault, unreachable, throttled])
            kind = dice.one([None, NODE, NODE_CLAIM, POD])
            return Fault(error, (*WRITES, *_READS), kind=kind, nth=nth, percent=percent)
        case 2:
            return Fault(unreachable, WRITES, nth=nth, percent=percent, is_answer_lost=True)
        case 3:
            is_lost = dice.chance(0.5)
            return Fault(
                cloud_unavailable, _CLOUD, nth=nth, percent=percent, is_answer_lost=is_lost
            )
        case 4:
            return Fault(no_capacity, ("launch",), nth=nth, percent=percent)
        case 5:
            return Fault(None, (_GAP,), nth=nth, percent=percent)
        case _:
            return _random_delay(dice, percent=percent)


def _random_delay(dice: Dice, percent: int) -> Fault:
    calls: tuple[str, ...] = dice.one([("event",), WRITES, _CLOUD])
    return Fault(None, calls, percent=percent, delay_seconds=dice.one([0.1, 0.5, 2.0]))


class Outage:
    """Times at which the API server cannot be reached at all."""

    def __init__(self) -> None:
        self._end = 0.0

    def begin(self, seconds: float) -> None:
        """Be out of reach from now on."""
        self._end = asyncio.get_running_loop().time() + seconds

    @property
    def is_on(self) -> bool:
        return asyncio.get_running_loop().time() < self._end

    def check(self) -> None:
        """Raise Unreachable if it is."""
        if self.is_on:
            raise unreachable()

    async def wait(self) -> None:
        """Wait until it is over."""
        await asyncio.sleep(max(0.0, self._end - asyncio.get_running_loop().time()))


def random_outages(dice: Dice, seconds: int) -> list[tuple[float, float]]:
    """Throw when the API server is out of reach, and for how long."""
    count = dice.number(1, 2) if dice.chance(0.25) else 0
    return [(float(dice.number(0, seconds)), float(dice.one([1, 5, 20, 60]))) for _ in range(count)]


class GappyFeed(EmbeddedObjects):
    """A feed whose watches break now and then: what comes next is known by a new list only."""

    def __init__(self, store: Store, faults: Faults, outage: Outage) -> None:
        super().__init__(store)
        self._faults = faults
        self._outage = outage

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return objects as soon as the server can be reached."""
        await self._outage.wait()
        return await super().list(kind, query, limit=limit, token=token)

    async def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        since: str,
        seconds: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Tell what happens after a version, until something goes wrong."""
        async for event in super().watch(kind, query, since=since, seconds=seconds):
            is_lost = self._outage.is_on or self._faults.strike(_GAP, kind) is not None
            if event.type is not EventType.BOOKMARK and is_lost:
                raise Expired(f"too old resource version of {kind}", status=_GONE)
            yield event
