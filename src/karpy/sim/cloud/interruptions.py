"""Spot interruptions of a simulated cloud."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

from msgspec import Struct


class SpotInterruption(Struct, frozen=True):
    """A machine that will be terminated, and when."""

    provider_id: str
    at: datetime
    ends: datetime
    reason: str = "spot-interruption"


class Interruptions:
    """Delivers interruptions to listeners, to each from the moment it began to listen."""

    def __init__(self) -> None:
        self._queues: list[asyncio.Queue[SpotInterruption]] = []

    def publish(self, interruption: SpotInterruption) -> None:
        """Deliver an interruption to all listeners."""
        for queue in self._queues:
            queue.put_nowait(interruption)

    def listen(self) -> AsyncIterator[SpotInterruption]:
        """Return a stream of the interruptions from now on."""
        queue: asyncio.Queue[SpotInterruption] = asyncio.Queue()
        self._queues.append(queue)
        return self._forward(queue)

    async def _forward(
        self, queue: asyncio.Queue[SpotInterruption]
    ) -> AsyncIterator[SpotInterruption]:
        try:
            while True:
                yield await queue.get()
        finally:
            self._queues.remove(queue)
