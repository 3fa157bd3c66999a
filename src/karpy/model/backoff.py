"""Ever longer pauses."""

from collections.abc import Callable

Dice = Callable[[], float]
"""Gives a number from 0 to 1; spreads out requests that would all come at the same moment."""


class Backoff:
    """Ever longer pauses while something keeps failing, spread out by chance."""

    def __init__(self, first: float, longest: float, dice: Dice = lambda: 1.0) -> None:
        self._first = first
        self._longest = longest
        self._dice = dice
        self.failures = 0

    def reset(self) -> None:
        """Begin with short pauses again."""
        self.failures = 0

    def next_pause(self) -> float:
        """Count one more failure; return the seconds to wait."""
        seconds = min(self._longest, self._first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return seconds * (0.5 + 0.5 * self._dice())
