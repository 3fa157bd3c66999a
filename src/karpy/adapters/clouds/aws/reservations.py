"""The capacity left in capacity reservations, counted between two answers of EC2."""

from collections.abc import Iterable

from msgspec.structs import replace

from karpy.model.ec2 import CapacityReservation


class CapacityReservations:
    """Capacity reservations with the capacity left, adjusted by launches and terminations."""

    def __init__(self) -> None:
        self._known: dict[str, CapacityReservation] = {}

    def sync(self, found: Iterable[CapacityReservation]) -> None:
        """Replace the known reservations by those of an answer of EC2."""
        self._known |= {each.id: each for each in found}

    def find(self, id_: str) -> CapacityReservation | None:
        """Return a reservation with the capacity left, or None."""
        return self._known.get(id_)

    def take(self, id_: str) -> None:
        """Reduce the capacity left by one launched machine."""
        self._change(id_, -1)

    def give_back(self, id_: str) -> None:
        """Raise the capacity left by one terminated machine."""
        self._change(id_, 1)

    def note_empty(self, id_: str) -> None:
        """Set the capacity left to zero, until the next answer of EC2."""
        known = self._known.get(id_)
        if known is not None:
            self._known[id_] = replace(known, left=0)

    def _change(self, id_: str, by: int) -> None:
        known = self._known.get(id_)
        if known is not None:
            self._known[id_] = replace(known, left=max(0, known.left + by))
