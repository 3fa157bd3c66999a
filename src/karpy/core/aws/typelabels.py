"""The labels that every node of an instance type has."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from karpy.model import ec2labels as labels
from karpy.model.ec2types import Device, InstanceTypeInfo

_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_NAME: Final = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]+)", re.ASCII)
"""Category and generation at the start of a family: c7g, u-6tb1, p6-b200."""
_FLEX: Final = "-flex"


def type_labels(info: InstanceTypeInfo) -> dict[str, str]:
    """Return labels without their domain. What a type lacks is absent."""
    return dict(_labels(info))


def architecture(info: InstanceTypeInfo) -> str:
    """Return the architecture as Kubernetes names it; as EC2 does if Kubernetes has none such."""
    known = (_ARCHITECTURES[each] for each in info.architectures if each in _ARCHITECTURES)
    return next(known, " ".join(info.architectures))


def _labels(info: InstanceTypeInfo) -> Iterator[tuple[str, str]]:
    yield labels.INSTANCE_CPU, str(info.vcpus)
    yield labels.INSTANCE_MEMORY, str(info.memory_mib)
    yield labels.INSTANCE_FAMILY, info.family
    yield labels.INSTANCE_SIZE, info.size
    yield labels.INSTANCE_HYPERVISOR, info.hypervisor
    yield labels.INSTANCE_ENCRYPTION, _flag(is_set=info.encrypts_in_transit)
    yield labels.INSTANCE_CAPABILITY_FLEX, _flag(is_set=_FLEX in info.family)
    named = _NAME.match(info.family)
    if named is not None:
        yield labels.INSTANCE_CATEGORY, named[1]
        yield labels.INSTANCE_GENERATION, named[2]
    if info.manufacturer:
        yield labels.INSTANCE_CPU_MANUFACTURER, info.manufacturer.lower()
    if info.clock_mhz is not None:
        yield labels.INSTANCE_CPU_CLOCK, str(info.clock_mhz)
    if info.ebs_mbps is not None:
        yield labels.INSTANCE_EBS_BANDWIDTH, str(info.ebs_mbps)
    # Differs: the label for network bandwidth: Karpenter has a table of bandwidths; Karpy adds up
    # what EC2 reports of each network card, which may be a little more for types with several
    # cards.
    bandwidth = sum(each.bandwidth_mbps for each in info.cards)
    if bandwidth:
        yield labels.INSTANCE_NETWORK_BANDWIDTH, str(bandwidth)
    if info.disk_gb and info.is_nvme:
        yield labels.INSTANCE_LOCAL_NVME, str(info.disk_gb)
    yield from _gpu_labels(info.gpus)
    yield from _accelerator_labels(info)


def _gpu_labels(gpus: tuple[Device, ...]) -> Iterator[tuple[str, str]]:
    if len(gpus) == 1:
        (gpu,) = gpus
        yield labels.INSTANCE_GPU_NAME, _label_value(gpu.name)
        yield labels.INSTANCE_GPU_MANUFACTURER, _label_value(gpu.manufacturer)
        yield labels.INSTANCE_GPU_COUNT, str(gpu.count)
        yield labels.INSTANCE_GPU_MEMORY, str(gpu.memory_mib)


def _accelerator_labels(info: InstanceTypeInfo) -> Iterator[tuple[str, str]]:
    devices: Iterable[Device] = info.neurons or info.accelerators
    for device in tuple(devices)[:1]:
        yield labels.INSTANCE_ACCELERATOR_NAME, _label_value(device.name)
        yield labels.INSTANCE_ACCELERATOR_MANUFACTURER, _label_value(device.manufacturer)
        yield labels.INSTANCE_ACCELERATOR_COUNT, str(device.count)


def _label_value(name: str) -> str:
    return name.lower().replace(" ", "-")


def _flag(*, is_set: bool) -> str:
    return "true" if is_set else "false"
