"""Machines that a cloud wants back."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

from msgspec import Struct


class Interruption(Struct, frozen=True):
    """A machine that will end soon, and when."""

    provider_id: str
    at: datetime
    ends: datetime
    reason: str = "spot-interruption"


class Interruptions:
    """Passes interruptions on to listeners, to each from the moment it began to listen."""

    def __init__(self) -> None:
        self._queues: list[asyncio.Queue[Interruption]] = []

    def tell(self, interruption: Interruption) -> None:
        """Let all listeners know."""
        for queue in self._queues:
            queue.put_nowait(interruption)

    def listen(self) -> AsyncIterator[Interruption]:
        """Return one interruption after the other, from now on."""
        queue: asyncio.Queue[Interruption] = asyncio.Queue()
        self._queues.append(queue)
        return self._tell_on(queue)

    async def _tell_on(self, queue: asyncio.Queue[Interruption]) -> AsyncIterator[Interruption]:
        try:
            while True:
                yield await queue.get()
        finally:
            self._queues.remove(queue)
