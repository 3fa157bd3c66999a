"""Instance types of EC2 that the specification has figures of, and where they are sold."""

from typing import Final

from msgspec.structs import replace

from karpy.core.aws.capacity import capacity
from karpy.core.aws.overhead import overhead
from karpy.model.ec2types import (
    Ec2Settings,
    InstanceSettings,
    InstanceTypeInfo,
    Market,
    NetworkCard,
    Region,
)
from karpy.model.instances import allocatable
from karpy.model.resources import Resources

MI: Final = 2**20
GI: Final = 2**30
ZONES: Final = ("eu-west-1a", "eu-west-1b")
ZONE_IDS: Final = {"eu-west-1a": "euw1-az1", "eu-west-1b": "euw1-az2"}
PLAIN: Final = InstanceSettings()
OPERATOR: Final = Ec2Settings()

M5_LARGE: Final = InstanceTypeInfo(
    "m5.large",
    vcpus=2,
    memory_mib=8192,
    architectures=("x86_64",),
    cards=(NetworkCard(3, 750),),
    ipv4_per_interface=10,
    manufacturer="Intel",
    clock_mhz=3100,
    hypervisor="nitro",
    ebs_mbps=4750,
)
M5_XLARGE: Final = replace(
    M5_LARGE,
    name="m5.xlarge",
    vcpus=4,
    memory_mib=16384,
    cards=(NetworkCard(4, 1250),),
    ipv4_per_interface=15,
)
M5_METAL: Final = replace(
    M5_LARGE,
    name="m5.metal",
    vcpus=96,
    memory_mib=393216,
    cards=(NetworkCard(15, 25000),),
    ipv4_per_interface=50,
    hypervisor="",
)
T3_LARGE: Final = replace(M5_LARGE, name="t3.large", ipv4_per_interface=12)
C6G_LARGE: Final = replace(
    M5_LARGE, name="c6g.large", memory_mib=4096, architectures=("arm64",), manufacturer="AWS"
)


def market(*types: InstanceTypeInfo, price: int = 96_000) -> Market:
    """Sell instance types in both zones, at one price, spot at half of it."""
    return Market(
        zones={each.name: frozenset(ZONES) for each in types},
        on_demand={each.name: price for each in types},
        spot={each.name: dict.fromkeys(ZONES, price // 2) for each in types},
        zone_ids=ZONE_IDS,
    )


def region(*types: InstanceTypeInfo) -> Region:
    """Return a region that sells these instance types."""
    return Region("eu-west-1", types, market(*types))


def amounts(
    info: InstanceTypeInfo, settings: InstanceSettings = PLAIN
) -> tuple[Resources, Resources, Resources]:
    """Return capacity, overhead and what is left for pods."""
    offered = capacity(info, settings, OPERATOR)
    kept = overhead(info, settings, offered)
    return offered, kept, allocatable(offered, kept)
