"""EC2's instance types as decisions see them: labels, capacity, offerings; and their gauges."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from karpy.core.aws.capacity import TRAITS, capacity, overhead
from karpy.core.aws.offerings import OfferingBuilder
from karpy.core.lifecycle.changes import Count
from karpy.model.ec2 import (
    AUTO_MODE_DOMAIN,
    AUTO_MODE_TYPE_LABELS,
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_ACCELERATOR_MANUFACTURER,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_CAPABILITY_FLEX,
    INSTANCE_CATEGORY,
    INSTANCE_CPU,
    INSTANCE_CPU_CLOCK,
    INSTANCE_CPU_MANUFACTURER,
    INSTANCE_EBS_BANDWIDTH,
    INSTANCE_ENCRYPTION,
    INSTANCE_FAMILY,
    INSTANCE_GENERATION,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_MANUFACTURER,
    INSTANCE_GPU_MEMORY,
    INSTANCE_GPU_NAME,
    INSTANCE_HYPERVISOR,
    INSTANCE_LOCAL_NVME,
    INSTANCE_MEMORY,
    INSTANCE_NETWORK_BANDWIDTH,
    INSTANCE_SIZE,
    INSTANCE_TENANCY,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    TENANCIES,
    TYPE_LABELS,
    ZONE_ID,
    AmiFamily,
    Device,
    Ec2Settings,
    InstanceSettings,
    InstanceTypeInfo,
)
from karpy.model.ec2nodeclass import Ec2NodeClassSpec, Ec2NodeClassStatus, Kubelet
from karpy.model.instances import MICROS_PER_DOLLAR, Catalog, InstanceType, PriceList
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
from karpy.model.resources import CPU, MEMORY, Resources

_ALIASES: Final = {each.value.lower(): each for each in AmiFamily}
_RAID0: Final = "RAID0"
_ENABLED: Final = "enabled"
_AMD64: Final = "amd64"
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_TYPE_FAMILY: Final = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]+)", re.ASCII)
"""Category and generation at the start of a family: c7g, u-6tb1, p6-b200."""
_FLEX: Final = "-flex"
CORES: Final = "cloudprovider_instance_type_cpu_cores"
BYTES: Final = "cloudprovider_instance_type_memory_bytes"
AVAILABLE: Final = "cloudprovider_instance_type_offering_available"
PRICE: Final = "cloudprovider_instance_type_offering_price_estimate"
_MILLI: Final = 1000


def settings_of(spec: Ec2NodeClassSpec) -> InstanceSettings:
    """
    Return the settings that follow from the spec of an EC2NodeClass.

    Zones, reservations and the placement group are in its status; without zones, all are allowed.
    """
    return InstanceSettings(
        family=ami_family(spec),
        kubelet=spec.kubelet or Kubelet(),
        disks=spec.disks,
        is_raid0=spec.instance_store_policy == _RAID0,
        network_interfaces=spec.network_interfaces,
        needs_nested_virtualization=spec.nested_virtualization == _ENABLED,
        tracks_connections=spec.connection_tracking is not None,
    )


def ami_family(spec: Ec2NodeClassSpec) -> AmiFamily:
    """Return the amiFamily, or the family of the alias; AL2 if neither is known."""
    name, _ = spec.alias or ("", "")
    return _ALIASES.get((spec.image_family or name).lower(), AmiFamily.AL2)


def zones_of(status: Ec2NodeClassStatus) -> dict[str, str]:
    """Return the zone IDs of the zones with subnets, by zone."""
    return {each.zone: each.zone_id for each in status.subnets}


class TypeProperties(Struct, frozen=True):
    """The properties of an instance type that do not depend on its offerings."""

    requirements: Requirements
    capacity: Resources
    overhead: Resources


def frame(
    info: InstanceTypeInfo, region: str, settings: InstanceSettings, operator: Ec2Settings
) -> TypeProperties:
    """Return labels, capacity and overhead of a type under the settings of an EC2NodeClass."""
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
    return TypeProperties(requirements, amounts, overhead(info, settings, amounts))


def instance_type(
    info: InstanceTypeInfo, frame: TypeProperties, shop: OfferingBuilder
) -> InstanceType:
    """Return an instance type with all its offerings."""
    return sold_type(info, frame, shop, shop.offerings(info))


def sold_type(
    info: InstanceTypeInfo, frame: TypeProperties, shop: OfferingBuilder, offerings: PriceList
) -> InstanceType:
    """Return an instance type with these offerings."""
    reservations = shop.reservations(info)
    unreserved = [each for each in (ON_DEMAND, SPOT) if each in info.usage_classes]
    parts = (
        _in(ZONE, sorted(shop.zones(info))),
        _in(ZONE_ID, sorted(shop.zone_ids(info))),
        _in(CAPACITY_TYPE, [*unreserved, RESERVED] if reservations else unreserved),
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
    """Build `key In [values]`, DoesNotExist without values; equal requirements are one object."""
    return _interned(key, tuple(values))


@lru_cache(maxsize=65536)
def _interned(key: str, values: tuple[str, ...]) -> Requirement:
    return Requirement(key, frozenset(values))


def type_labels(info: InstanceTypeInfo) -> dict[str, str]:
    """Return the labels of a type without their domain."""
    return dict(_labels(info))


def architecture(info: InstanceTypeInfo) -> str:
    """Return the architecture as Kubernetes names it; the name of EC2 if Kubernetes has none."""
    known = (_ARCHITECTURES[each] for each in info.architectures if each in _ARCHITECTURES)
    return next(known, " ".join(info.architectures))


def _labels(info: InstanceTypeInfo) -> Iterator[tuple[str, str]]:
    yield INSTANCE_CPU, str(info.vcpus)
    yield INSTANCE_MEMORY, str(info.memory_mib)
    yield INSTANCE_FAMILY, info.family
    yield INSTANCE_SIZE, info.size
    yield INSTANCE_HYPERVISOR, info.hypervisor
    yield INSTANCE_ENCRYPTION, _flag(is_set=info.encrypts_in_transit)
    yield INSTANCE_CAPABILITY_FLEX, _flag(is_set=_FLEX in info.family)
    named = _TYPE_FAMILY.match(info.family)
    if named is not None:
        yield INSTANCE_CATEGORY, named[1]
        yield INSTANCE_GENERATION, named[2]
    if info.manufacturer:
        yield INSTANCE_CPU_MANUFACTURER, info.manufacturer.lower()
    if info.clock_mhz is not None:
        yield INSTANCE_CPU_CLOCK, str(info.clock_mhz)
    if info.ebs_mbps is not None:
        yield INSTANCE_EBS_BANDWIDTH, str(info.ebs_mbps)
    # Differs: the label for network bandwidth: Karpenter has a table of bandwidths; Karpy adds up
    # what EC2 reports of each network card, which may be a little more for types with several
    # cards.
    bandwidth = sum(each.bandwidth_mbps for each in info.cards)
    if bandwidth:
        yield INSTANCE_NETWORK_BANDWIDTH, str(bandwidth)
    if info.disk_gb and info.is_nvme:
        yield INSTANCE_LOCAL_NVME, str(info.disk_gb)
    yield from _gpu_labels(info.gpus)
    yield from _accelerator_labels(info)


def _gpu_labels(gpus: tuple[Device, ...]) -> Iterator[tuple[str, str]]:
    if len(gpus) == 1:
        (gpu,) = gpus
        yield INSTANCE_GPU_NAME, _label_value(gpu.name)
        yield INSTANCE_GPU_MANUFACTURER, _label_value(gpu.manufacturer)
        yield INSTANCE_GPU_COUNT, str(gpu.count)
        yield INSTANCE_GPU_MEMORY, str(gpu.memory_mib)


def _accelerator_labels(info: InstanceTypeInfo) -> Iterator[tuple[str, str]]:
    devices: Iterable[Device] = info.neurons or info.accelerators
    for device in tuple(devices)[:1]:
        yield INSTANCE_ACCELERATOR_NAME, _label_value(device.name)
        yield INSTANCE_ACCELERATOR_MANUFACTURER, _label_value(device.manufacturer)
        yield INSTANCE_ACCELERATOR_COUNT, str(device.count)


def _label_value(name: str) -> str:
    return name.lower().replace(" ", "-")


def _flag(*, is_set: bool) -> str:
    return "true" if is_set else "false"


def type_gauges(catalog: Catalog) -> Iterator[Count]:
    """Yield the gauges of all types that any NodePool may use."""
    by_name: dict[str, list[InstanceType]] = {}
    lists = {id(each): each for each in (catalog.types, *catalog.by_pool.values())}
    for types in lists.values():
        for each in types:
            by_name.setdefault(each.name, []).append(each)
    for name, variants in sorted(by_name.items()):
        yield from _gauges_of_type(name, variants)


def _gauges_of_type(name: str, variants: Sequence[InstanceType]) -> Iterator[Count]:
    places: dict[tuple[str, str], tuple[bool, int]] = {}
    for type_ in variants:
        for offer in type_.offerings:
            key = offer.capacity_type, offer.zone
            known = places.get(key, (False, offer.price))
            places[key] = known[0] or offer.is_available, known[1]
    label = {"instance_type": name}
    yield Count(CORES, label, variants[0].capacity.get(CPU, 0) / _MILLI)
    yield Count(BYTES, label, float(variants[0].capacity.get(MEMORY, 0)))
    for (capacity_type, zone), (is_available, price) in sorted(places.items()):
        labels = {**label, "capacity_type": capacity_type, "zone": zone}
        yield Count(AVAILABLE, labels, float(is_available))
        yield Count(PRICE, labels, price / MICROS_PER_DOLLAR)
