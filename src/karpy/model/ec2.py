"""EC2 as decisions see it: instance types, prices, node labels, and errors of launches."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.model.ec2nodeclass import DiskMapping, Kubelet, NetworkInterface

NITRO: Final = "nitro"
EXPIRING: Final = "expiring"
"""The state of a capacity reservation that ends soon."""
EFA_ONLY: Final = "efa-only"
"""The type of a network interface that carries EFA traffic only, so that no pod has an IP on it."""
NVIDIA_GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
GAUDI: Final = "habana.ai/gaudi"
NEURON: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
EFA: Final = "vpc.amazonaws.com/efa"
PRIVATE_IPV4_ADDRESS: Final = "vpc.amazonaws.com/PrivateIPv4Address"
EC2_DOMAIN: Final = "karpenter.k8s.aws/"
AUTO_MODE_DOMAIN: Final = "eks.amazonaws.com/"
"""The domain of the labels that EKS Auto Mode gives its instance types."""
INSTANCE_ACCELERATOR_COUNT: Final = "instance-accelerator-count"
INSTANCE_ACCELERATOR_MANUFACTURER: Final = "instance-accelerator-manufacturer"
INSTANCE_ACCELERATOR_NAME: Final = "instance-accelerator-name"
INSTANCE_CAPABILITY_FLEX: Final = "instance-capability-flex"
INSTANCE_CATEGORY: Final = "instance-category"
INSTANCE_CPU: Final = "instance-cpu"
INSTANCE_CPU_CLOCK: Final = "instance-cpu-sustained-clock-speed-mhz"
INSTANCE_CPU_MANUFACTURER: Final = "instance-cpu-manufacturer"
INSTANCE_EBS_BANDWIDTH: Final = "instance-ebs-bandwidth"
INSTANCE_ENCRYPTION: Final = "instance-encryption-in-transit-supported"
INSTANCE_FAMILY: Final = "instance-family"
INSTANCE_GENERATION: Final = "instance-generation"
INSTANCE_GPU_COUNT: Final = "instance-gpu-count"
INSTANCE_GPU_MANUFACTURER: Final = "instance-gpu-manufacturer"
INSTANCE_GPU_MEMORY: Final = "instance-gpu-memory"
INSTANCE_GPU_NAME: Final = "instance-gpu-name"
INSTANCE_HYPERVISOR: Final = "instance-hypervisor"
INSTANCE_LOCAL_NVME: Final = "instance-local-nvme"
INSTANCE_MEMORY: Final = "instance-memory"
INSTANCE_NETWORK_BANDWIDTH: Final = "instance-network-bandwidth"
INSTANCE_SIZE: Final = "instance-size"
TYPE_LABELS: Final = (
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
)
"""Labels that follow from the instance type alone, without their domain."""
AUTO_MODE_TYPE_LABELS: Final = frozenset(TYPE_LABELS) - {
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_ACCELERATOR_MANUFACTURER,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_CAPABILITY_FLEX,
    INSTANCE_CPU_CLOCK,
}
"""The `TYPE_LABELS` that EKS Auto Mode has, too."""
CAPACITY_RESERVATION_ID: Final = EC2_DOMAIN + "capacity-reservation-id"
CAPACITY_RESERVATION_INTERRUPTIBLE: Final = EC2_DOMAIN + "capacity-reservation-interruptible"
CAPACITY_RESERVATION_TYPE: Final = EC2_DOMAIN + "capacity-reservation-type"
INSTANCE_TENANCY: Final = EC2_DOMAIN + "instance-tenancy"
PLACEMENT_GROUP_ID: Final = EC2_DOMAIN + "placement-group-id"
PLACEMENT_GROUP_PARTITION: Final = EC2_DOMAIN + "placement-group-partition"
ZONE_ID: Final = "topology.k8s.aws/zone-id"
EC2_LABELS: Final = frozenset(EC2_DOMAIN + each for each in TYPE_LABELS) | {
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    INSTANCE_TENANCY,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    ZONE_ID,
}
"""Well-known labels of EC2: a pod may ask for them although its NodePool does not define them."""
AUTO_MODE_LABELS: Final = frozenset(AUTO_MODE_DOMAIN + each for each in AUTO_MODE_TYPE_LABELS)
TENANCIES: Final = ("dedicated", "default")


class NetworkCard(Struct, frozen=True, gc=False):
    """A network card of an instance type."""

    interfaces: int
    """How many network interfaces the card takes."""
    bandwidth_mbps: int
    """The baseline bandwidth, without bursts."""


class Device(Struct, frozen=True, gc=False):
    """GPUs or other accelerators of one kind in an instance type."""

    name: str
    manufacturer: str
    count: int
    memory_mib: int = 0
    """Memory of one device."""
    cores: int = 0
    """Cores of one device; 0 if EC2 does not count them."""


class InstanceTypeInfo(Struct, frozen=True, gc=False):
    """An instance type as EC2 describes it, apart from any cluster."""

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
    """The manufacturer of the processor."""
    clock_mhz: int | None = None
    hypervisor: str = ""
    """Empty for bare metal."""
    usage_classes: tuple[str, ...] = ("on-demand", "spot")
    encrypts_in_transit: bool = False
    has_ena: bool = True
    ebs_mbps: int | None = None
    """The maximum bandwidth to EBS; None if the type has no bandwidth of its own for EBS."""
    disk_gb: int = 0
    """The size of all local disks together, in units of 10^9 bytes."""
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
    """The amiFamily: how a node's image joins the cluster; values are those of EC2NodeClass."""

    AL2 = "AL2"
    AL2023 = "AL2023"
    BOTTLEROCKET = "Bottlerocket"
    CUSTOM = "Custom"
    WINDOWS_2019 = "Windows2019"
    WINDOWS_2022 = "Windows2022"
    WINDOWS_2025 = "Windows2025"


