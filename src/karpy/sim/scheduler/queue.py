"""The scheduling queue: active pods, unschedulable pods and pods in backoff."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from karpy.sim.scheduler.podinfos import PodInfo

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 10.0
_PATIENCE: Final = 300.0
"""Longest time in seconds that an unschedulable pod waits for an event."""


class Pending:
    """A pod in the queue."""

    __slots__ = ("failures", "is_parked", "plugins", "pod", "ticket", "tried")

    def __init__(self, pod: PodInfo) -> None:
        self.pod = pod
        self.failures = 0
        self.plugins: frozenset[str] = frozenset()
        """The plugins that refused the pod in the last attempt."""
        self.tried = 0.0
        self.is_parked = False
        """Whether the pod waits for an event."""
        self.ticket = 0
        """The number of the valid heap entry of the pod."""


class Queue:
    """
    Pending pods in the order of priority and time.

    A pod that failed is parked until an event concerns it, and is retried after its backoff, which
    doubles with every failure up to ten seconds.
    """

    def __init__(self) -> None:
        self._pending: dict[str, Pending] = {}
        self._ready: dict[int, deque[tuple[int, str]]] = {}
        """By priority: the tickets and keys of active pods, in order of arrival."""
        self._paused: list[tuple[float, int, str]] = []
        self.parked: dict[str, Pending] = {}
        """The keys of parked pods."""
        self._tickets = 0

    def __contains__(self, key: str) -> bool:
        return key in self._pending

    def get(self, key: str) -> Pending | None:
        """Return a pending pod, or None."""
        return self._pending.get(key)

    def add(self, pod: PodInfo) -> None:
        """Activate a new or changed pod."""
        pending = self._pending.get(pod.key)
        if pending is None:
            pending = self._pending[pod.key] = Pending(pod)
        pending.pod = pod
        self._make_ready(pending)

    def remove(self, key: str) -> None:
        """Remove a pod."""
        self._pending.pop(key, None)
        self.parked.pop(key, None)

    def pop(self) -> Pending | None:
        """Return the next pod to try; it stays in the queue."""
        ready = self._ready
        while ready:
            priority = max(ready) if len(ready) > 1 else next(iter(ready))
            ticket, key = ready[priority].popleft()
            if not ready[priority]:
                del ready[priority]
            pending = self._pending.get(key)
            if pending is not None and pending.ticket == ticket:
                pending.ticket = 0
                return pending
        return None

    def park(self, pending: Pending, plugins: frozenset[str], now: float) -> None:
        """Park a pod until an event concerns a plugin that refused it."""
        self._fail(pending, plugins, now)
        pending.is_parked = True
        self.parked[pending.pod.key] = pending
        self._pause(pending, now + _PATIENCE)

    def retry(self, pending: Pending, now: float) -> None:
        """Retry a pod after its backoff, without waiting for an event."""
        self._fail(pending, frozenset(), now)
        self._pause(pending, now + _pause_of(pending))

    def wake(self, pending: Pending, now: float) -> None:
        """Activate a parked pod, after the rest of its backoff."""
        if not pending.is_parked:
            return
        end = pending.tried + _pause_of(pending)
        self._unpark(pending)
        if end <= now:
            self._make_ready(pending)
        else:
            self._pause(pending, end)

    def wake_where(self, concerns: Callable[[Pending], bool], now: float) -> bool:
        """Activate the parked pods that an event concerns; say whether there were any."""
        if not self.parked:
            return False
        woken = [pending for pending in self.parked.values() if concerns(pending)]
        for pending in woken:
            self.wake(pending, now)
        return bool(woken)

    def ring(self, now: float) -> None:
        """Activate the pods whose backoff is over."""
        while self._paused and self._paused[0][0] <= now:
            _, ticket, key = heappop(self._paused)
            pending = self._pending.get(key)
            if pending is not None and pending.ticket == ticket:
                self._make_ready(pending)

    @property
    def is_ready(self) -> bool:
        """Whether the queue may have an active pod."""
        return bool(self._ready)

    @property
    def next_time(self) -> float | None:
        """When the next backoff is over."""
        paused = self._paused
        while paused:
            _, ticket, key = paused[0]
            pending = self._pending.get(key)
            if pending is not None and pending.ticket == ticket:
                return paused[0][0]
            heappop(paused)
        return None

    def _fail(self, pending: Pending, plugins: frozenset[str], now: float) -> None:
        pending.failures += 1
        pending.plugins = plugins
        pending.tried = now

    def _make_ready(self, pending: Pending) -> None:
        self._unpark(pending)
        self._tickets += 1
        pending.ticket = self._tickets
        pod = pending.pod
        line = self._ready.get(pod.priority)
        if line is None:
            line = self._ready[pod.priority] = deque()
        line.append((pending.ticket, pod.key))

    def _pause(self, pending: Pending, until: float) -> None:
        self._tickets += 1
        pending.ticket = self._tickets
        heappush(self._paused, (until, pending.ticket, pending.pod.key))

    def _unpark(self, pending: Pending) -> None:
        if pending.is_parked:
            pending.is_parked = False
            self.parked.pop(pending.pod.key, None)


def _pause_of(pending: Pending) -> float:
    return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(pending.failures - 1, 10)))
