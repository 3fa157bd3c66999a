"""The capacity of nodes by instance type, and the overhead that is not allocatable."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from karpy.model.ec2 import (
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
from karpy.model.ec2nodeclass import Ec2NodeClass, NetworkInterface
from karpy.model.labels import INSTANCE_TYPE, REGISTERED
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Resources,
    add,
    parse_quantity,
)

_GIB: Final = 2**30
_MIB: Final = 2**20
_GB: Final = 10**9
_ARM64: Final = "arm64"
_ARM64_LOSS_MIB: Final = 64
"""The part of EC2's memory that machines with Arm processors do not report."""
_PODS_DEFAULT: Final = 110
_HOST_PODS: Final = 2
"""Pods of every node that use the host's network and need no address: kube-proxy and the CNI."""
_GPU_RESOURCES: Final = {"NVIDIA": NVIDIA_GPU, "AMD": AMD_GPU, "Habana": GAUDI}
_DISK_DEFAULT: Final = 20 * _GIB
_CPU_BANDS: Final = ((1000, 600), (1000, 100), (2000, 50))
"""Successive bands of milli-CPU, and the share of each that is reserved, in ten-thousandths."""
_CPU_BEYOND: Final = 25
"""The reserved share of all CPU after the bands, in ten-thousandths."""
_MEMORY_PER_POD: Final = 11 * _MIB
_MEMORY_ALWAYS: Final = 255 * _MIB
_EVICTION_MEMORY: Final = 100 * _MIB
_HUNDREDTHS: Final = 10_000
_SIGNALS: Final = {"memory.available": MEMORY, "nodefs.available": EPHEMERAL_STORAGE}
_ALL: Final = "100"
"""An eviction threshold of 100 % disables the signal."""


class FamilyTraits(Struct, frozen=True):
    """Properties of an image family that change the capacity of its nodes."""

    ephemeral_device: str = "/dev/xvda"
    """The disk that holds the ephemeral storage of pods."""
    disk_bytes: int | None = 20 * _GIB
    """The size of this disk if the EC2NodeClass has none; None if the image decides."""
    is_eni_limited: bool = True
    """Whether the addresses of the network interfaces limit the number of pods."""
    has_pods_per_core: bool = True
    reserves_for_eni_pods: bool = True
    """Whether memory is reserved for as many pods as have an address, even if maxPods is lower."""
    windows_build: str = ""

    @property
    def is_windows(self) -> bool:
        return bool(self.windows_build)


def _windows(build: str) -> FamilyTraits:
    return FamilyTraits(
        "/dev/sda1",
        50 * _GIB,
        is_eni_limited=False,
        reserves_for_eni_pods=False,
        windows_build=build,
    )


TRAITS: Final[Mapping[AmiFamily, FamilyTraits]] = {
    AmiFamily.AL2: FamilyTraits(),
    AmiFamily.AL2023: FamilyTraits(),
    AmiFamily.BOTTLEROCKET: FamilyTraits(
        "/dev/xvdb", has_pods_per_core=False, reserves_for_eni_pods=False
    ),
    AmiFamily.CUSTOM: FamilyTraits("", None),
    AmiFamily.WINDOWS_2019: _windows("10.0.17763"),
    AmiFamily.WINDOWS_2022: _windows("10.0.20348"),
    AmiFamily.WINDOWS_2025: _windows("10.0.26100"),
}


def capacity(
    info: InstanceTypeInfo, settings: InstanceSettings, operator: Ec2Settings
) -> Resources:
    """Return the capacity that nodes of a type report; resources of amount zero are absent."""
    # Differs: `vpc.amazonaws.com/pod-eni`, the branch interfaces for security groups of pods:
    # Karpenter has a table of their number per instance type; Karpy counts them once a node of the
    # type exists, because no public call of AWS returns the number.
    return {
        CPU: info.vcpus * 1000,
        MEMORY: memory(info, settings, operator),
        PODS: pods(info, settings, operator),
        EPHEMERAL_STORAGE: ephemeral_storage(info, settings),
        **{name: amount for name, amount in _devices(info, settings) if amount},
    }


