"""Machines on their way: launched, and without a Node yet."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from karpy.adapters.clouds.kwok.nodes import write_node
from karpy.errors import AlreadyExists, ClusterError, CredentialsRefused, KarpyError
from karpy.model.backoff import Backoff
from karpy.model.kinds import NODE
from karpy.ports.cloud import Machine
from karpy.ports.objects import Objects

OnTrouble = Callable[[str, KarpyError], None]
"""Called with what cannot be done right now, and why; it is tried again."""

TRIED_SECONDS: Final = 15 * 60.0
"""For so long a Node is tried to be made: afterwards its claim is given up anyway."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0


class _Arrival(Struct, frozen=True):
    machine: Machine
    task: asyncio.Task[None]


class Arrivals:
    """Makes the Nodes of machines when their time has come, however often it takes."""

    def __init__(self, objects: Objects, on_trouble: OnTrouble) -> None:
        self._objects = objects
        self._on_trouble = on_trouble
        self._arrivals: dict[str, _Arrival] = {}

    def expect(self, name: str, machine: Machine, seconds: float) -> Machine:
        """Have a Node appear in so many seconds; return its machine, as it was first expected."""
        arrival = self._arrivals.get(name)
        if arrival is None:
            making = self._make(name, machine, seconds)
            task = asyncio.get_running_loop().create_task(making, name=f"arrival of {name}")
            arrival = self._arrivals[name] = _Arrival(machine, task)
        return arrival.machine

    def find(self, name: str) -> Machine | None:
        """Return a machine that is on its way, or None."""
        arrival = self._arrivals.get(name)
        return None if arrival is None else arrival.machine

    def machines(self) -> Mapping[str, Machine]:
        """Return everything that is on its way now, by the name of its Node."""
        return {name: each.machine for name, each in self._arrivals.items()}

    async def call_off(self, name: str) -> None:
        """Have a Node not appear any more; it may have done so just now."""
        arrival = self._arrivals.pop(name, None)
        if arrival is not None:
            await _end([arrival.task])

    async def close(self) -> None:
        """Make no more Nodes."""
        arrivals, self._arrivals = self._arrivals, {}
        await _end([each.task for each in arrivals.values()])

    async def _make(self, name: str, machine: Machine, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
            await self._try(name, machine)
        finally:
            if self.find(name) is machine:
                del self._arrivals[name]

    async def _try(self, name: str, machine: Machine) -> None:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + TRIED_SECONDS
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while loop.time() < give_up:
            try:
                await self._objects.create(NODE, write_node(name, machine))
            except AlreadyExists:
                # Another process launched the same claim before, or an answer was lost on its way.
                return
            except (ClusterError, CredentialsRefused) as error:
                self._on_trouble(f"create node `{name}`", error)
                await asyncio.sleep(max(backoff.next_pause(), _asked_pause(error)))
            else:
                return


def _asked_pause(error: ClusterError | CredentialsRefused) -> float:
    asked = error.retry_after if isinstance(error, ClusterError) else None
    return min(asked or 0.0, _LONGEST_PAUSE)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
