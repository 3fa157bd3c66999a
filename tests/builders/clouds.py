"""What the cloud of these tests sells: types, offerings, reservations, overlays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypedDict, Unpack

from karpy.model.instances import Catalog, InstanceType, Offering, micros
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    RESERVED,
    SPOT,
    WELL_KNOWN,
    ZONE,
)
from karpy.model.pools import NodeOverlay
from karpy.model.requirements import Requirement, collect, one_of
from karpy.model.resources import CPU, MEMORY, PODS
from tests.builders.constraints import absent
from tests.builders.nodes import ZONE_A, ZONES
from tests.builders.pods import amounts

FAMILY: Final = "example.com/family"
CPUS: Final = "example.com/cpus"
GPU_NAME: Final = "example.com/gpu-name"
RESERVATION: Final = "example.com/reservation-id"
WELL_KNOWN_HERE: Final = WELL_KNOWN | {FAMILY, CPUS, GPU_NAME, RESERVATION}
"""The provider of these tests defines a family, a CPU count, a GPU and a reservation id."""


class OfferingFields(TypedDict, total=False):
    """What an offering may say besides where, how and for how much."""

    available: bool
    reservation: str
    left: int
    """Machines left of the reservation."""
    capacity: Mapping[str, str]
    overhead: Mapping[str, str]


def offering(
    zone: str = ZONE_A,
    capacity_type: str = ON_DEMAND,
    dollars: float = 1.0,
    **fields: Unpack[OfferingFields],
) -> Offering:
    """Build an available offering; a reservation makes it a reserved one."""
    reservation = fields.get("reservation", "")
    capacity_type = RESERVED if reservation else capacity_type
    parts = [one_of(ZONE, zone), one_of(CAPACITY_TYPE, capacity_type)]
    # Reservations tell themselves apart by this label; all other offerings must not carry it.
    parts.append(one_of(RESERVATION, reservation) if reservation else absent(RESERVATION))
    return Offering(
        requirements=collect(parts),
        price=micros(dollars),
        is_available=fields.get("available", True),
        reservation_capacity=fields.get("left", 0),
        reservation_id=reservation,
        capacity_override=amounts(**fields.get("capacity", {})),
        overhead_override=amounts(**fields.get("overhead", {})),
    )


class TypeFields(TypedDict, total=False):
    """What an instance type may say; without offerings it is on sale in every zone."""

    cpu: str
    memory: str
    pods: int
    capacity: Mapping[str, str]
    overhead: Mapping[str, str]
    zones: Sequence[str]
    dollars: float
    spot_dollars: float | None
    offerings: Sequence[Offering]
    arch: str
    requirements: Sequence[Requirement]
    volume_limits: Mapping[str, int]


def instance_type(name: str, **fields: Unpack[TypeFields]) -> InstanceType:
    """Build a type of 4 CPUs and 16Gi at a dollar on demand; spot only if it has a price."""
    zones = tuple(fields.get("zones", ZONES))
    spot = fields.get("spot_dollars")
    sold = [offering(zone, ON_DEMAND, fields.get("dollars", 1.0)) for zone in zones]
    sold += [offering(zone, SPOT, spot) for zone in zones if spot is not None]
    sold = list(fields.get("offerings", sold))
    cpu = amounts(cpu=fields.get("cpu", "4"))[CPU]
    parts = [
        one_of(INSTANCE_TYPE, name),
        one_of(ARCH, fields.get("arch", "amd64")),
        one_of(OS, "linux"),
        one_of(ZONE, *(each.zone for each in sold)),
        one_of(CAPACITY_TYPE, *(each.capacity_type for each in sold)),
        one_of(FAMILY, name.partition(".")[0]),
        one_of(CPUS, str(cpu // 1000)),
        *fields.get("requirements", ()),
    ]
    return InstanceType(
        name=name,
        requirements=collect(parts),
        offerings=tuple(sold),
        capacity={
            CPU: cpu,
            **amounts(memory=fields.get("memory", "16Gi")),
            PODS: fields.get("pods", 110),
            **amounts(**fields.get("capacity", {})),
        },
        overhead=amounts(**fields.get("overhead", {})),
        volume_limits=fields.get("volume_limits", {}),
    )


_SIZES: Final = (("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16))
_GIB_PER_CPU: Final = {"c": 2, "m": 4, "r": 8}
_DOLLARS_PER_CPU: Final = {"c": 0.042, "m": 0.048, "r": 0.063}


def ec2_types(zones: Sequence[str] = ZONES) -> tuple[InstanceType, ...]:
    """Build twelve types, c/m/r from 2 to 16 CPUs, spot at four tenths of on demand."""
    return tuple(
        instance_type(
            f"{family}.{size}",
            cpu=str(cpus),
            memory=f"{cpus * gib}Gi",
            zones=zones,
            dollars=round(cpus * _DOLLARS_PER_CPU[family], 6),
            spot_dollars=round(cpus * _DOLLARS_PER_CPU[family] * 0.4, 6),
            overhead={CPU: "100m", MEMORY: "512Mi"},
        )
        for family, gib in _GIB_PER_CPU.items()
        for size, cpus in _SIZES
    )


def catalog(
    types: Iterable[InstanceType] | None = None,
    by_pool: Mapping[str, Iterable[InstanceType]] | None = None,
) -> Catalog:
    """Build a catalog; the twelve EC2-like types if none are given."""
    return Catalog(
        types=ec2_types() if types is None else tuple(types),
        by_pool={name: tuple(some) for name, some in (by_pool or {}).items()},
        well_known=WELL_KNOWN_HERE,
        reservation_label=RESERVATION,
    )


class OverlayFields(TypedDict, total=False):
    """What an overlay may say."""

    price: str
    price_adjustment: str
    weight: int


def overlay(
    name: str,
    *requirements: Requirement,
    capacity: Mapping[str, str] = {},
    **fields: Unpack[OverlayFields],
) -> NodeOverlay:
    """Build an overlay; fields are those of NodeOverlay, capacity as quantities."""
    return NodeOverlay(name, requirements, capacity=amounts(**capacity), **fields)
