"""How many machines are left of capacity reservations, between two answers of EC2."""

from collections.abc import Iterable

from msgspec.structs import replace

from karpy.model.ec2 import CapacityReservation


class Reservations:
    """Counts launches and ends of machines until EC2 says again how many are left."""

    def __init__(self) -> None:
        self._known: dict[str, CapacityReservation] = {}

    def sync(self, found: Iterable[CapacityReservation]) -> None:
        """Take over what EC2 says now."""
        self._known |= {each.id: each for each in found}

    def find(self, id_: str) -> CapacityReservation | None:
        """Return a reservation with the number of machines that are left."""
        return self._known.get(id_)

    def take(self, id_: str) -> None:
        """Count one machine less: it was launched."""
        self._change(id_, -1)

    def give_back(self, id_: str) -> None:
        """Count one machine more: one has ended."""
        self._change(id_, 1)

    def note_empty(self, id_: str) -> None:
        """Count none, until EC2 says otherwise."""
        known = self._known.get(id_)
        if known is not None:
            self._known[id_] = replace(known, left=0)

    def _change(self, id_: str, by: int) -> None:
        known = self._known.get(id_)
        if known is not None:
            self._known[id_] = replace(known, left=max(0, known.left + by))
