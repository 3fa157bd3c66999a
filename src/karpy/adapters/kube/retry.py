"""The rate of requests, and when a failed request is sent again."""

import asyncio
from enum import Enum, auto
from random import SystemRandom
from typing import Final

from msgspec import Struct

from karpy.errors import ClusterError, Throttled
from karpy.model.backoff import Dice

DICE: Final[Dice] = SystemRandom().random


class TokenBucket:
    """A rate limit: `burst` at once, `qps` per second in the long run, first come first served."""

    def __init__(self, qps: float, burst: int) -> None:
        assert qps > 0
        assert burst > 0
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._counted_at: float | None = None

    async def take(self) -> None:
        """Wait for a token and take it."""
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
        """Take a token if there is one now; say whether there was."""
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
    """Whether a request may be sent again after a temporary failure."""

    ALWAYS = auto()
    """The request is idempotent."""
    IF_NOT_SERVED = auto()
    """Only if the server says that it has not processed the request."""
    NEVER = auto()
    """The refusal is the answer: a PodDisruptionBudget forbids an eviction."""


class Patience(Struct, frozen=True):
    """How often a request is sent again, and after which pauses."""

    tries: int = 5
    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    asked_seconds_max: float = 30.0
    """Longest `Retry-After` to wait for; with a longer one the error is raised."""

    def pause(self, tried: int, error: ClusterError, repeat: Repeat, dice: Dice) -> float | None:
        """Return the seconds to wait after `tried` tries, or None to give up."""
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
    # The server has not processed a throttled request, so it is never done twice.
    return repeat is Repeat.ALWAYS or isinstance(error, Throttled)
