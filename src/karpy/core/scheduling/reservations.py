"""Reserved capacity: who may count on which reservation."""

from enum import Enum

from karpy.core.scheduling.instancetypes import TypeTable
from karpy.core.scheduling.signatures import Signatures
from karpy.model.settings import ReservedMode


class Refused(Enum):
    """Why a claim cannot go on as far as reservations are concerned."""

    WAIT = "could be had, but is taken for now"
    FULL = "all full, and nothing else on offer"


class Reservations:
    """How much of each reservation is left, and the rules for taking it."""

    def __init__(self, table: TypeTable, mode: ReservedMode, *, is_enabled: bool) -> None:
        self.is_active = is_enabled and table.has_reserved
        self.version = 0
        self._is_strict = mode is ReservedMode.STRICT
        self._left: dict[str, int] = {}
        if self.is_active:
            for offering in table.reserved():
                known = self._left.get(offering.reservation_id)
                capacity = offering.reservation_capacity
                self._left[offering.reservation_id] = (
                    capacity if known is None else min(known, capacity)
                )

        self._all_left = dict(self._left)

    def reset(self, mode: ReservedMode) -> None:
        """Forget what was taken."""
        self._is_strict = mode is ReservedMode.STRICT
        self._left = dict(self._all_left)

    def offer(
        self, signatures: Signatures, signature: int, types: int, held: frozenset[str]
    ) -> frozenset[str] | Refused:
        """Return the reservations a claim would hold with these types, or why it may not be."""
        taken: set[str] = set()
        has_capacity = is_full = has_other = False
        for market in signatures.markets[signature]:
            if not market.reserved:
                has_other = has_other or bool(market.available & types)
                continue
            for bit, offering in market.reserved:
                if not types >> bit & 1:
                    continue
                if offering.reservation_capacity <= 0:
                    is_full = True
                    continue
                has_capacity = True
                name = offering.reservation_id
                if name in held or self._left[name] > 0:
                    taken.add(name)
        if self._is_strict and has_capacity and not taken:
            return Refused.WAIT
        if is_full and not has_capacity and not has_other:
            return Refused.WAIT if self._is_strict else Refused.FULL
        if self._is_strict and held and not taken:
            return Refused.WAIT
        return frozenset(taken)

    def hold(self, before: frozenset[str], after: frozenset[str]) -> None:
        """Take what is new and give back what is no longer needed."""
        for name in after - before:
            self._left[name] -= 1
        for name in before - after:
            self._left[name] += 1
            self.version += 1
