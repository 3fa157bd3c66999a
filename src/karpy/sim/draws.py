"""Random draws by seed: equal seeds and calls give equal draws on every machine."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, TypeVar

T = TypeVar("T")

_BITS: Final = 64
_MASK: Final = (1 << _BITS) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB


class SeededDraws:
    """A seeded stream of choices: SplitMix64 in whole numbers, equal on every machine."""

    def __init__(self, *seed: object) -> None:
        text = ":".join(str(part) for part in seed)
        self._state = int.from_bytes(sha256(text.encode()).digest()[:8])

    def below(self, limit: int) -> int:
        """Draw a whole number from zero up to, but not including, the limit."""
        self._state = mixed = (self._state + _STEP) & _MASK
        mixed = (mixed ^ (mixed >> 30)) * _FIRST & _MASK
        mixed = (mixed ^ (mixed >> 27)) * _SECOND & _MASK
        return (mixed ^ (mixed >> 31)) * limit >> _BITS

    def happens(self, percent: int) -> bool:
        """Return True with this probability."""
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        """Draw one of the items, each with the same probability."""
        return items[self.below(len(items))]

    def spread(self, seconds: float, percent: int) -> float:
        """Draw a time at most `percent` shorter or longer than `seconds`, in whole milliseconds."""
        if not percent or not seconds:
            return seconds
        milliseconds = round(seconds * 1000)
        reach = milliseconds * percent // 100
        return (milliseconds - reach + self.below(2 * reach + 1)) / 1000

    def hexadecimal(self, digits: int) -> str:
        """Draw a text of hexadecimal digits."""
        return "".join("0123456789abcdef"[self.below(16)] for _ in range(digits))
