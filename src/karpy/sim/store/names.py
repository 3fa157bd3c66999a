"""The names, UIDs and times that an API server assigns."""

from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Final

from karpy.model.times import span
from karpy.ports.clock import Clock

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no similar characters, so that no name is a word."""
_PAIRS: Final = tuple(one + two for two in _ALPHABET for one in _ALPHABET)
_SUFFIX: Final = 5
_BASE_MAX: Final = 63 - _SUFFIX
_BITS: Final = 64
_MASK: Final = (1 << _BITS) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB


class Names:
    """A seeded stream of names: equal seeds and calls give equal names."""

    def __init__(self, seed: int) -> None:
        self._state = int.from_bytes(sha256(f"names:{seed}".encode()).digest()[:8])

    def uid(self) -> str:
        """Make a UID in the form of a random UUID."""
        one, two = self._draw(), self._draw()
        return (
            f"{one >> 32:08x}-{one >> 16 & 0xFFFF:04x}-4{one & 0xFFF:03x}"
            f"-a{two >> 48 & 0xFFF:03x}-{two & 0xFFFFFFFFFFFF:012x}"
        )

    def complete(self, base: str) -> str:
        """Complete a `generateName`."""
        number, first = divmod(self._draw(), len(_PAIRS))
        number, second = divmod(number, len(_PAIRS))
        last = _ALPHABET[number % len(_ALPHABET)]
        return f"{base[:_BASE_MAX]}{_PAIRS[first]}{_PAIRS[second]}{last}"

    def _draw(self) -> int:
        # SplitMix64 in whole numbers: equal on every machine and release of Python.
        self._state = mixed = (self._state + _STEP) & _MASK
        mixed = (mixed ^ (mixed >> 30)) * _FIRST & _MASK
        mixed = (mixed ^ (mixed >> 27)) * _SECOND & _MASK
        return mixed ^ (mixed >> 31)


class ObjectTimes:
    """The time of a clock in the format of the API, cached for equal moments."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moment: datetime | None = None
        self._texts: dict[int, str] = {}
        """The texts of the cached moment, by the seconds added to it."""

    def now(self) -> datetime:
        return self._clock.now()

    def text(self, later: int = 0) -> str:
        """Return the time now, or `later` seconds later, in whole seconds."""
        moment = self._clock.now()
        if moment is not self._moment:
            self._moment = moment
            self._texts.clear()
        return self._texts.get(later) or self._write(moment, later)

    def _write(self, moment: datetime, later: int) -> str:
        text = self._texts[later] = time_text(moment + span(later))
        return text


@lru_cache(maxsize=256)
def time_text(moment: datetime) -> str:
    """Write a moment as `2026-01-31T12:00:00Z`."""
    return f"{moment.astimezone(UTC).isoformat(timespec='seconds')[:19]}Z"
