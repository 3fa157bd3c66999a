"""An event loop on which time passes faster than in reality."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TimeLapseLoop(asyncio.SelectorEventLoop):
    """
    Count `speed` seconds in each real second.

    Tasks that sleep on the loop and clocks that read it see the usual durations.
    """

    def __init__(self, speed: float) -> None:
        self.speed = speed
        super().__init__(_ImpatientSelector(speed))

    def time(self) -> float:
        """Return the accelerated time in seconds."""
        return super().time() * self.speed


class _ImpatientSelector(selectors.DefaultSelector):
    """The selector of the loop: waits for a fraction of the given time."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / self._speed)


def run_faster(coroutine: Coroutine[Any, Any, T], speed: float) -> T:
    """Run a coroutine to its end in time-lapse, as `asyncio.run` does in real time."""
    with asyncio.Runner(loop_factory=lambda: TimeLapseLoop(speed)) as runner:
        return runner.run(coroutine)