class CapacityReservation(Struct, frozen=True, gc=False):
    """A capacity reservation, and how many instances it has left."""

    id: str
    instance_type: str
    zone: str
    owner: str = ""
    match_criteria: str = ""
    type: str = "default"
    is_interruptible: bool = False
    state: str = "active"
    left: int = 0
    ends: datetime | None = None


class PlacementGroup(Struct, frozen=True, gc=False):
    """A placement group."""

    id: str
    name: str = ""
    strategy: str = ""
    partitions: int = 0


class InstanceSettings(Struct, frozen=True):
    """The settings of an EC2NodeClass that change capacity, labels or offerings of types."""

    family: AmiFamily = AmiFamily.AL2023
    kubelet: Kubelet = Kubelet()
    disks: tuple[DiskMapping, ...] = ()
    is_raid0: bool = False
    """Whether local disks hold the ephemeral storage of pods."""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    zones: Mapping[str, str] | None = None
    """Zone IDs by zone, of the zones that its subnets are in; None stands for every zone."""
    full_zones: frozenset[str] = frozenset()
    """Zones whose subnets have no free address."""
    reservations: tuple[CapacityReservation, ...] = ()
    placement: PlacementGroup | None = None
    needs_nested_virtualization: bool = False
    tracks_connections: bool = False
    """Whether it sets timeouts of connection tracking."""
    label_domain: str = EC2_DOMAIN
    """The domain of the labels of types: `EC2_DOMAIN` or `AUTO_MODE_DOMAIN`."""
    memory_discovered: Mapping[str, int] = {}
    """Bytes of memory that nodes with its images have reported, by instance type."""


class Ec2Settings(Struct, frozen=True):
    """Settings of the operator that change instance types."""

    vm_memory_overhead: float = 0.075
    """The share of an instance's memory that its node lacks: VM_MEMORY_OVERHEAD_PERCENT."""
    reserved_enis: int = 0
    """Network interfaces of each instance without addresses for pods: RESERVED_ENIS."""


class Ec2Market(Struct, frozen=True):
    """Where instance types are sold in a region, at which prices, and what is sold out."""

    zones: Mapping[str, frozenset[str]]
    """Zones by instance type."""
    on_demand: Mapping[str, int] = {}
    """Micro-dollars per hour by instance type."""
    spot: Mapping[str, Mapping[str, int]] | None = None
    """Micro-dollars per hour by instance type and zone; None until spot prices were read once."""
    zone_ids: Mapping[str, str] = {}
    """Zone IDs by zone, used where the EC2NodeClass has no subnets that give them."""
    unavailable: frozenset[tuple[str, str, str]] = frozenset()
    """Offerings that are sold out: capacity type, instance type and zone."""
    unavailable_in_group: frozenset[tuple[str, str, str, str, str]] = frozenset()
    """Offerings that are sold out in a placement group: the same, then group and partition.

    An empty partition stands for the whole group.
    """
    closed_capacity_types: frozenset[str] = frozenset()
    """Capacity types that the account cannot launch now."""
    shifted_zones: frozenset[str] = frozenset()
    """Zones that traffic is shifted away from."""


class Region(Struct, frozen=True):
    """Instance types of one region, with their market."""

    name: str
    types: tuple[InstanceTypeInfo, ...]
    market: Ec2Market


class Subnet(Struct, frozen=True, gc=False):
    """A subnet, and how many free addresses it has."""

    id: str
    zone: str
    zone_id: str = ""
    free_addresses: int = 0


class SecurityGroup(Struct, frozen=True, gc=False):
    """A security group."""

    id: str
    name: str = ""


class Image(Struct, frozen=True, gc=False):
    """A machine image."""

    id: str
    name: str = ""
    architecture: str = ""
    """As EC2 writes it: `x86_64` or `arm64`."""
    created: datetime | None = None
    deprecated: datetime | None = None


class Instance(Struct, frozen=True, gc=False):
    """An EC2 instance."""

    id: str
    instance_type: str
    zone: str
    state: str = "running"
    image: str = ""
    launched: datetime | None = None
    subnet: str = ""
    security_groups: tuple[str, ...] = ()
    capacity_type: str = "on-demand"
    reservation: str = ""
    reservation_type: str = ""
    tenancy: str = "default"
    tags: Mapping[str, str] = {}
    placement_group: str = ""
    partition: str = ""
    zone_id: str = ""
    efa_count: int = 0

    @property
    def is_terminating(self) -> bool:
        return self.state in {"shutting-down", "terminated"}


class FleetError(Struct, frozen=True, gc=False):
    """An error of CreateFleet: why one of the overrides was not launched."""

    code: str
    message: str = ""
    instance_type: str = ""
    zone: str = ""
    subnet: str = ""
    lifecycle: str = ""
