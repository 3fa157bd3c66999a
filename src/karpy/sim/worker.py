"""Level-triggered work inside the embedded cluster: one key at a time, on the event loop."""

import asyncio
from collections.abc import Callable
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
    key is tried again later, ever more slowly.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._keys: dict[str, None] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._failures: dict[str, int] = {}
        self._handle: asyncio.Handle | None = None
        self._is_stopped = False

    def add(self, key: str) -> None:
        """Have a key looked at soon."""
        if self._is_stopped:
            return
        self._keys[key] = None
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._run)

    def add_after(self, key: str, seconds: float) -> None:
        """Have a key looked at after a while; the earliest of several times counts."""
        if self._is_stopped:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= when:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(when, self._ring, key)

    def stop(self) -> None:
        """Work on nothing any more."""
        self._is_stopped = True
        self._keys.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _ring(self, key: str) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _run(self) -> None:
        self._handle = None
        for _ in range(_KEYS_IN_A_ROW):
            if not self._keys:
                return
            key = next(iter(self._keys))
            del self._keys[key]
            self._look_at(key)
        if self._keys and not self._is_stopped:
            self._handle = asyncio.get_running_loop().call_soon(self._run)

    def _look_at(self, key: str) -> None:
        try:
            again = self._work(key)
        except ClusterError:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self.add_after(key, min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(failures, 12)))
            return
        self._failures.pop(key, None)
        if again is not None:
            self.add_after(key, again)
