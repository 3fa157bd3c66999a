"""Batches triggers of a decision: wait for an idle window, within a longest time."""

import asyncio


class Batcher:
    """Collects triggers until none comes for the idle time, or the longest time is over."""

    def __init__(self, *, idle_seconds: float = 1.0, longest_seconds: float = 10.0) -> None:
        self._idle = idle_seconds
        self._longest = longest_seconds
        self._triggers: set[str] = set()
        self._news = asyncio.Event()

    def trigger(self, who: str) -> None:
        """Ask for a decision; asking again within the same window does not prolong it."""
        if who not in self._triggers:
            self._triggers.add(who)
            self._news.set()

    def prolong(self, who: str) -> None:
        """Extend an open batch by a pod that is decided with it; do not open one."""
        if self._triggers:
            self.trigger(who)

    async def wait(self) -> frozenset[str]:
        """Wait for a first trigger and for those that follow it; return them all."""
        if not self._triggers:
            self._news.clear()
            await self._news.wait()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._longest
        while True:
            self._news.clear()
            left = min(self._idle, end - loop.time())
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                break
        batch = frozenset(self._triggers)
        self._triggers.clear()
        return batch
