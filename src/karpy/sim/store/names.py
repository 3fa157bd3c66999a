"""Names, UIDs and times that an API server gives to objects."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from karpy.ports.clock import Clock

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like another, so that no name is a word."""
_SUFFIX: Final = 5
_BASE_MAX: Final = 63 - _SUFFIX
_BITS: Final = 64
_MASK: Final = (1 << _BITS) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB


class Names:
    """A seeded stream of names: the same seed and the same calls, the same names."""

    def __init__(self, seed: int) -> None:
        self._state = int.from_bytes(sha256(f"names:{seed}".encode()).digest()[:8])

    def uid(self) -> str:
        """Make a UID in the form of a random UUID."""
        digits = f"{self._draw():016x}{self._draw():016x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def complete(self, base: str) -> str:
        """Complete a `generateName`."""
        number = self._draw()
        letters = []
        for _ in range(_SUFFIX):
            number, which = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[which])
        return base[:_BASE_MAX] + "".join(letters)

    def _draw(self) -> int:
        # SplitMix64: whole numbers, the same on every machine and release of Python.
        self._state = mixed = (self._state + _STEP) & _MASK
        mixed = (mixed ^ (mixed >> 30)) * _FIRST & _MASK
        mixed = (mixed ^ (mixed >> 27)) * _SECOND & _MASK
        return mixed ^ (mixed >> 31)


class Times:
    """The clock's time as objects carry it; writing the same moment twice costs nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moment: datetime | None = None
        self._text = ""

    def now(self) -> datetime:
        return self._clock.now()

    def text(self, later: int = 0) -> str:
        """Return the time now or so many seconds later, to the second."""
        moment = self._clock.now()
        if later:
            return time_text(moment + timedelta(seconds=later))
        if moment != self._moment:
            self._moment, self._text = moment, time_text(moment)
        return self._text


def time_text(moment: datetime) -> str:
    """Write a moment as `2026-01-31T12:00:00Z`."""
    return f"{moment.astimezone(UTC).isoformat(timespec='seconds')[:19]}Z"
