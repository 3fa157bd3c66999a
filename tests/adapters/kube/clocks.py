"""Time that tests set: a clock on the wall, and a loop on which waiting takes no time."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tests.builders import NOON

T = TypeVar("T")


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self, moment: datetime = NOON) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def move(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class _JumpingSelector(selectors.DefaultSelector):
    """Sees that there is nothing to wait for but time, and lets it pass."""

    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "all tasks wait and nothing is going to wake them"
        ready = super().select(0)
        if not ready:
            self.jumped += max(0.0, timeout)
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop that jumps to the next timer instead of waiting for it; knows no sockets."""

    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.jumped


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run something on a loop of its own, in no time."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(coroutine)
