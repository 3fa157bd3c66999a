"""Level-triggered work inside the embedded cluster: one key at a time, on the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from karpy.errors import ClusterError

_KEYS_IN_A_ROW: Final = 64
"""Keys processed before other tasks of the loop run."""
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 60.0

Work = Callable[[str], float | None]
"""Reconciles one object; returns after how many seconds to reconcile it again, or None."""


class Worker:
    """
    A work queue that calls `work` once for every key added since its last call for that key.

    `work` is synchronous: it reads and writes the store. If it raises an error of the store, the
    key is retried with growing pauses. A worker belongs to the loop on which it was first used.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self._times: dict[str, float] = {}
        """The time at which each delayed key is due."""
        self._due: dict[float, list[str]] = {}
        """Delayed keys by time, in the order of calls, including moved keys."""
        self._alarms: list[float] = []
        """The times of delayed keys, as a heap."""
        self._failures: dict[str, int] = {}
        self._handle: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False

    def now(self) -> float:
        """Return the time of the loop."""
        return (self._loop or self._running_loop()).time()

    def add(self, key: str) -> None:
        """Queue a key."""
        if self._is_stopped or key in self._queued:
            return
        self._queued.add(key)
        self._queue.append(key)
        if self._handle is None:
            self._handle = self._running_loop().call_soon(self._run)

    def add_after(self, key: str, seconds: float) -> None:
        """Queue a key after a delay; of several times the earliest counts."""
        if self._is_stopped:
            return
        when = (self._loop or self._running_loop()).time() + seconds
        known = self._times.get(key)
        if known is not None and known <= when:
            return
        self._times[key] = when
        keys = self._due.get(when)
        if keys is not None:
            keys.append(key)
            return
        self._due[when] = [key]
        heappush(self._alarms, when)
        if self._timer is None or when < self._timer.when():
            self._set_timer(when)

    def stop(self) -> None:
        """Drop all keys and stop."""
        self._is_stopped = True
        self._queue.clear()
        self._queued.clear()
        self._times.clear()
        self._due.clear()
        self._alarms.clear()
        for handle in (self._handle, self._timer):
            if handle is not None:
                handle.cancel()
        self._handle = self._timer = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _set_timer(self, when: float) -> None:
        """Set the only timer to the time at which the first delayed key is due."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._running_loop().call_at(when, self._ring)

    def _ring(self) -> None:
        assert self._timer is not None
        # The loop may call early, by less than the resolution of its clock.
        now = max(self._timer.when(), self._running_loop().time())
        self._timer = None
        alarms, times = self._alarms, self._times
        while alarms and alarms[0] <= now:
            when = heappop(alarms)
            for key in self._due.pop(when):
                if times.get(key) == when:
                    del times[key]
                    self.add(key)
        if alarms:
            self._set_timer(alarms[0])

    def _run(self) -> None:
        self._handle = None
        work, queue, queued, failures = self._work, self._queue, self._queued, self._failures
        for _ in range(_KEYS_IN_A_ROW):
            if not queue:
                return
            key = queue.popleft()
            queued.discard(key)
            try:
                again = work(key)
            except ClusterError:
                again = self._fail(key)
            else:
                if failures:
                    failures.pop(key, None)
            if again is not None:
                self.add_after(key, again)
        if queue and self._handle is None:
            self._handle = self._running_loop().call_soon(self._run)

    def _fail(self, key: str) -> float:
        """Return in how many seconds to retry a key that failed."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return float(min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(failures, 12)))
