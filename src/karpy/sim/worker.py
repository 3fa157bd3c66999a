"""Level-triggered work inside the embedded cluster: one key at a time, on the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from karpy.errors import ClusterError

_KEYS_IN_A_ROW: Final = 64
"""So many keys are worked on before others on the loop get their turn."""
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 60.0

Work = Callable[[str], float | None]
"""Brings one object to where it should be; returns after how many seconds to look again."""


class Worker:
    """
    Calls `work` once for every key added since it was last looked at.

    `work` is plain code: it reads and writes the store and never waits. If the store says no, the
    key is tried again later, ever more slowly. A worker lives on the loop it was first used on.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self._times: dict[str, float] = {}
        """When each key is to be looked at that waits for its time."""
        self._due: dict[float, list[str]] = {}
        """The same by time, in the order of calls, with keys that have another time by now."""
        self._alarms: list[float] = []
        """Those times, as a heap."""
        self._failures: dict[str, int] = {}
        self._handle: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False

    def now(self) -> float:
        """Return the time of the loop."""
        return (self._loop or self._running_loop()).time()

    def add(self, key: str) -> None:
        """Have a key looked at soon."""
        if self._is_stopped or key in self._queued:
            return
        self._queued.add(key)
        self._queue.append(key)
        if self._handle is None:
            self._handle = self._running_loop().call_soon(self._run)

    def add_after(self, key: str, seconds: float) -> None:
        """Have a key looked at after a while; the earliest of several times counts."""
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
        """Work on nothing any more."""
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
        """Be called when the first of the waiting keys is due; one timer serves them all."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._running_loop().call_at(when, self._ring)

    def _ring(self) -> None:
        assert self._timer is not None
        # The loop may call a little early, by less than its clock can tell.
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
        """Say in how many seconds to try a key again that failed."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return float(min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(failures, 12)))
