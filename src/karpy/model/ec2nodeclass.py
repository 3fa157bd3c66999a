"""An EC2NodeClass: its spec, and the AWS objects that its status names."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.model.conditions import Conditions
from karpy.model.records import Identity
from karpy.model.requirements import Requirement

HASH_VERSION: Final = "v5"


class SubnetTerm(Struct, frozen=True, gc=False):
    """Subnets with this ID, or with all of these tags; `*` is any value."""

    tags: Mapping[str, str] = {}
    id: str = ""


class SecurityGroupTerm(Struct, frozen=True, gc=False):
    """Security groups with this ID or name, or with all of these tags."""

    tags: Mapping[str, str] = {}
    id: str = ""
    name: str = ""


class ReservationTerm(Struct, frozen=True, gc=False):
    """Capacity reservations with this ID, or by owner, tags and match criteria."""

    tags: Mapping[str, str] = {}
    id: str = ""
    owner: str = ""
    match_criteria: str = ""


class ImageTerm(Struct, frozen=True, gc=False):
    """Images of an alias, or by ID, name, owner, tags or SSM parameter."""

    alias: str = ""
    id: str = ""
    name: str = ""
    owner: str = ""
    ssm_parameter: str = ""
    tags: Mapping[str, str] = {}


class PlacementGroupTerm(Struct, frozen=True, gc=False):
    """The placement group with this name or ID."""

    name: str = ""
    id: str = ""


class Kubelet(Struct, frozen=True, gc=False):
    """Settings of kubelets; None and empty take the default of the image family."""

    cluster_dns: tuple[str, ...] = ()
    max_pods: int | None = None
    pods_per_core: int | None = None
    system_reserved: Mapping[str, str] = {}
    kube_reserved: Mapping[str, str] = {}
    eviction_hard: Mapping[str, str] = {}
    eviction_soft: Mapping[str, str] = {}
    eviction_soft_grace_period: Mapping[str, timedelta] = {}
    eviction_max_pod_grace_period: int | None = None
    image_gc_high: int | None = None
    image_gc_low: int | None = None
    cpu_cfs_quota: bool | None = None


class Disk(Struct, frozen=True, gc=False):
    """An EBS volume; `size` is a quantity as the user wrote it."""

    delete_on_termination: bool | None = None
    encrypted: bool | None = None
    iops: int | None = None
    kms_key_id: str = ""
    snapshot_id: str = ""
    throughput: int | None = None
    initialization_rate: int | None = None
    size: str = ""
    type: str = ""


class DiskMapping(Struct, frozen=True, gc=False):
    """A device and the volume behind it."""

    device: str = ""
    disk: Disk | None = None
    is_root: bool = False


class NetworkInterface(Struct, frozen=True, gc=False):
    """A network interface that each machine gets."""

    card: int
    device: int
    type: str = "interface"


class MetadataOptions(Struct, frozen=True, gc=False):
    """Settings of the instance metadata service; defaults are those of the CRD."""

    endpoint: str = "enabled"
    ipv6: str = "disabled"
    hop_limit: int = 1
    tokens: str = "required"


class ConnectionTracking(Struct, frozen=True, gc=False):
    """Time-outs of connections, in seconds."""

    tcp_established: int | None = None
    udp_stream: int | None = None
    udp: int | None = None


class Ec2NodeClassSpec(Struct, frozen=True, gc=False):
    """The spec of an EC2NodeClass."""

    subnet_terms: tuple[SubnetTerm, ...] = ()
    security_group_terms: tuple[SecurityGroupTerm, ...] = ()
    reservation_terms: tuple[ReservationTerm, ...] = ()
    image_terms: tuple[ImageTerm, ...] = ()
    placement_group: PlacementGroupTerm | None = None
    associate_public_ip: bool | None = None
    ip_prefix_count: int | None = None
    image_family: str = ""
    """The amiFamily as written; empty takes the family of the alias."""
    user_data: str | None = None
    role: str = ""
    instance_profile: str = ""
    tags: Mapping[str, str] = {}
    kubelet: Kubelet | None = None
    disks: tuple[DiskMapping, ...] = ()
    instance_store_policy: str = ""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    detailed_monitoring: bool | None = None
    metadata_options: MetadataOptions | None = MetadataOptions()
    connection_tracking: ConnectionTracking | None = None
    context: str | None = None
    nested_virtualization: str = ""

    @property
    def alias(self) -> tuple[str, str] | None:
        """Family and version of the alias, `("al2023", "latest")`; None if no term has one."""
        for term in self.image_terms:
            if term.alias:
                family, _, version = term.alias.partition("@")
                return family, version
        return None


class FoundSubnet(Struct, frozen=True, gc=False):
    """A subnet of the status."""

    id: str
    zone: str
    zone_id: str = ""


class FoundSecurityGroup(Struct, frozen=True, gc=False):
    """A security group of the status."""

    id: str
    name: str = ""


class FoundImage(Struct, frozen=True, gc=False):
    """An image of the status, and the requirements of instance types that boot it."""

    id: str
    name: str = ""
    requirements: tuple[Requirement, ...] = ()
    is_deprecated: bool = False


class FoundReservation(Struct, frozen=True, gc=False):
    """A capacity reservation of the status."""

    id: str
    instance_type: str
    zone: str
    owner: str = ""
    match_criteria: str = ""
    type: str = "default"
    """`default` or `capacity-block`."""
    is_interruptible: bool = False
    state: str = "active"
    ends: datetime | None = None


class Ec2NodeClassStatus(Struct, frozen=True, gc=False):
    """The status of an EC2NodeClass."""

    subnets: tuple[FoundSubnet, ...] = ()
    security_groups: tuple[FoundSecurityGroup, ...] = ()
    images: tuple[FoundImage, ...] = ()
    reservations: tuple[FoundReservation, ...] = ()
    instance_profile: str = ""
    conditions: Conditions = Conditions()


class Ec2NodeClass(Struct, frozen=True, gc=False):
    """An EC2NodeClass in full."""

    meta: Identity
    spec: Ec2NodeClassSpec = Ec2NodeClassSpec()
    status: Ec2NodeClassStatus = Ec2NodeClassStatus()

    @property
    def name(self) -> str:
        return self.meta.name
