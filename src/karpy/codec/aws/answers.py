"""Responses of EC2 and Pricing to values."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.ec2 import (
    CapacityReservation,
    FleetError,
    Image,
    Instance,
    PlacementGroup,
    SecurityGroup,
    Subnet,
)
from karpy.model.instances import micros
from karpy.model.labels import ON_DEMAND, RESERVED, SPOT
from karpy.model.times import parse_moment

ONLY_RESERVED: Final = "capacity-reservations-only"


class Launched(Struct, frozen=True, gc=False):
    """A machine that CreateFleet has just started."""

    id: str
    instance_type: str
    zone: str
    image: str
    subnet: str = ""
    lifecycle: str = ON_DEMAND


class FleetAnswer(Struct, frozen=True, gc=False):
    """The response of CreateFleet."""

    launched: tuple[Launched, ...] = ()
    errors: tuple[FleetError, ...] = ()


def read_subnet(obj: JsonObject) -> Subnet:
    """Read a subnet."""
    return Subnet(
        obj["SubnetId"],
        obj.get("AvailabilityZone", ""),
        obj.get("AvailabilityZoneId", ""),
        obj.get("AvailableIpAddressCount", 0),
    )


def read_security_group(obj: JsonObject) -> SecurityGroup:
    """Read a security group."""
    return SecurityGroup(obj["GroupId"], obj.get("GroupName", ""))


def read_image(obj: JsonObject) -> Image:
    """Read an image."""
    return Image(
        obj["ImageId"],
        obj.get("Name", ""),
        obj.get("Architecture", ""),
        _moment(obj.get("CreationDate")),
        _moment(obj.get("DeprecationTime")),
    )


def read_reservation(obj: JsonObject) -> CapacityReservation:
    """Read a capacity reservation."""
    return CapacityReservation(
        obj["CapacityReservationId"],
        obj.get("InstanceType", ""),
        obj.get("AvailabilityZone", ""),
        obj.get("OwnerId", ""),
        obj.get("InstanceMatchCriteria", ""),
        obj.get("ReservationType", "default"),
        bool(obj.get("Interruptible") or obj.get("InterruptibleCapacityAllocation")),
        obj.get("State", "active"),
        obj.get("AvailableInstanceCount", 0),
        _moment(obj.get("EndDate")),
    )


def read_placement_group(obj: JsonObject) -> PlacementGroup:
    """Read a placement group."""
    return PlacementGroup(
        obj.get("GroupId", ""),
        obj.get("GroupName", ""),
        obj.get("Strategy", ""),
        obj.get("PartitionCount") or 0,
    )


def read_instance(obj: JsonObject, *, reserves: bool = True) -> Instance:
    """Read a machine; `reserves` is the gate ReservedCapacity."""
    placement = obj.get("Placement") or {}
    interfaces = obj.get("NetworkInterfaces") or ()
    partition = placement.get("PartitionNumber")
    return Instance(
        id=obj["InstanceId"],
        instance_type=obj.get("InstanceType", ""),
        zone=placement.get("AvailabilityZone", ""),
        state=(obj.get("State") or {}).get("Name", ""),
        image=obj.get("ImageId", ""),
        launched=_moment(obj.get("LaunchTime")),
        subnet=obj.get("SubnetId", ""),
        security_groups=tuple(each["GroupId"] for each in obj.get("SecurityGroups") or ()),
        capacity_type=_capacity_type(obj, reserves=reserves),
        reservation=obj.get("CapacityReservationId", ""),
        tenancy=placement.get("Tenancy", "default"),
        tags=read_tags(obj.get("Tags")),
        placement_group=placement.get("GroupId", ""),
        partition="" if partition is None else str(partition),
        zone_id=placement.get("AvailabilityZoneId", ""),
        efa_count=sum(each.get("InterfaceType") in {"efa", "efa-only"} for each in interfaces),
    )


def read_fleet(obj: JsonObject) -> FleetAnswer:
    """Read the response of CreateFleet: the machines it started, and its errors."""
    return FleetAnswer(
        tuple(each for part in obj.get("Instances") or () for each in _launched(part)),
        tuple(map(_fleet_error, obj.get("Errors") or ())),
    )


def read_offerings(objs: Iterable[JsonObject]) -> dict[str, frozenset[str]]:
    """Return the zones that each instance type is offered in."""
    zones: dict[str, set[str]] = {}
    for each in objs:
        zones.setdefault(each["InstanceType"], set()).add(each["Location"])
    return {name: frozenset(some) for name, some in zones.items()}


def read_spot_prices(objs: Iterable[JsonObject]) -> dict[str, dict[str, int]]:
    """Return spot prices by instance type and zone; the latest of each counts."""
    prices: dict[str, dict[str, int]] = {}
    latest: dict[tuple[str, str], object] = {}
    for each in objs:
        place = each["InstanceType"], each["AvailabilityZone"]
        when = each.get("Timestamp")
        if place in latest and _is_before(when, latest[place]):
            continue
        latest[place] = when
        prices.setdefault(place[0], {})[place[1]] = micros(float(each["SpotPrice"]))
    return prices


def read_products(products: Iterable[JsonObject], currency: str = "USD") -> dict[str, int]:
    """Return on-demand prices by instance type, of products as the Pricing API lists them."""
    prices: dict[str, int] = {}
    for each in products:
        name = each.get("product", {}).get("attributes", {}).get("instanceType")
        terms = each.get("terms", {}).get("OnDemand", {})
        for term in terms.values():
            for dimension in term.get("priceDimensions", {}).values():
                price = micros(float(dimension.get("pricePerUnit", {}).get(currency, 0)))
                if name and price:
                    prices[name] = price
    return prices


def read_tags(tags: object) -> dict[str, str]:
    """Read tags as EC2 gives them."""
    found = tags if isinstance(tags, list) else ()
    return {each["Key"]: each.get("Value", "") for each in found if isinstance(each, dict)}


def _launched(part: JsonObject) -> Iterable[Launched]:
    overrides = (part.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}
    for id_ in part.get("InstanceIds") or ():
        yield Launched(
            id_,
            part.get("InstanceType") or overrides.get("InstanceType", ""),
            overrides.get("AvailabilityZone", ""),
            overrides.get("ImageId", ""),
            overrides.get("SubnetId", ""),
            part.get("Lifecycle", ON_DEMAND),
        )


def _fleet_error(obj: JsonObject) -> FleetError:
    overrides = (obj.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}
    return FleetError(
        obj.get("ErrorCode", ""),
        obj.get("ErrorMessage", ""),
        overrides.get("InstanceType", ""),
        overrides.get("AvailabilityZone", ""),
        overrides.get("SubnetId", ""),
        obj.get("Lifecycle", ""),
    )


def _capacity_type(obj: JsonObject, *, reserves: bool) -> str:
    if obj.get("SpotInstanceRequestId") or obj.get("InstanceLifecycle") == SPOT:
        return SPOT
    specification = obj.get("CapacityReservationSpecification") or {}
    is_targeted = specification.get("CapacityReservationPreference") == ONLY_RESERVED
    return RESERVED if reserves and obj.get("CapacityReservationId") and is_targeted else ON_DEMAND


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    return parse_moment(value) if isinstance(value, str) else None


def _is_before(one: object, other: object) -> bool:
    return isinstance(one, datetime) and isinstance(other, datetime) and one < other
