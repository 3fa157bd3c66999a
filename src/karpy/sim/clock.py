"""The time of an event loop as a date."""

import asyncio
from datetime import datetime, timedelta


class LoopClock:
    """
    Returns `start` plus the time of the loop that runs at the first call of `now`.

    Before a loop runs it returns `start`. On a virtual loop it jumps with the loop; on a real loop
    it runs in real time.
    """

    def __init__(self, start: datetime) -> None:
        self._start = self._now = start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._origin = self._seen = 0.0

    def now(self) -> datetime:
        """Return the time, in UTC."""
        loop = self._loop
        if loop is None:
            try:
                self._loop = loop = asyncio.get_running_loop()
            except RuntimeError:
                return self._start
            self._origin = self._seen = loop.time()
        elapsed = loop.time()
        if elapsed != self._seen:
            self._seen = elapsed
            self._now = self._start + timedelta(seconds=elapsed - self._origin)
        return self._now
