"""What of an EC2NodeClass changes instance types, and nothing else of it."""

from typing import Final

from karpy.model.ec2nodeclass import Ec2NodeClassSpec, Ec2NodeClassStatus, Kubelet
from karpy.model.ec2types import AmiFamily, InstanceSettings

_ALIASES: Final = {each.value.lower(): each for each in AmiFamily}
_RAID0: Final = "RAID0"
_ENABLED: Final = "enabled"


def settings_of(spec: Ec2NodeClassSpec) -> InstanceSettings:
    """
    Return the settings that an EC2NodeClass asks for.

    Zones, reservations and the placement group are found in AWS; without them, each zone will do.
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
    """Return the image family that is named, or that of the alias; AL2 if it is another one."""
    name, _ = spec.alias or ("", "")
    return _ALIASES.get((spec.image_family or name).lower(), AmiFamily.AL2)


def zones_of(status: Ec2NodeClassStatus) -> dict[str, str]:
    """Return the zone IDs of the zones in which subnets were found."""
    return {each.zone: each.zone_id for each in status.subnets}
