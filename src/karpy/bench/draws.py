"""Random draws that give the same bytes on every machine."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, TypeVar

T = TypeVar("T")

_BITS: Final = 64
_MASK: Final = (1 << _BITS) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_MIXERS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


class Draws:
    """
    A seeded stream of choices.

    SplitMix64 in whole numbers: Python keeps its own stream across releases only for floats, and
    floats may round differently on another machine.
    """

    def __init__(self, *seed: object) -> None:
        text = ":".join(str(part) for part in seed)
        self._state = int.from_bytes(sha256(text.encode()).digest()[:8])

    def _next(self) -> int:
        self._state = mixed = (self._state + _STEP) & _MASK
        for shift, factor in _MIXERS:
            mixed = (mixed ^ (mixed >> shift)) * factor & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, limit: int) -> int:
        """Draw a whole number from zero up to, but not including, the limit."""
        return self._next() * limit >> _BITS

    def between(self, least: int, most: int) -> int:
        """Draw a whole number, both ends included."""
        return least + self.below(most - least + 1)

    def happens(self, percent: int) -> bool:
        """Return True with this probability."""
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of the items, each with the same probability."""
        return items[self.below(len(items))]

    def weighted(self, table: Sequence[tuple[T, int]]) -> T:
        """Draw one of the values with the probabilities of their weights."""
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
        """Draw from a Pareto distribution of exponent 1, cut at `most`: mostly small numbers."""
        return min(most, (1 << _BITS) // (self._next() + 1))

    def uid(self) -> str:
        """Draw a text in the form of a UUID."""
        digits = f"{self._next():016x}{self._next():016x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
