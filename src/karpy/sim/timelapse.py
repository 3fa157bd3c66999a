"""An event loop on which time passes faster than on the wall."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TimeLapseLoop(asyncio.SelectorEventLoop):
    """
    Count several seconds in each one that passes.

    Tasks that sleep on it and clocks that read it see the usual time; a person who watches sees
    everything happen sooner.
    """

    def __init__(self, speed: float) -> None:
        self.speed = speed
        super().__init__(_ImpatientSelector(speed))

    def time(self) -> float:
        """Return the seconds as they are counted here."""
        return super().time() * self.speed


class _ImpatientSelector(selectors.DefaultSelector):
    """What a loop waits in: it waits for a part of the given time."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / self._speed)


def run_faster(coroutine: Coroutine[Any, Any, T], speed: float) -> T:
    """Run a coroutine to its end in time-lapse, as `asyncio.run` does in real time."""
    with asyncio.Runner(loop_factory=lambda: TimeLapseLoop(speed)) as runner:
        return runner.run(coroutine)
