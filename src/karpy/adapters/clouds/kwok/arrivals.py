"""Machines that are launched and have no Node yet."""

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
"""Called with a failed action and its error; the action is retried."""

TRIED_SECONDS: Final = 15 * 60.0
"""How long the creation of a Node is retried; after that, its NodeClaim is deleted anyway."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0


class _Arrival(Struct, frozen=True):
    machine: Machine
    task: asyncio.Task[None]


class Arrivals:
    """Creates the Nodes of machines after their registration delay, with retries."""

    def __init__(self, objects: Objects, on_trouble: OnTrouble) -> None:
        self._objects = objects
        self._on_trouble = on_trouble
        self._arrivals: dict[str, _Arrival] = {}

    def expect(self, name: str, machine: Machine, seconds: float) -> Machine:
        """Create a Node after this time; return its machine, or the one already under way."""
        arrival = self._arrivals.get(name)
        if arrival is None:
            making = self._make(name, machine, seconds)
            task = asyncio.get_running_loop().create_task(making, name=f"arrival of {name}")
            arrival = self._arrivals[name] = _Arrival(machine, task)
        return arrival.machine

    def find(self, name: str) -> Machine | None:
        """Return a machine that has no Node yet, or None."""
        arrival = self._arrivals.get(name)
        return None if arrival is None else arrival.machine

    def machines(self) -> Mapping[str, Machine]:
        """Return the machines that have no Node yet, by the name of their Node."""
        return {name: each.machine for name, each in self._arrivals.items()}

    async def call_off(self, name: str) -> None:
        """Cancel the creation of a Node, which may have happened already."""
        arrival = self._arrivals.pop(name, None)
        if arrival is not None:
            await _end([arrival.task])

    async def close(self) -> None:
        """Cancel the creation of all Nodes."""
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
                # Another process launched the same claim before, or an answer was lost.
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
