"""Where it is told how work goes on."""

from enum import Enum
from typing import Protocol


class Result(Enum):
    """How a look at an object ended; the value is the word that metrics have for it."""

    SUCCESS = "success"
    AGAIN = "requeue_after"
    """Well, and somebody will look again after a while."""
    ERROR = "error"
    BUG = "panic"
    """An error that nobody has thought of."""


class Observer(Protocol):
    """Hears of the work of one controller; never waits and never fails."""

    def employ(self, workers: int) -> None:
        """Hear how many objects are worked on side by side at most."""

    def add(self, key: str) -> None:
        """Hear that an object waits for its turn."""

    def take(self, key: str) -> None:
        """Hear that somebody has begun to work on an object."""

    def finish(self, key: str, result: Result) -> None:
        """Hear how that has ended."""

    def put_off(self, key: str) -> None:
        """Hear that an object waits for later: it failed, or is to be looked at again."""
