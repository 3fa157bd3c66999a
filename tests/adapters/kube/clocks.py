"""Time that tests control: a clock, and an event loop without real waiting."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tests.builders import NOON

T = TypeVar("T")


class SetClock:
    """A clock that stands still until a test sets it."""

    def __init__(self, moment: datetime = NOON) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def move(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class _JumpingSelector(selectors.DefaultSelector):
    """Skips the timeout if no socket is ready."""

    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "all tasks wait and nothing is going to wake them"
        ready = super().select(0)
        if not ready:
            self.jumped += max(0.0, timeout)
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps to the next timer; it cannot use sockets."""

    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.jumped


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on its own loop, without real waiting."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(coroutine)
