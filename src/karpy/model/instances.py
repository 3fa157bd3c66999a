"""What a cloud sells: instance types, their offerings and prices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, overload

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.labels import CAPACITY_TYPE, RESERVED, WELL_KNOWN, ZONE
from karpy.model.requirements import Requirements
from karpy.model.resources import HUGEPAGES_PREFIX, MEMORY, Resources

MICROS_PER_DOLLAR: Final = 1_000_000
PRICE_MAX: Final = 2**62 - 1
"""In micro-dollars; no price is higher."""
LAUNCH_OPTIONS_MAX: Final = 600


def micros(dollars: float) -> int:
    """Turn a price into whole micro-dollars; prices are never compared as floats."""
    return round(dollars * MICROS_PER_DOLLAR)


class Offering(Struct, frozen=True, gc=False):
    """An instance type in one zone and capacity type at one price."""

    requirements: Requirements
    price: int
    """Micro-dollars per hour."""
    is_available: bool = True
    reservation_capacity: int = 0
    reservation_id: str = ""
    capacity_override: Resources = {}
    overhead_override: Resources = {}

    @property
    def zone(self) -> str:
        return self._only(ZONE)

    @property
    def capacity_type(self) -> str:
        return self._only(CAPACITY_TYPE)

    @property
    def is_reserved(self) -> bool:
        return self.capacity_type == RESERVED

    @property
    def is_launchable(self) -> bool:
        """Whether a machine can be launched now: not from a reservation without capacity left."""
        return self.is_available and (not self.is_reserved or self.reservation_capacity > 0)

    def _only(self, key: str) -> str:
        requirement = self.requirements.get(key)
        return min(requirement.values) if requirement and requirement.values else ""


class PriceList(Sequence[Offering]):
    """
    Offerings as two columns: their places, and the price at each place.

    Types that are sold in the same places share one tuple of places, so that code which scans a
    catalog reads the places once. The offerings themselves are built on first access.
    """

    __slots__ = ("_offerings", "places", "prices")

    def __init__(self, places: tuple[Offering, ...], prices: Sequence[int]) -> None:
        """Take offerings without regard to their own price, and the price of each."""
        self.places = places
        self.prices = prices
        self._offerings: tuple[Offering, ...] | None = None

    @overload
    def __getitem__(self, index: int) -> Offering: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Offering, ...]: ...

    def __getitem__(self, index: int | slice) -> Offering | tuple[Offering, ...]:
        return self._built()[index]

    def __iter__(self) -> Iterator[Offering]:
        return iter(self._built())

    def __len__(self) -> int:
        return len(self.prices)

    def __eq__(self, other: object) -> bool:
        """Compare as a tuple of offerings would."""
        if isinstance(other, PriceList):
            return self._built() == other._built()
        return self._built() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._built())

    def __repr__(self) -> str:
        return repr(self._built())

    def _built(self) -> tuple[Offering, ...]:
        if self._offerings is None:
            self._offerings = tuple(
                replace(place, price=price)
                for place, price in zip(self.places, self.prices, strict=True)
            )
        return self._offerings


def columns(offerings: Sequence[Offering]) -> tuple[Sequence[Offering], Sequence[int]]:
    """Return the places of offerings, which types may share, and the price at each place."""
    if isinstance(offerings, PriceList):
        return offerings.places, offerings.prices
    return offerings, [offering.price for offering in offerings]


class InstanceType(Struct, frozen=True, gc=False):
    """An instance type; `overhead` is what the system keeps of its capacity."""

    name: str
    requirements: Requirements
    offerings: Sequence[Offering]
    """A tuple or a price list."""
    capacity: Resources
    overhead: Resources = {}
    volume_limits: Mapping[str, int] = {}
    """Attachable volumes by CSI driver; an absent driver has no known limit."""
    is_price_overlaid: bool = False
    is_capacity_overlaid: bool = False

    @property
    def allocatable(self) -> dict[str, int]:
        return allocatable(self.capacity, self.overhead)


def allocatable(capacity: Resources, overhead: Resources) -> dict[str, int]:
    """Subtract overhead from capacity; huge pages also come out of memory, which stops at zero."""
    result = {**capacity}
    for name, amount in overhead.items():
        if name in result:
            result[name] -= amount
    for name, amount in capacity.items():
        if name.startswith(HUGEPAGES_PREFIX) and MEMORY in result:
            result[MEMORY] = max(0, result[MEMORY] - amount)
    return result


class Catalog(Struct, frozen=True, gc=False):
    """Everything on sale, and which of it each NodePool may use."""

    types: tuple[InstanceType, ...] = ()
    by_pool: Mapping[str, tuple[InstanceType, ...]] = {}
    """Types of each pool whose types or prices differ from `types`."""
    well_known: frozenset[str] = WELL_KNOWN
    reservation_label: str = ""
    """The label that holds the ID of a capacity reservation."""

    @property
    def type_count(self) -> int:
        """The number of distinct names of instance types, those of single pools included."""
        lists = {id(each): each for each in (self.types, *self.by_pool.values())}.values()
        return len({kind.name for each in lists for kind in each})

    def types_for(self, pool: str) -> tuple[InstanceType, ...]:
        return self.by_pool.get(pool, self.types)
