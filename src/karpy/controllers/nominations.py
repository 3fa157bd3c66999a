"""Nodes that pending pods are expected on, and until when."""

from datetime import datetime, timedelta
from typing import Final

from karpy.ports.clock import Clock

LEAST_WINDOW: Final = timedelta(seconds=10)
_BATCHES: Final = 2


class NodeNominations:
    """
    Remembers which nodes, and NodeClaims in flight, are about to get pods.

    Whoever would take such a node away must wait: its pods are not bound yet, but will be.
    """

    def __init__(self, clock: Clock, batch_max: timedelta = timedelta(seconds=10)) -> None:
        self._clock = clock
        self._window = max(_BATCHES * batch_max, LEAST_WINDOW)
        self._until: dict[str, datetime] = {}

    def note(self, name: str) -> None:
        """Take note that pods are expected on a node, from now on for a while."""
        now = self._clock.now()
        # Taken out and put in again: so the first one is always the first to end.
        self._until.pop(name, None)
        self._until[name] = now + self._window
        while self._until[first := next(iter(self._until))] <= now:
            del self._until[first]

    def until(self, *names: str) -> datetime | None:
        """Say until when pods are expected on a node, by its name or that of its NodeClaim."""
        return max((self._until[each] for each in names if each in self._until), default=None)
