"""Offerings of instance types: place, price, and whether they can be launched."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from karpy.model.ec2 import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    EFA_ONLY,
    EXPIRING,
    NITRO,
    PLACEMENT_GROUP_PARTITION,
    ZONE_ID,
    AmiFamily,
    CapacityReservation,
    Ec2Market,
    InstanceSettings,
    InstanceTypeInfo,
)
from karpy.model.ec2nodeclass import NetworkInterface
from karpy.model.instances import Offering, PriceList
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from karpy.model.requirements import Requirement, Requirements, collect, one_of
from karpy.model.times import parse_moment

_RESERVED_DISCOUNT: Final = 100_000
_NO_PARTITION: Final = ("",)
_NOT_RESERVED: Final = (
    Requirement(CAPACITY_RESERVATION_ID),
    Requirement(CAPACITY_RESERVATION_TYPE),
    Requirement(CAPACITY_RESERVATION_INTERRUPTIBLE),
)
_ARM_FIRST: Final = "a1"
"""The first Arm family; Amazon Linux 2023 does not run on its processors."""
_SHIFT_APPLIED: Final = "APPLIED"
_REGION: Final = re.compile(r"[a-z]{2,3}(?:-[a-z]+)+-[0-9]+", re.ASCII)
# The Pricing API has endpoints in four regions; the prefix of a region selects its endpoint.
_PRICING_REGIONS: Final = (
    ("ap-", "ap-south-1"),
    ("cn-", "cn-northwest-1"),
    ("eu-", "eu-central-1"),
)
_PRICING_ELSEWHERE: Final = "us-east-1"


class _Place(NamedTuple):
    """An offering of a type without its price."""

    capacity_type: str
    zone: str
    partition: str
    is_available: bool


class Places:
    """A cache of offerings without prices; types with equal places share one tuple."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._offerings: dict[tuple[_Place, str], Offering] = {}
        self._tuples: dict[tuple[tuple[_Place, str], ...], tuple[Offering, ...]] = {}

    def __len__(self) -> int:
        """Return the number of distinct tuples."""
        return len(self._tuples)

    def shared(self, places: tuple[tuple[_Place, str], ...]) -> tuple[Offering, ...]:
        """Return offerings without prices; equal places and zone IDs give the same tuple."""
        known = self._tuples.get(places)
        if known is None:
            known = self._tuples[places] = tuple(map(self._offering, places))
        return known

    def _offering(self, key: tuple[_Place, str]) -> Offering:
        offering = self._offerings.get(key)
        if offering is None:
            place, zone_id = key
            parts = [one_of(CAPACITY_TYPE, place.capacity_type), one_of(ZONE, place.zone)]
            if zone_id:
                parts.append(one_of(ZONE_ID, zone_id))
            if place.partition:
                parts.append(one_of(PLACEMENT_GROUP_PARTITION, place.partition))
            requirements = collect((*parts, *_NOT_RESERVED))
            offering = Offering(requirements, price=0, is_available=place.is_available)
            self._offerings[key] = offering
        return offering


