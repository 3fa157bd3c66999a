"""What a node of an instance type offers, before the system takes its share."""

import math
from collections.abc import Iterator
from typing import Final

from karpy.core.aws.amifamilies import TRAITS
from karpy.model.ec2nodeclass import NetworkInterface
from karpy.model.ec2types import (
    AMD_GPU,
    EFA,
    EFA_ONLY,
    GAUDI,
    NEURON,
    NEURON_CORE,
    NVIDIA_GPU,
    PRIVATE_IPV4_ADDRESS,
    AmiFamily,
    Ec2Settings,
    InstanceSettings,
    InstanceTypeInfo,
)
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources, parse_quantity

_MIB: Final = 2**20
_GIB: Final = 2**30
_GB: Final = 10**9
_ARM64: Final = "arm64"
_ARM64_LOSS_MIB: Final = 64
"""What machines with Arm processors lack of the memory that EC2 says."""
_PODS_DEFAULT: Final = 110
_HOST_PODS: Final = 2
"""Pods on the host's network that every node has: they need no address."""
_GPU_RESOURCES: Final = {"NVIDIA": NVIDIA_GPU, "AMD": AMD_GPU, "Habana": GAUDI}
_DISK_DEFAULT: Final = 20 * _GIB


def capacity(
    info: InstanceTypeInfo, settings: InstanceSettings, operator: Ec2Settings
) -> Resources:
    """Return the capacity that nodes of a type will report; what a type has none of is absent."""
    # Differs: `vpc.amazonaws.com/pod-eni`, the branch interfaces for security groups of pods:
    # Karpenter has a table of their number per instance type; Karpy counts them once a node of the
    # type exists, because no public call of AWS tells the number.
    return {
        CPU: info.vcpus * 1000,
        MEMORY: memory(info, settings, operator),
        PODS: pods(info, settings, operator),
        EPHEMERAL_STORAGE: ephemeral_storage(info, settings),
        **{name: amount for name, amount in _devices(info, settings) if amount},
    }


def memory(info: InstanceTypeInfo, settings: InstanceSettings, operator: Ec2Settings) -> int:
    """Return bytes: what nodes of the type have reported, or an estimate."""
    known = settings.memory_discovered.get(info.name)
    if known is not None:
        return known
    mib = info.memory_mib
    if info.architectures[:1] == (_ARM64,):
        mib -= _ARM64_LOSS_MIB
    return (mib - math.ceil(mib * operator.vm_memory_overhead)) * _MIB


def pods(info: InstanceTypeInfo, settings: InstanceSettings, operator: Ec2Settings) -> int:
    """Return how many pods the kubelet takes."""
    traits, kubelet = TRAITS[settings.family], settings.kubelet
    if kubelet.max_pods is not None:
        count = kubelet.max_pods
    elif traits.is_eni_limited:
        count = eni_pods(info, settings, operator.reserved_enis)
    else:
        count = _PODS_DEFAULT
    if kubelet.pods_per_core and traits.has_pods_per_core:
        return min(count, kubelet.pods_per_core * info.vcpus)
    return count


def eni_pods(info: InstanceTypeInfo, settings: InstanceSettings, reserved: int = 0) -> int:
    """Return for how many pods the interfaces of the default network card have an address."""
    efa_only = sum(each.card == 0 for each in _efa_only(settings))
    usable = info.cards[info.default_card].interfaces - reserved - efa_only
    if usable <= 0:
        return 0
    # One address of an interface is its own.
    return usable * (info.ipv4_per_interface - 1) + _HOST_PODS


def ephemeral_storage(info: InstanceTypeInfo, settings: InstanceSettings) -> int:
    """Return the bytes of the disk that pods' ephemeral storage is on."""
    if settings.is_raid0 and info.disk_gb:
        return info.disk_gb * _GB
    root = next((each for each in settings.disks if each.is_root), None)
    if root is not None and root.disk is not None and root.disk.size:
        return parse_quantity(root.disk.size, EPHEMERAL_STORAGE)
    traits = TRAITS[settings.family]
    if settings.family is AmiFamily.CUSTOM:
        deciding = settings.disks[-1:]
    else:
        device = traits.ephemeral_device
        deciding = tuple(each for each in settings.disks if each.device == device)[:1]
    for each in deciding:
        if each.disk is not None and each.disk.size:
            return parse_quantity(each.disk.size, EPHEMERAL_STORAGE)
    return _DISK_DEFAULT if traits.disk_bytes is None else traits.disk_bytes


def _devices(info: InstanceTypeInfo, settings: InstanceSettings) -> Iterator[tuple[str, int]]:
    for manufacturer, resource in _GPU_RESOURCES.items():
        yield resource, sum(each.count for each in info.gpus if each.manufacturer == manufacturer)
    yield NEURON, sum(each.count for each in info.neurons)
    yield NEURON_CORE, sum(each.count * each.cores for each in info.neurons[:1])
    if settings.network_interfaces:
        yield EFA, len(_efa_only(settings))
    else:
        yield EFA, info.efa_max
    if TRAITS[settings.family].is_windows:
        yield PRIVATE_IPV4_ADDRESS, info.ipv4_per_interface - 1


def _efa_only(settings: InstanceSettings) -> list[NetworkInterface]:
    return [each for each in settings.network_interfaces if each.type == EFA_ONLY]
