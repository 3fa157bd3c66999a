"""Whether controllers make progress: for `/healthz`."""

import time
from collections.abc import Callable
from typing import Final

from karpy.ports.observers import Observer, Result

PATIENCE_SECONDS: Final = 300.0
"""A controller with work to do that has finished none of it for so long is stuck."""


class Progress:
    """Watches the work of all controllers."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._watched: dict[str, _Watched] = {}

    def of(self, controller: str, observer: Observer) -> Observer:
        """Return the observer of a controller that watches on the way to another."""
        watched = self._watched[controller] = _Watched(observer, self._now)
        return watched

    def check(self) -> str:
        """Name the controllers that are stuck; empty if none is."""
        stuck = [
            f"{controller} has finished nothing for {idle:.0f} s, with {work} at work or waiting"
            for controller, watched in sorted(self._watched.items())
            for idle, work in [watched.look()]
            if idle > PATIENCE_SECONDS
        ]
        return "; ".join(stuck)


class _Watched:
    """The port Observer: notes since when nothing has come to its end."""

    def __init__(self, observer: Observer, now: Callable[[], float]) -> None:
        self._observer = observer
        self._now = now
        self._open: dict[str, float] = {}
        """Since when keys wait or are worked on, the oldest first."""
        self._finished = 0.0

    def look(self) -> tuple[float, int]:
        """Return for how long nothing was finished though there is work, and how much of it."""
        if not self._open:
            return 0.0, 0
        since = next(iter(self._open.values()))
        return self._now() - max(since, self._finished), len(self._open)

    def employ(self, workers: int) -> None:
        self._observer.employ(workers)

    def add(self, key: str) -> None:
        self._open.setdefault(key, self._now())
        self._observer.add(key)

    def take(self, key: str) -> None:
        self._open.setdefault(key, self._now())
        self._observer.take(key)

    def finish(self, key: str, result: Result) -> None:
        self._open.pop(key, None)
        self._finished = self._now()
        self._observer.finish(key, result)

    def put_off(self, key: str) -> None:
        self._observer.put_off(key)
