"""Exponential backoff with jitter."""

from collections.abc import Callable

Dice = Callable[[], float]
"""Returns a random number from 0 to 1: the jitter of a pause."""


class Backoff:
    """Pauses between retries: each is twice as long as the one before, with jitter."""

    def __init__(self, first: float, longest: float, dice: Dice = lambda: 1.0) -> None:
        self._first = first
        self._longest = longest
        self._dice = dice
        self.failures = 0

    def reset(self) -> None:
        """Start again with the shortest pause."""
        self.failures = 0

    def next_pause(self) -> float:
        """Count one more failure; return the seconds to wait."""
        seconds = min(self._longest, self._first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return seconds * (0.5 + 0.5 * self._dice())
