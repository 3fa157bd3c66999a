"""Random draws that give the same bytes on every machine."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """
    A seeded stream of choices.

    Python promises the same stream between releases for `Random.random()` alone, so that every
    draw is made of it, by operations that IEEE 754 rounds in one way only.
    """

    def __init__(self, *seed: object) -> None:
        text = ":".join(str(part) for part in seed)
        self._next = Random(text).random  # noqa: S311 - nothing here is a secret

    def below(self, limit: int) -> int:
        """Draw a whole number from zero up to, but not including, the limit."""
        return int(self._next() * limit)

    def between(self, least: int, most: int) -> int:
        """Draw a whole number, both ends included."""
        return least + self.below(most - least + 1)

    def happens(self, percent: int) -> bool:
        """Say yes this often."""
        return self._next() * 100 < percent

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of the items, all alike."""
        return items[self.below(len(items))]

    def weighted(self, table: Sequence[tuple[T, int]]) -> T:
        """Draw one of the values, each as often as its weight says."""
        mark = self.below(sum(weight for _, weight in table))
        for value, weight in table:
            mark -= weight
            if mark < 0:
                return value
        return table[-1][0]

    def shuffle(self, items: list[T]) -> None:
        """Bring a list into random order, in place."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]

    def heavy_tail(self, most: int) -> int:
        """Draw from a Pareto distribution of exponent 1, cut at `most`: many ones, few giants."""
        return min(most, int(1 / (1 - self._next())))

    def uid(self) -> str:
        """Draw what looks like a UUID."""
        parts = [self.below(1 << 32) for _ in range(4)]
        digits = "".join(f"{part:08x}" for part in parts)
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