def memory(info: InstanceTypeInfo, settings: InstanceSettings, operator: Ec2Settings) -> int:
    """Return the bytes of memory that nodes of the type have reported, or an estimate."""
    known = settings.memory_discovered.get(info.name)
    if known is not None:
        return known
    mib = info.memory_mib
    if info.architectures[:1] == (_ARM64,):
        mib -= _ARM64_LOSS_MIB
    return (mib - math.ceil(mib * operator.vm_memory_overhead)) * _MIB


def pods(info: InstanceTypeInfo, settings: InstanceSettings, operator: Ec2Settings) -> int:
    """Return the largest number of pods that the kubelet accepts."""
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
    """Return the number of pods that the default network card has addresses for."""
    efa_only = sum(each.card == 0 for each in _efa_only(settings))
    usable = info.cards[info.default_card].interfaces - reserved - efa_only
    if usable <= 0:
        return 0
    # The first address of an interface is not for pods.
    return usable * (info.ipv4_per_interface - 1) + _HOST_PODS


def ephemeral_storage(info: InstanceTypeInfo, settings: InstanceSettings) -> int:
    """Return the size of the disk that holds the ephemeral storage of pods, in bytes."""
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


def overhead(info: InstanceTypeInfo, settings: InstanceSettings, capacity: Resources) -> Resources:
    """Return the resources reserved for the system, plus the thresholds of eviction."""
    kubelet = settings.kubelet
    return add(
        {**_kube_reserved(info, settings, capacity), **_amounts(kubelet.kube_reserved)},
        _amounts(kubelet.system_reserved),
        _eviction_thresholds(capacity, kubelet.eviction_hard),
    )


def _kube_reserved(
    info: InstanceTypeInfo, settings: InstanceSettings, capacity: Resources
) -> dict[str, int]:
    pods = capacity[PODS]
    if TRAITS[settings.family].reserves_for_eni_pods:
        pods = eni_pods(info, settings)
    return {
        CPU: _reserved_cpu(capacity[CPU]),
        MEMORY: _MEMORY_PER_POD * pods + _MEMORY_ALWAYS,
        EPHEMERAL_STORAGE: _GIB,
    }


def _amounts(texts: Mapping[str, str]) -> dict[str, int]:
    return {name: parse_quantity(text, name) for name, text in texts.items()}


def _reserved_cpu(milli: int) -> int:
    reserved = 0
    for width, share in _CPU_BANDS:
        reserved += min(milli, width) * share // _HUNDREDTHS
        milli = max(0, milli - width)
    return reserved + milli * _CPU_BEYOND // _HUNDREDTHS


def _eviction_thresholds(capacity: Resources, hard: Mapping[str, str]) -> dict[str, int]:
    kept = {
        MEMORY: _EVICTION_MEMORY,
        EPHEMERAL_STORAGE: -(-capacity[EPHEMERAL_STORAGE] // 10),
    }
    for signal, resource in _SIGNALS.items():
        text = hard.get(signal, "")
        if text:
            kept[resource] = _threshold(text, capacity[resource], resource)
    return kept


def _threshold(text: str, amount: int, resource: str) -> int:
    """Read an amount, or a percentage of `amount` with at most two decimals."""
    if not text.endswith("%"):
        return parse_quantity(text, resource)
    whole, _, part = text.removesuffix("%").partition(".")
    if whole == _ALL:
        return 0
    return -(-amount * int(whole + f"{part:0<2}"[:2]) // _HUNDREDTHS)


def memory_by_type(
    node_class: Ec2NodeClass, pairs: Iterable[tuple[ClaimRecord, NodeRecord]]
) -> Mapping[str, int]:
    """
    Return the least memory that nodes report, in bytes by instance type.

    Only nodes with a current image of the class count: another image may leave another amount.
    """
    images = {each.id for each in node_class.status.images}
    found: dict[str, int] = {}
    for claim, node in pairs:
        type_ = node.meta.labels.get(INSTANCE_TYPE, "")
        memory = node.capacity.get(MEMORY, 0)
        is_registered = node.meta.labels.get(REGISTERED) == "true"
        if claim.image_id in images and is_registered and type_ and memory:
            found[type_] = min(found.get(type_, memory), memory)
    return found
