"""The market of a fake EC2: prices, sold-out offerings, and the choice among overrides."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from zlib import crc32

from msgspec import Struct

from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.labels import ON_DEMAND, SPOT

ANY: Final = "*"
SOLD_OUT: Final = "InsufficientInstanceCapacity"
NO_ADDRESSES: Final = "InsufficientFreeAddressesInSubnet"
NOTHING_RESERVED: Final = "ReservationCapacityExceeded"
_BY_PRIORITY: Final = frozenset({"prioritized", "capacity-optimized-prioritized"})
_UNKNOWN: Final = 50_000
"""Micro-dollars per hour of a type without a price in any table."""
_SPOT_LEAST: Final = 30
_SPOT_SPREAD: Final = 30
"""Spot costs 30 to 60 % of on-demand, depending on type and zone alone."""


class FleetOverride(Struct, frozen=True):
    """One override of a fleet request."""

    instance_type: str
    zone: str
    priority: float = 0.0
    reservation: str = ""
    index: int = 0
    """The index of the override in the request."""
    is_full: bool = False
    """Whether its subnet has no free address."""


class FleetFault(Struct, frozen=True):
    """Why an override could not be launched."""

    code: str
    message: str
    offer: FleetOverride


class Taken(Struct, frozen=True):
    """The result of a fleet request: offers to launch, and faults."""

    offers: tuple[FleetOverride, ...] = ()
    """One offer for each machine."""
    faults: tuple[FleetFault, ...] = ()


class FakeMarket:
    """Prices and sold-out offerings, which may be changed while the fake runs."""

    def __init__(self, on_demand: Mapping[str, int]) -> None:
        """Take prices in micro-dollars per hour, by instance type."""
        self._on_demand = dict(on_demand)
        self._sold_out: set[tuple[str, str, str]] = set()
        self.left: dict[str, int] = {}
        """The capacity left in each capacity reservation."""

    def sell_out(self, capacity_type: str = ANY, instance_type: str = ANY, zone: str = ANY) -> None:
        """Mark offerings as sold out; a star matches all."""
        self._sold_out.add((capacity_type, instance_type, zone))

    def restock(self) -> None:
        """Mark all offerings as available again."""
        self._sold_out.clear()

    def set_price(self, instance_type: str, micros: int) -> None:
        """Set the on-demand price of a type."""
        self._on_demand[instance_type] = micros

    def price(self, capacity_type: str, instance_type: str, zone: str) -> int:
        """Return the price in micro-dollars per hour."""
        price = self._on_demand.get(instance_type, _UNKNOWN)
        if capacity_type != SPOT:
            return price
        percent = _SPOT_LEAST + crc32(f"{instance_type}/{zone}".encode()) % (_SPOT_SPREAD + 1)
        return max(1, price * percent // 100)

    def dollars(self, capacity_type: str, instance_type: str, zone: str = "") -> str:
        """Return the price in dollars per hour, in the format of AWS."""
        return f"{self.price(capacity_type, instance_type, zone) / MICROS_PER_DOLLAR:.6f}"

    def is_sold_out(self, capacity_type: str, offer: FleetOverride) -> bool:
        """Say whether an offer is sold out."""
        if offer.is_full:
            return True
        if offer.reservation:
            return self.left.get(offer.reservation, 0) <= 0
        place = (capacity_type, offer.instance_type, offer.zone)
        return any(
            all(one in {ANY, other} for one, other in zip(each, place, strict=True))
            for each in self._sold_out
        )

    def take(
        self, offers: Sequence[FleetOverride], capacity_type: str, strategy: str, machines: int
    ) -> Taken:
        """Choose the best available offers by the allocation strategy of a fleet."""
        taken: list[FleetOverride] = []
        faults: dict[FleetOverride, FleetFault] = {}
        ranked = sorted(offers, key=lambda each: self._rank(each, capacity_type, strategy))
        for _ in range(machines):
            for offer in ranked:
                if self.is_sold_out(capacity_type, offer):
                    faults.setdefault(offer, _fault(offer))
                    continue
                if offer.reservation:
                    self.left[offer.reservation] -= 1
                taken.append(offer)
                break
        return Taken(tuple(taken), tuple(faults.values()))

    def give_back(self, reservation: str) -> None:
        """Raise the capacity left in a reservation by one."""
        if reservation in self.left:
            self.left[reservation] += 1

    def _rank(
        self, offer: FleetOverride, capacity_type: str, strategy: str
    ) -> tuple[float, str, str]:
        if strategy in _BY_PRIORITY:
            return offer.priority, offer.instance_type, offer.zone
        price = float(self.price(capacity_type, offer.instance_type, offer.zone))
        return price, offer.instance_type, offer.zone


def lifecycle_of(target: str) -> str:
    """Return the capacity type that a fleet's target type asks for."""
    return SPOT if target == SPOT else ON_DEMAND


def strategy_of(request: Mapping[str, object], capacity_type: str) -> str:
    """Return the allocation strategy of a fleet request."""
    options = request.get("SpotOptions" if capacity_type == SPOT else "OnDemandOptions")
    return str(options.get("AllocationStrategy", "")) if isinstance(options, Mapping) else ""


def counted(offers: Iterable[FleetOverride]) -> dict[FleetOverride, int]:
    """Count how many machines are launched as each offer."""
    counts: dict[FleetOverride, int] = {}
    for each in offers:
        counts[each] = counts.get(each, 0) + 1
    return counts


def _fault(offer: FleetOverride) -> FleetFault:
    if offer.is_full:
        return FleetFault(NO_ADDRESSES, "There are not enough free addresses in the subnet.", offer)
    if offer.reservation:
        message = f"The capacity reservation {offer.reservation} has no machines left."
        return FleetFault(NOTHING_RESERVED, message, offer)
    message = (
        f"We currently do not have sufficient {offer.instance_type} capacity in the Availability"
        f" Zone you requested ({offer.zone})."
    )
    return FleetFault(SOLD_OUT, message, offer)
