"""Requests as single numbers, so that adding up what pods ask for is one addition for each."""

from typing import Final

from karpy.model.resources import AMOUNT_MAX, Resources

_DIGIT_BITS: Final = 96
_DIGIT: Final = (1 << _DIGIT_BITS) - 1
_AMOUNT_BITS_MAX: Final = 64
"""A digit then holds the sum of four billion amounts."""


class Loads:
    """Turns requests into numbers whose digits are the amounts, and sums of those into requests."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}
        """The numbers of requests by identity; whoever looks keeps the requests alive."""
        self._shifts: dict[str, int] = {}
        """Where the digit of each resource begins."""

    def find(self, requests: Resources) -> int | None:
        """Return the same, which is remembered, of requests that stay alive."""
        load = self.known.get(id(requests))
        return self.load_of(requests) if load is None else load

    def load_of(self, requests: Resources) -> int | None:
        """Return requests as a number; None if some amount is no digit."""
        load = 0
        for resource, amount in requests.items():
            if amount < 0 or amount.bit_length() > _AMOUNT_BITS_MAX:
                return None
            shift = self._shifts.setdefault(resource, len(self._shifts) * _DIGIT_BITS)
            load += amount << shift
        self.known[id(requests)] = load
        return load

    def requests_of(self, load: int) -> Resources:
        """Return a sum of loads, resource by resource."""
        return {
            resource: amount
            for resource, shift in self._shifts.items()
            if (amount := min(load >> shift & _DIGIT, AMOUNT_MAX))
        }
