"""What of a node class object changes instance types, as far as it can be known without AWS."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.fields import Fields, JsonObject
from karpy.model.ec2nodeclass import (
    ConnectionTracking,
    Disk,
    DiskMapping,
    Ec2NodeClassSpec,
    ImageTerm,
    Kubelet,
    NetworkInterface,
)

_LOOKED_UP: Final = ("capacityReservationSelectorTerms", "placementGroupSelector")
"""Fields whose effect only AWS knows."""
_AUTO_MODE_DISK: Final = "80Gi"
_AUTO_MODE_DEVICE: Final = "/dev/xvdb"


def read_type_settings(obj: JsonObject) -> Ec2NodeClassSpec:
    """Read the fields of an EC2NodeClass that change instance types; the others stay empty."""
    spec = Fields(obj).child("spec")
    store = spec.text("instanceStorePolicy")
    return Ec2NodeClassSpec(
        image_terms=tuple(
            ImageTerm(alias=each.text("alias")) for each in spec.children("amiSelectorTerms")
        ),
        image_family=spec.text("amiFamily"),
        kubelet=_kubelet(spec.child("kubelet")) if "kubelet" in spec else None,
        disks=tuple(_disk(each) for each in spec.children("blockDeviceMappings")),
        instance_store_policy=store,
        network_interfaces=tuple(
            NetworkInterface(
                each.number("networkCardIndex", 0) or 0,
                each.number("deviceIndex", 0) or 0,
                each.text("interfaceType"),
            )
            for each in spec.children("networkInterfaces")
        ),
        connection_tracking=ConnectionTracking() if "connectionTracking" in spec else None,
        nested_virtualization=spec.child("cpuOptions").text("nestedVirtualization"),
    )


def read_auto_mode_settings(obj: JsonObject) -> Ec2NodeClassSpec:
    """Read a NodeClass of EKS Auto Mode, whose nodes run Bottlerocket on a disk of their own."""
    storage = Fields(obj).child("spec").child("ephemeralStorage")
    size = storage.text("size") or _AUTO_MODE_DISK
    return Ec2NodeClassSpec(
        image_family="Bottlerocket", disks=(DiskMapping(_AUTO_MODE_DEVICE, Disk(size=size)),)
    )


def read_zones(obj: JsonObject) -> dict[str, str]:
    """Read zone IDs of the zones in which a controller has found subnets; empty if none has."""
    subnets = Fields(obj).child("status").children("subnets")
    return {each.text("zone"): each.text("zoneID") for each in subnets if each.text("zone")}


def looked_up_fields(obj: JsonObject) -> Iterator[str]:
    """Name the fields whose effect on the answer only AWS knows."""
    spec = Fields(obj).child("spec")
    return (name for name in _LOOKED_UP if spec.obj.get(name))


def _kubelet(fields: Fields) -> Kubelet:
    return Kubelet(
        max_pods=fields.number("maxPods"),
        pods_per_core=fields.number("podsPerCore"),
        system_reserved=fields.labels("systemReserved"),
        kube_reserved=fields.labels("kubeReserved"),
        eviction_hard=fields.labels("evictionHard"),
    )


def _disk(fields: Fields) -> DiskMapping:
    size = fields.child("ebs").text("volumeSize")
    return DiskMapping(
        fields.text("deviceName"), Disk(size=size), is_root=fields.flag("rootVolume", default=False)
    )
