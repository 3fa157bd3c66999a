"""Offerings that EC2 had no capacity for lately; each entry lasts some minutes."""

from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from karpy.adapters.clouds.aws.reservations import CapacityReservations
from karpy.ports.clock import Clock

K = TypeVar("K", bound=Hashable)

UNAVAILABLE_FOR: Final = timedelta(minutes=3)


class Lapsing(Generic[K]):
    """A set whose members expire."""

    def __init__(self, clock: Clock, lasting: timedelta = UNAVAILABLE_FOR) -> None:
        self._clock = clock
        self._lasting = lasting
        self._until: dict[K, datetime] = {}

    def add(self, key: K) -> None:
        """Add a member, or renew its time."""
        self._until[key] = self._clock.now() + self._lasting

    def discard(self, key: K) -> None:
        """Remove a member before its time."""
        self._until.pop(key, None)

    def __contains__(self, key: K) -> bool:
        until = self._until.get(key)
        return until is not None and self._clock.now() < until

    def members(self) -> frozenset[K]:
        """Drop expired members; return the others."""
        now = self._clock.now()
        over = [key for key, until in self._until.items() if until <= now]
        for key in over:
            del self._until[key]
        return frozenset(self._until)


class SoldOut:
    """Offerings, capacity types and subnets that launches could not use."""

    def __init__(self, clock: Clock) -> None:
        self.offerings: Lapsing[tuple[str, str, str]] = Lapsing(clock)
        """Capacity type, instance type and zone."""
        self.grouped: Lapsing[tuple[str, str, str, str, str]] = Lapsing(clock)
        """The same with placement group and partition."""
        self.capacity_types: Lapsing[str] = Lapsing(clock)
        self.subnets: Lapsing[str] = Lapsing(clock)
        self.reservations = CapacityReservations()
