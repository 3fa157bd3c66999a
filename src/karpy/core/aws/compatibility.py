"""Whether machines of an instance type can be launched with an EC2NodeClass at all."""

from typing import Final

from karpy.model.ec2nodeclass import NetworkInterface
from karpy.model.ec2types import EFA_ONLY, NITRO, AmiFamily, InstanceSettings, InstanceTypeInfo

_ARM_FIRST: Final = "a1"
"""The first Arm family; its processors lack what Amazon Linux 2023 needs."""


def is_launchable(info: InstanceTypeInfo, settings: InstanceSettings) -> bool:
    """Say whether an instance type has all that an EC2NodeClass asks of it."""
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
