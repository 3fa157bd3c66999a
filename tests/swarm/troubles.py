"""Random faults between an operator and its world, and its crashes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import Expired
from karpy.model.kinds import NODE, NODE_CLAIM, NODE_POOL, POD, Kind
from karpy.model.labels import NODE_POOL as POOL_LABEL
from karpy.ports.objects import EVERYTHING, EventType, Page, Patch, PatchType, Query, WatchEvent
from karpy.sim.crashes import Life
from karpy.sim.faults import (
    WRITES,
    Faults,
    InjectedFault,
    cloud_unavailable,
    conflict,
    no_capacity,
    server_fault,
    throttled,
    unreachable,
)
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store
from karpy.sim.world import World
from tests.fuzz.dice import Dice
from tests.scenarios.manifests import pod_spec, pool
from tests.swarm.clusters import TEAM

_CLOUD: Final = ("catalog", "launch", "terminate", "machine", "machines", "drift")
_READS: Final = ("get", "list")
_GAP: Final = "gap"
_GONE: Final = 410
CLOSED: Final = {"key": "example.com/closed", "effect": "NoSchedule"}
CLOSED_POOL: Final = "shunned"


@dataclass(frozen=True)
class Crash:
    """When an operator dies: at its n-th await, or before or after its n-th call."""

    awaits: int = 0
    calls: int = 0
    is_call_done: bool = False

    def life(self) -> Life:
        return Life(
            crash_at_await=self.awaits, crash_at_call=self.calls, is_call_done=self.is_call_done
        )


def random_crashes(dice: Dice) -> list[Crash]:
    """Draw the crashes of operators in order."""
    return [_random_crash(dice) for _ in range(dice.one([0, 0, 1, 1, 2, 3]))]


def _random_crash(dice: Dice) -> Crash:
    if dice.chance(0.5):
        return Crash(awaits=dice.number(1, 10 ** dice.number(1, 4)))
    return Crash(calls=dice.number(1, 10 ** dice.number(1, 2)), is_call_done=dice.chance(0.5))


def random_faults(dice: Dice) -> list[InjectedFault]:
    """Draw faults of a few kinds, some frequent, some single."""
    return [_random_fault(dice) for _ in range(dice.one([0, 1, 2, 3, 4]))]


def _random_fault(dice: Dice) -> InjectedFault:
    nth = dice.number(1, 30) if dice.chance(0.4) else 0
    percent = 100 if nth else dice.one([2, 5, 10, 20])
    match dice.number(0, 6):
        case 0:
            return InjectedFault(conflict, ("replace", "patch", "delete"), nth=nth, percent=percent)
        case 1:
            error = dice.one([server_fault, unreachable, throttled])
            kind = dice.one([None, NODE, NODE_CLAIM, POD])
            return InjectedFault(error, (*WRITES, *_READS), kind=kind, nth=nth, percent=percent)
        case 2:
            return InjectedFault(unreachable, WRITES, nth=nth, percent=percent, is_answer_lost=True)
        case 3:
            is_lost = dice.chance(0.5)
            return InjectedFault(
                cloud_unavailable, _CLOUD, nth=nth, percent=percent, is_answer_lost=is_lost
            )
        case 4:
            return InjectedFault(no_capacity, ("launch",), nth=nth, percent=percent)
        case 5:
            return InjectedFault(None, (_GAP,), nth=nth, percent=percent)
        case _:
            return _random_delay(dice, percent=percent)


def _random_delay(dice: Dice, percent: int) -> InjectedFault:
    calls: tuple[str, ...] = dice.one([("event",), WRITES, _CLOUD])
    return InjectedFault(None, calls, percent=percent, delay_seconds=dice.one([0.1, 0.5, 2.0]))


class Outage:
    """Periods in which the API server cannot be reached."""

    def __init__(self) -> None:
        self._end = 0.0

    def begin(self, seconds: float) -> None:
        """Make the API server unreachable for some seconds from now on."""
        self._end = asyncio.get_running_loop().time() + seconds

    @property
    def is_on(self) -> bool:
        return asyncio.get_running_loop().time() < self._end

    def check(self) -> None:
        """Raise Unreachable during an outage."""
        if self.is_on:
            raise unreachable()

    async def wait(self) -> None:
        """Wait until the outage is over."""
        await asyncio.sleep(max(0.0, self._end - asyncio.get_running_loop().time()))


def random_outages(dice: Dice, seconds: int) -> list[tuple[float, float]]:
    """Draw the outages of the API server: begin and duration."""
    count = dice.number(1, 2) if dice.chance(0.25) else 0
    return [(float(dice.number(0, seconds)), float(dice.one([1, 5, 20, 60]))) for _ in range(count)]


def close_nodes(world: World, pool: str = "") -> Callable[[], None]:
    """
    Taint each new node, as an unknown controller might; return the function that stops it.

    With a pool, only the nodes of that NodePool are tainted. Operators do not know of the taint.
    """

    def on_node(event: WatchEvent, before: JsonObject | None) -> None:
        is_meant = pool in {"", (event.object["metadata"].get("labels") or {}).get(POOL_LABEL)}
        if before is None and is_meant:
            taints = [*(event.object["spec"].get("taints") or ()), CLOSED]
            patch = Patch(PatchType.MERGE, {"spec": {"taints": taints}})
            name = event.object["metadata"]["name"]
            asyncio.get_running_loop().call_soon(partial(world.store.patch, NODE, name, patch))

    return world.store.subscribe(NODE, on_node)


class ClosedPool:
    """A pod that needs the nodes of a NodePool whose nodes all get a foreign taint."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._end: Callable[[], None] | None = None

    def begin(self) -> None:
        """Create the pod and its NodePool."""
        self._end = close_nodes(self._world, CLOSED_POOL)
        taint = {"key": TEAM, "value": CLOSED_POOL, "effect": "NoSchedule"}
        template = {"taints": [taint]}
        self._world.store.create(NODE_POOL, pool(CLOSED_POOL, template=template))
        tolerated = {"key": TEAM, "operator": "Equal", "value": CLOSED_POOL}
        spec = pod_spec(nodeSelector={POOL_LABEL: CLOSED_POOL}, tolerations=[tolerated])
        self._world.store.create(
            POD, {"metadata": {"name": CLOSED_POOL, "namespace": "default"}, "spec": spec}
        )

    def end(self) -> None:
        """Delete the pod, if it was created."""
        if self._end is not None:
            self._end()
            self._world.store.delete(POD, CLOSED_POOL, namespace="default")


class GappyFeed(EmbeddedObjects):
    """A feed whose watches break now and then, so that it must list again."""

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
        """Yield the events after a version, until a fault ends the watch."""
        async for event in super().watch(kind, query, since=since, seconds=seconds):
            is_lost = self._outage.is_on or self._faults.strike(_GAP, kind) is not None
            if event.type is not EventType.BOOKMARK and is_lost:
                raise Expired(f"too old resource version of {kind}", status=_GONE)
            yield event
