"""Instance types from decoded responses of DescribeInstanceTypes."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, ValidationError, convert, field

from karpy.codec.fields import FieldInvalid
from karpy.model.ec2 import Device, InstanceTypeInfo, NetworkCard

_ARCHITECTURES: Final = frozenset({"arm64", "x86_64"})
_HVM: Final = "hvm"
_MBPS_PER_GBPS: Final = 1000
_MHZ_PER_GHZ: Final = 1000
_UNSUPPORTED: Final = "unsupported"
_USUAL: Final = "default"
_NESTED_VIRTUALIZATION: Final = "nested-virtualization"
_HINT: Final = "leave the type out, or take the answer of another API version"


class _Wire(Struct, frozen=True, rename="pascal"):
    """A part of a response; fields that are not declared are ignored."""


class _Processor(_Wire, frozen=True):
    supported_architectures: tuple[str, ...]
    manufacturer: str = ""
    sustained_clock_speed_in_ghz: float | None = None
    supported_features: tuple[str, ...] = ()


class _Cpu(_Wire, frozen=True):
    default_vcpus: int = field(name="DefaultVCpus")


class _Memory(_Wire, frozen=True):
    size_mib: int = field(name="SizeInMiB", default=0)


class _Card(_Wire, frozen=True):
    maximum_network_interfaces: int
    baseline_bandwidth_in_gbps: float = 0.0
    network_card_index: int = 0


class _Efa(_Wire, frozen=True):
    maximum_efa_interfaces: int = 0


class _Network(_Wire, frozen=True):
    ipv4_addresses_per_interface: int
    network_cards: tuple[_Card, ...]
    default_network_card_index: int = 0
    efa_info: _Efa = _Efa()
    ena_support: str = _UNSUPPORTED
    encryption_in_transit_supported: bool = False


class _EbsOptimized(_Wire, frozen=True):
    maximum_bandwidth_in_mbps: int | None = None


class _Ebs(_Wire, frozen=True):
    ebs_optimized_support: str = ""
    ebs_optimized_info: _EbsOptimized = _EbsOptimized()


class _Storage(_Wire, frozen=True):
    total_size_gb: int = field(name="TotalSizeInGB", default=0)
    nvme_support: str = ""


class _Cores(_Wire, frozen=True):
    count: int = 0


class _Device(_Wire, frozen=True):
    name: str = ""
    manufacturer: str = "AWS"
    count: int = 0
    memory_info: _Memory = _Memory()
    core_info: _Cores = _Cores()


class _Gpus(_Wire, frozen=True):
    gpus: tuple[_Device, ...] = ()


class _Neurons(_Wire, frozen=True):
    neuron_devices: tuple[_Device, ...] = ()


class _Accelerators(_Wire, frozen=True):
    accelerators: tuple[_Device, ...] = ()


class _Placement(_Wire, frozen=True):
    supported_strategies: frozenset[str] = frozenset()


class _InstanceType(_Wire, frozen=True):
    instance_type: str
    v_cpu_info: _Cpu
    memory_info: _Memory
    processor_info: _Processor
    network_info: _Network
    ebs_info: _Ebs = _Ebs()
    hypervisor: str = ""
    supported_usage_classes: tuple[str, ...] = ()
    supported_virtualization_types: tuple[str, ...] = ()
    instance_storage_info: _Storage = _Storage()
    gpu_info: _Gpus = _Gpus()
    neuron_info: _Neurons = _Neurons()
    inference_accelerator_info: _Accelerators = _Accelerators()
    placement_group_info: _Placement = _Placement()


def read_instance_types(
    answers: Iterable[object],
) -> tuple[tuple[InstanceTypeInfo, ...], tuple[FieldInvalid, ...]]:
    """
    Return the instance types that can run containers, sorted by name, and faults of the others.

    Types that cannot, such as Macs, are left out without a fault.
    """
    found: list[InstanceTypeInfo] = []
    faults: list[FieldInvalid] = []
    for each in answers:
        try:
            wire = convert(each, _InstanceType)
        except ValidationError as error:
            name = each.get("InstanceType", "") if isinstance(each, dict) else ""
            faults.append(FieldInvalid(str(name), f"cannot be read: {error}", _HINT))
            continue
        if _can_run_containers(wire):
            found.append(_info(wire))
    return tuple(sorted(found, key=lambda each: each.name)), tuple(faults)


def _can_run_containers(wire: _InstanceType) -> bool:
    architectures = wire.processor_info.supported_architectures
    return (
        _HVM in wire.supported_virtualization_types
        and not _ARCHITECTURES.isdisjoint(architectures)
        and bool(wire.network_info.network_cards)
    )


def _info(wire: _InstanceType) -> InstanceTypeInfo:
    processor, network, ebs = wire.processor_info, wire.network_info, wire.ebs_info
    clock = processor.sustained_clock_speed_in_ghz
    storage = wire.instance_storage_info
    is_optimized = ebs.ebs_optimized_support == _USUAL
    return InstanceTypeInfo(
        name=wire.instance_type,
        vcpus=wire.v_cpu_info.default_vcpus,
        memory_mib=wire.memory_info.size_mib,
        architectures=processor.supported_architectures,
        cards=tuple(
            NetworkCard(
                each.maximum_network_interfaces,
                round(each.baseline_bandwidth_in_gbps * _MBPS_PER_GBPS),
            )
            for each in sorted(network.network_cards, key=lambda each: each.network_card_index)
        ),
        ipv4_per_interface=network.ipv4_addresses_per_interface,
        default_card=min(network.default_network_card_index, len(network.network_cards) - 1),
        efa_max=network.efa_info.maximum_efa_interfaces,
        manufacturer=processor.manufacturer,
        clock_mhz=None if clock is None else round(clock * _MHZ_PER_GHZ),
        hypervisor=wire.hypervisor,
        usage_classes=wire.supported_usage_classes,
        encrypts_in_transit=network.encryption_in_transit_supported,
        has_ena=network.ena_support != _UNSUPPORTED,
        ebs_mbps=ebs.ebs_optimized_info.maximum_bandwidth_in_mbps if is_optimized else None,
        disk_gb=storage.total_size_gb,
        is_nvme=storage.nvme_support != _UNSUPPORTED,
        gpus=_devices(wire.gpu_info.gpus),
        neurons=_devices(wire.neuron_info.neuron_devices),
        accelerators=_devices(wire.inference_accelerator_info.accelerators),
        placement_strategies=wire.placement_group_info.supported_strategies,
        has_nested_virtualization=_NESTED_VIRTUALIZATION in processor.supported_features,
    )


def _devices(devices: tuple[_Device, ...]) -> tuple[Device, ...]:
    return tuple(
        Device(
            each.name,
            each.manufacturer,
            each.count,
            each.memory_info.size_mib,
            each.core_info.count,
        )
        for each in devices
    )
