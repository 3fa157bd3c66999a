"""Patience with a server: how fast to ask, and when to ask again."""

import asyncio
from enum import Enum, auto
from random import SystemRandom
from typing import Final

from msgspec import Struct

from karpy.errors import ClusterError, Throttled
from karpy.model.backoff import Dice

DICE: Final[Dice] = SystemRandom().random


class TokenBucket:
    """Lets `burst` pass at once and `qps` per second in the long run, in the order they came."""

    def __init__(self, qps: float, burst: int) -> None:
        assert qps > 0
        assert burst > 0
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._counted_at: float | None = None

    async def take(self) -> None:
        """Wait for one's turn."""
        self._refill()
        self._tokens -= 1
        if self._tokens >= 0:
            return
        try:
            await asyncio.sleep(-self._tokens / self._qps)
        except asyncio.CancelledError:
            self._tokens += 1
            raise

    def has_taken(self) -> bool:
        """Take a turn if there is one right now, and say so."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _refill(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._counted_at is not None:
            gained = (now - self._counted_at) * self._qps
            self._tokens = min(float(self._burst), self._tokens + gained)
        self._counted_at = now


class Repeat(Enum):
    """Whether a request may be sent again when it failed in a way that passes."""

    ALWAYS = auto()
    """Doing it twice is doing it once."""
    IF_NOT_SERVED = auto()
    """Only if the server says that it did nothing."""
    NEVER = auto()
    """The no is the answer: a budget that forbids an eviction."""


class Patience(Struct, frozen=True):
    """Says how long to wait before a request is sent again, if at all."""

    tries: int = 5
    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    asked_seconds_max: float = 30.0
    """A longer wait that the server asks for is passed on as an error."""

    def pause(self, tried: int, error: ClusterError, repeat: Repeat, dice: Dice) -> float | None:
        """Return the seconds to wait after so many tries; None means: give up."""
        if tried >= self.tries or not _is_worth_it(error, repeat):
            return None
        seconds = min(self.longest_seconds, self.first_seconds * 2.0 ** (tried - 1))
        asked = error.retry_after
        if asked is None:
            return seconds * (0.5 + 0.5 * dice())
        if asked > self.asked_seconds_max:
            return None
        return asked + seconds * 0.5 * dice()


PATIENCE: Final = Patience()


def _is_worth_it(error: ClusterError, repeat: Repeat) -> bool:
    if repeat is Repeat.NEVER or not error.is_worth_a_retry:
        return False
    # A throttled request was not served, so asking again does nothing twice.
    return repeat is Repeat.ALWAYS or isinstance(error, Throttled)
