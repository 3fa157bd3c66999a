"""Instance types of EC2: what is sold where, and what an EC2NodeClass changes about it."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.model.ec2 import CapacityReservation, PlacementGroup
from karpy.model.ec2labels import EC2_DOMAIN
from karpy.model.ec2nodeclass import DiskMapping, Kubelet, NetworkInterface

NITRO: Final = "nitro"
EXPIRING: Final = "expiring"
"""The state of a capacity reservation that ends soon."""
EFA_ONLY: Final = "efa-only"
"""The type of a network interface that pods get no address from."""
NVIDIA_GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
GAUDI: Final = "habana.ai/gaudi"
NEURON: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
EFA: Final = "vpc.amazonaws.com/efa"
PRIVATE_IPV4_ADDRESS: Final = "vpc.amazonaws.com/PrivateIPv4Address"


class NetworkCard(Struct, frozen=True, gc=False):
    """A network card of an instance type."""

    interfaces: int
    """How many network interfaces fit on it."""
    bandwidth_mbps: int
    """What it carries at any time; bursts are faster."""


class Device(Struct, frozen=True, gc=False):
    """GPUs or other accelerators of one kind in an instance type."""

    name: str
    manufacturer: str
    count: int
    memory_mib: int = 0
    """Memory of one of them."""
    cores: int = 0
    """Cores of one of them, where they are counted."""


class InstanceTypeInfo(Struct, frozen=True, gc=False):
    """An instance type as EC2 describes it, before a cluster makes anything of it."""

    name: str
    vcpus: int
    memory_mib: int
    architectures: tuple[str, ...]
    """As EC2 names them: `x86_64`, `arm64`."""
    cards: tuple[NetworkCard, ...]
    ipv4_per_interface: int
    default_card: int = 0
    efa_max: int = 0
    """How many interfaces can be Elastic Fabric Adapters."""
    manufacturer: str = ""
    """That of the processor."""
    clock_mhz: int | None = None
    hypervisor: str = ""
    """Empty for bare metal."""
    usage_classes: tuple[str, ...] = ("on-demand", "spot")
    encrypts_in_transit: bool = False
    has_ena: bool = True
    ebs_mbps: int | None = None
    """The fastest that EBS can be; None if it shares the network with everything else."""
    disk_gb: int = 0
    """Local disks together, in units of 10^9 bytes."""
    is_nvme: bool = True
    """Whether the local disks are NVMe."""
    gpus: tuple[Device, ...] = ()
    neurons: tuple[Device, ...] = ()
    accelerators: tuple[Device, ...] = ()
    placement_strategies: frozenset[str] = frozenset({"cluster", "partition", "spread"})
    has_nested_virtualization: bool = False

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    @property
    def size(self) -> str:
        return self.name.partition(".")[2]


class AmiFamily(Enum):
    """How the image of a node joins the cluster; the values are those of EC2NodeClass."""

    AL2 = "AL2"
    AL2023 = "AL2023"
    BOTTLEROCKET = "Bottlerocket"
    CUSTOM = "Custom"
    WINDOWS_2019 = "Windows2019"
    WINDOWS_2022 = "Windows2022"
    WINDOWS_2025 = "Windows2025"


class InstanceSettings(Struct, frozen=True):
    """What an EC2NodeClass says that changes instance types as a cluster sees them."""

    family: AmiFamily = AmiFamily.AL2023
    kubelet: Kubelet = Kubelet()
    disks: tuple[DiskMapping, ...] = ()
    is_raid0: bool = False
    """Whether local disks hold the ephemeral storage of pods."""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    zones: Mapping[str, str] | None = None
    """Zone IDs of the zones that its subnets are in; None stands for every zone."""
    full_zones: frozenset[str] = frozenset()
    """Zones whose subnets have no free address."""
    reservations: tuple[CapacityReservation, ...] = ()
    placement: PlacementGroup | None = None
    needs_nested_virtualization: bool = False
    tracks_connections: bool = False
    """Whether it sets timeouts of connection tracking."""
    label_domain: str = EC2_DOMAIN
    """Where the labels of types are: the domain of EC2NodeClasses, or that of EKS Auto Mode."""
    memory_discovered: Mapping[str, int] = {}
    """Bytes that nodes with its images have reported, by instance type."""


class Ec2Settings(Struct, frozen=True):
    """Settings of the operator that change instance types."""

    vm_memory_overhead: float = 0.075
    """The share of memory that is missing from nodes, by experience."""
    reserved_enis: int = 0
    """Network interfaces that pods get no address from."""


class Market(Struct, frozen=True):
    """Where instance types are sold in a region, at which prices, and what is sold out."""

    zones: Mapping[str, frozenset[str]]
    """Zones by instance type."""
    on_demand: Mapping[str, int] = {}
    """Micro-dollars per hour by instance type."""
    spot: Mapping[str, Mapping[str, int]] | None = None
    """Micro-dollars per hour by instance type and zone; None as long as they were never asked."""
    zone_ids: Mapping[str, str] = {}
    """Zone IDs by zone, where no subnet says them."""
    unavailable: frozenset[tuple[str, str, str]] = frozenset()
    """Capacity type, instance type and zone of what is sold out."""
    unavailable_in_group: frozenset[tuple[str, str, str, str, str]] = frozenset()
    """The same with placement group and partition, empty for the whole group, of what is full."""
    closed_capacity_types: frozenset[str] = frozenset()
    """Capacity types that the account cannot launch now."""
    shifted_zones: frozenset[str] = frozenset()
    """Zones that traffic is shifted away from."""


class Region(Struct, frozen=True):
    """All that EC2 says of one region."""

    name: str
    types: tuple[InstanceTypeInfo, ...]
    market: Market
