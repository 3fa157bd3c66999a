"""The labels that EC2 gives its nodes, in the domains of Karpenter's provider and of EKS."""

from typing import Final

EC2_DOMAIN: Final = "karpenter.k8s.aws/"
AUTO_MODE_DOMAIN: Final = "eks.amazonaws.com/"
"""The domain in which EKS Auto Mode says the same of its instance types."""

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
"""What is known of an instance type alone, without the domain."""

AUTO_MODE_TYPE_LABELS: Final = frozenset(TYPE_LABELS) - {
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_ACCELERATOR_MANUFACTURER,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_CAPABILITY_FLEX,
    INSTANCE_CPU_CLOCK,
}
"""Those of them that EKS Auto Mode has, too."""

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
"""What a pod may ask for although its NodePool does not define it."""
AUTO_MODE_LABELS: Final = frozenset(AUTO_MODE_DOMAIN + each for each in AUTO_MODE_TYPE_LABELS)
TENANCIES: Final = ("dedicated", "default")
