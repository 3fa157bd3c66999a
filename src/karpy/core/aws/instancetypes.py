"""EC2's instance types as a cluster sees them: labels, capacity, overhead and offerings."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from karpy.core.aws.amifamilies import TRAITS
from karpy.core.aws.capacity import capacity
from karpy.core.aws.offerings import Shop
from karpy.core.aws.overhead import overhead
from karpy.core.aws.typelabels import architecture, type_labels
from karpy.model.ec2labels import (
    AUTO_MODE_DOMAIN,
    AUTO_MODE_TYPE_LABELS,
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    INSTANCE_TENANCY,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    TENANCIES,
    TYPE_LABELS,
    ZONE_ID,
)
from karpy.model.ec2types import Ec2Settings, InstanceSettings, InstanceTypeInfo
from karpy.model.instances import InstanceType, PriceList
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    REGION,
    RESERVED,
    SPOT,
    WINDOWS_BUILD,
    ZONE,
)
from karpy.model.requirements import Requirement, Requirements
from karpy.model.resources import Resources

_AMD64: Final = "amd64"


class Frame(Struct, frozen=True):
    """What is the same of an instance type wherever it is sold, and at any price."""

    requirements: Requirements
    capacity: Resources
    overhead: Resources


def frame(
    info: InstanceTypeInfo, region: str, settings: InstanceSettings, operator: Ec2Settings
) -> Frame:
    """Return labels, capacity and overhead of a type for the nodes of an EC2NodeClass."""
    amounts = capacity(info, settings, operator)
    parts = (
        _in(INSTANCE_TYPE, (info.name,)),
        _in(ARCH, (architecture(info),)),
        *_of_system(info, settings),
        _in(REGION, (region,)),
        *_of_type(info, settings),
        *_of_placement(settings),
    )
    requirements = {each.key: each for each in parts}
    return Frame(requirements, amounts, overhead(info, settings, amounts))


def instance_type(info: InstanceTypeInfo, frame: Frame, shop: Shop) -> InstanceType:
    """Return an instance type with all its offerings."""
    return sold_type(info, frame, shop, shop.offerings(info))


def sold_type(
    info: InstanceTypeInfo, frame: Frame, shop: Shop, offerings: PriceList
) -> InstanceType:
    """Return an instance type with offerings that its shop has made."""
    reservations = shop.reservations(info)
    ways = [each for each in (ON_DEMAND, SPOT) if each in info.usage_classes]
    parts = (
        _in(ZONE, sorted(shop.zones(info))),
        _in(ZONE_ID, sorted(shop.zone_ids(info))),
        _in(CAPACITY_TYPE, [*ways, RESERVED] if reservations else ways),
        _in(CAPACITY_RESERVATION_ID, sorted({each.id for each in reservations})),
        _in(CAPACITY_RESERVATION_TYPE, sorted({each.type for each in reservations})),
        _in(
            CAPACITY_RESERVATION_INTERRUPTIBLE,
            sorted({"true" if each.is_interruptible else "false" for each in reservations}),
        ),
    )
    requirements = {**frame.requirements, **{each.key: each for each in parts}}
    return InstanceType(info.name, requirements, offerings, frame.capacity, frame.overhead)


def _of_system(info: InstanceTypeInfo, settings: InstanceSettings) -> tuple[Requirement, ...]:
    build = TRAITS[settings.family].windows_build
    if not build:
        return _in(OS, ("linux",)), _in(WINDOWS_BUILD, ())
    systems = ("windows",) if architecture(info) == _AMD64 else ()
    return _in(OS, systems), _in(WINDOWS_BUILD, (build,))


def _of_type(info: InstanceTypeInfo, settings: InstanceSettings) -> list[Requirement]:
    found = type_labels(info)
    domain = settings.label_domain
    known = [
        _in(domain + key, (found[key],) if key in found else ())
        for key in TYPE_LABELS
        if domain != AUTO_MODE_DOMAIN or key in AUTO_MODE_TYPE_LABELS
    ]
    return known if domain == AUTO_MODE_DOMAIN else [*known, _in(INSTANCE_TENANCY, TENANCIES)]


def _of_placement(settings: InstanceSettings) -> tuple[Requirement, ...]:
    placement = settings.placement
    if settings.label_domain == AUTO_MODE_DOMAIN:
        return ()
    if placement is None:
        return _in(PLACEMENT_GROUP_ID, ()), _in(PLACEMENT_GROUP_PARTITION, ())
    partitions = [str(each + 1) for each in range(placement.partitions)]
    return _in(PLACEMENT_GROUP_ID, (placement.id,)), _in(PLACEMENT_GROUP_PARTITION, partitions)


def _in(key: str, values: Iterable[str]) -> Requirement:
    """Build `key In [values]`, or DoesNotExist if there are none; alike ones are one object."""
    return _interned(key, tuple(values))


@lru_cache(maxsize=65536)
def _interned(key: str, values: tuple[str, ...]) -> Requirement:
    return Requirement(key, frozenset(values))