class OfferingBuilder:
    """The offerings of a region under the settings of one EC2NodeClass."""

    def __init__(self, market: Ec2Market, settings: InstanceSettings, places: Places) -> None:
        """Take prices and availability, the settings, and the cache of places."""
        self._market = market
        self._settings = settings
        self._places = places
        self._zones = market.zone_ids if settings.zones is None else settings.zones
        self._closed_zones = market.shifted_zones | settings.full_zones
        placement = settings.placement
        self._group = "" if placement is None else placement.id
        count = 0 if placement is None else placement.partitions
        self._partitions = tuple(str(each + 1) for each in range(count)) or _NO_PARTITION

    def zones(self, info: InstanceTypeInfo) -> frozenset[str]:
        """Return the zones in which a type is sold and the EC2NodeClass has subnets."""
        sold = self._market.zones.get(info.name, frozenset())
        if self._settings.zones is None:
            return sold
        return sold.intersection(self._settings.zones)

    def zone_ids(self, info: InstanceTypeInfo) -> list[str]:
        """Return the IDs of these zones, as far as they are known."""
        return [self._zones[each] for each in sorted(self.zones(info)) if each in self._zones]

    def reservations(self, info: InstanceTypeInfo) -> list[CapacityReservation]:
        """Return the capacity reservations for a type."""
        return [each for each in self._settings.reservations if each.instance_type == info.name]

    def offerings(self, info: InstanceTypeInfo) -> PriceList:
        """Return all offerings of a type, including those that are sold out."""
        places, prices = [], []
        for place, price in self._priced(info):
            places.append((place, self._zones.get(place.zone, "")))
            prices.append(price)
        shared = self._places.shared(tuple(places))
        reserved = [self._reserved(info, each) for each in self.reservations(info)]
        if not reserved:
            return PriceList(shared, prices)
        return PriceList((*shared, *reserved), [*prices, *(each.price for each in reserved)])

    def _priced(self, info: InstanceTypeInfo) -> Iterator[tuple[_Place, int]]:
        market, name = self._market, info.name
        usual = market.on_demand.get(name, 0)
        is_sold = is_launchable(info, self._settings)
        open_zones = self.zones(info) - self._closed_zones
        for zone in sorted(market.zones.get(name, ())):
            for capacity_type in (ON_DEMAND, SPOT):
                if capacity_type not in info.usage_classes:
                    continue
                price = usual
                if capacity_type == SPOT and market.spot is not None:
                    price = market.spot.get(name, {}).get(zone, 0)
                # Differs: a type that AWS lists no price of, and that a NodeOverlay gives one:
                # Karpenter launches it; Karpy does not, because an overlay corrects prices.
                is_on_sale = (
                    is_sold
                    and price > 0
                    and zone in open_zones
                    and capacity_type not in market.closed_capacity_types
                    and (capacity_type, name, zone) not in market.unavailable
                )
                for partition in self._partitions:
                    is_available = is_on_sale and not self._is_full(
                        capacity_type, name, zone, partition
                    )
                    yield _Place(capacity_type, zone, partition, is_available), price

    def _is_full(self, capacity_type: str, name: str, zone: str, partition: str) -> bool:
        full = self._market.unavailable_in_group
        if not full or not self._group:
            return False
        return any(
            (capacity_type, name, zone, self._group, each) in full for each in {"", partition}
        )

    def _reserved(self, info: InstanceTypeInfo, reservation: CapacityReservation) -> Offering:
        # Differs: the price of reserved capacity: Karpenter takes a ten-millionth of the on-demand
        # price; Karpy takes a hundred-thousandth, because its smallest price is a micro-dollar and
        # the order of types must stay.
        usual = self._market.on_demand.get(info.name, 0)
        flag = "true" if reservation.is_interruptible else "false"
        parts = [
            one_of(CAPACITY_TYPE, RESERVED),
            one_of(ZONE, reservation.zone),
            one_of(CAPACITY_RESERVATION_ID, reservation.id),
            one_of(CAPACITY_RESERVATION_TYPE, reservation.type),
            one_of(CAPACITY_RESERVATION_INTERRUPTIBLE, flag),
        ]
        zone_id = self._zones.get(reservation.zone, "")
        if zone_id:
            parts.append(one_of(ZONE_ID, zone_id))
        is_available = (
            is_launchable(info, self._settings)
            and reservation.state != EXPIRING
            and reservation.left > 0
            and reservation.zone in self.zones(info) - self._closed_zones
        )
        offering = Offering(collect(parts), -(-usual // _RESERVED_DISCOUNT))
        return replace(
            offering,
            is_available=is_available,
            reservation_capacity=reservation.left,
            reservation_id=reservation.id,
        )


def is_launchable(info: InstanceTypeInfo, settings: InstanceSettings) -> bool:
    """Say whether an instance type satisfies the settings of an EC2NodeClass."""
    if settings.family is AmiFamily.AL2023 and info.family == _ARM_FIRST:
        return False
    if settings.needs_nested_virtualization and not info.has_nested_virtualization:
        return False
    if settings.tracks_connections and info.hypervisor != NITRO:
        return False
    placement = settings.placement
    if placement is not None and placement.strategy not in info.placement_strategies:
        return False
    return not settings.network_interfaces or _has_interfaces(info, settings.network_interfaces)


def _has_interfaces(info: InstanceTypeInfo, wanted: tuple[NetworkInterface, ...]) -> bool:
    if not info.has_ena or sum(each.type == EFA_ONLY for each in wanted) > info.efa_max:
        return False
    return all(
        each.card < len(info.cards) and each.device < info.cards[each.card].interfaces
        for each in wanted
    )


def read_shifts(answer: Mapping[str, Any], now: datetime) -> frozenset[str]:
    """Return the IDs of the zones with an active zonal shift, from GetManagedResource."""
    found = set()
    for each in (*(answer.get("zonalShifts") or ()), *(answer.get("autoshifts") or ())):
        ends = each.get("expiryTime")
        moment = ends if isinstance(ends, datetime) else parse_moment(str(ends or ""))
        is_over = moment is not None and moment <= now
        if each.get("appliedStatus") == _SHIFT_APPLIED and not is_over and each.get("awayFrom"):
            found.add(str(each["awayFrom"]))
    return frozenset(found)


def may_use_any_zone(requirements: Requirements, zones: Iterable[tuple[str, str]]) -> bool:
    """Say whether the requirements of a NodePool allow any of these zones, by name and ID."""
    by_name, by_id = requirements.get(ZONE), requirements.get(ZONE_ID)
    return any(
        (by_name is None or name in by_name) and (by_id is None or id_ in by_id)
        for name, id_ in zones
    )


def zone_region(zone: str) -> str:
    """Return the region of a zone or Local Zone; empty if the text is not a zone."""
    found = _REGION.match(zone)
    return found[0] if found else ""


def pricing_region(region: str) -> str:
    """Return the region of the Pricing endpoint that has the prices of a region."""
    found = (where for prefix, where in _PRICING_REGIONS if region.startswith(prefix))
    return next(found, _PRICING_ELSEWHERE)
