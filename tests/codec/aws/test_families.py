"""The table of EC2's families, compared with the instance types of another source."""

from functools import lru_cache

import pytest

from karpy.adapters.clouds.aws.builtin import (
    builtin_region,
    builtin_region_of,
    builtin_regions,
)
from karpy.codec.aws.families import read_table, region_of
from karpy.core.aws.capacity import pods
from karpy.model.ec2 import (
    Device,
    Ec2Settings,
    InstanceSettings,
    InstanceTypeInfo,
    NetworkCard,
)
from tests.builders.ec2 import described as described_types

ENOUGH = 0.95
TABLE = """
[usual]
spot = 0.5
disk = "2=118 4=237 96=5700"

[shapes.x]
sizes = "large xlarge metal/96"
network = "750 1250 25000"
ebs = "4750 4750 19000"
efa = "metal=1"
cards = "metal=2"

[shapes.y]
sizes = "small/2 large"
interfaces = "3x4 3x12"
network = "128 512"

[families]
x = { shape = "x", cpu = "intel 3.1", gib = 4, usd = "0.05 metal=5", disk = "usual" }
y = { shape = "y", cpu = "aws 2.5", gib = "1 8", usd = 0.02, spot = 0, encrypts = false }

[families.z]
shape = "x"
cpu = "amd"
gib = 2
usd = 1
sizes = "xlarge"
gpu = { name = "V", by = "AMD", mib = 8, count = "2" }

[regions.eu-west-1]
usd = 1.1
zones = "a b"
ids = "euw1-az 1 3"
lacks = "z"

[regions.eu-west-1-far]
usd = 2
zones = "-1a"
ids = "far-az 1"
sells = "z"
"""


def described() -> dict[str, InstanceTypeInfo]:
    """Return the instance types of another source, by name."""
    return {each.name: each for each in described_types()}


@lru_cache(maxsize=1)
def built_in() -> dict[str, InstanceTypeInfo]:
    """Return every instance type of the table, in any region."""
    regions = map(builtin_region, builtin_regions())
    return {each.name: each for region in regions for each in region.types}


def test_nearly_all_types_are_in_the_table() -> None:
    assert len(described().keys() & built_in().keys()) >= ENOUGH * len(described())


def test_vcpus_memory_architecture_and_pods_are_those_of_the_other_source() -> None:
    settings, operator = InstanceSettings(), Ec2Settings()
    shared = sorted(described().keys() & built_in().keys())

    def facts(info: InstanceTypeInfo) -> tuple[int, int, str, int]:
        return (
            info.vcpus,
            info.memory_mib,
            info.architectures[-1],
            pods(info, settings, operator),
        )

    wrong = [name for name in shared if facts(described()[name]) != facts(built_in()[name])]

    assert len(shared) > 1300
    assert len(wrong) <= (1 - ENOUGH) * len(shared), wrong


def test_devices_disks_and_bandwidths_are_those_of_the_other_source() -> None:
    shared = sorted(described().keys() & built_in().keys())

    def facts(info: InstanceTypeInfo) -> tuple[object, ...]:
        return (
            [(each.name, each.count) for each in info.gpus],
            sum(each.bandwidth_mbps for each in info.cards),
            info.ebs_mbps,
            info.disk_gb,
            info.is_nvme,
            info.efa_max,
            info.encrypts_in_transit,
            info.hypervisor,
            info.manufacturer,
        )

    wrong = [name for name in shared if facts(described()[name]) != facts(built_in()[name])]

    assert len(wrong) <= (1 - ENOUGH) * len(shared), wrong


def test_a_region_sells_its_families_in_its_zones() -> None:
    region = region_of(read_table(TABLE), "eu-west-1")

    zones = frozenset({"eu-west-1a", "eu-west-1b"})
    assert [each.name for each in region.types] == [
        "x.large",
        "x.metal",
        "x.xlarge",
        "y.large",
        "y.small",
    ]
    assert region.market.zones == {each.name: zones for each in region.types}
    assert region.market.zone_ids == {"eu-west-1a": "euw1-az1", "eu-west-1b": "euw1-az3"}
    assert region.market.on_demand == {
        "x.large": 110_000,
        "x.xlarge": 220_000,
        "x.metal": 5_500_000,
        "y.small": 44_000,
        "y.large": 44_000,
    }
    assert region.market.spot is not None
    assert region.market.spot["x.large"] == {"eu-west-1a": 55_000, "eu-west-1b": 55_000}


def test_a_row_has_all_fields_of_a_family() -> None:
    large, metal, _, arm, _ = region_of(read_table(TABLE), "eu-west-1").types

    assert large == InstanceTypeInfo(
        name="x.large",
        vcpus=2,
        memory_mib=8192,
        architectures=("x86_64",),
        cards=(NetworkCard(3, 750),),
        ipv4_per_interface=10,
        manufacturer="Intel",
        clock_mhz=3100,
        hypervisor="nitro",
        encrypts_in_transit=True,
        ebs_mbps=4750,
        disk_gb=118,
    )
    assert (metal.hypervisor, metal.vcpus, metal.memory_mib) == ("", 96, 96 * 4096)
    assert (metal.cards, metal.efa_max) == ((NetworkCard(15, 12500), NetworkCard(15, 12500)), 1)
    assert (arm.architectures, arm.memory_mib, arm.ebs_mbps) == (("arm64",), 8192, None)
    assert (arm.usage_classes, arm.encrypts_in_transit) == (("on-demand",), False)


def test_a_family_may_have_fewer_sizes_than_its_shape() -> None:
    (only,) = region_of(read_table(TABLE), "eu-west-1-far").types

    assert (only.name, only.clock_mhz) == ("z.xlarge", None)
    assert only.gpus == (Device("V", "AMD", 2, 8),)


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("eu-west-1a", "eu-west-1"),
        ("us-west-2-lax-1a", "us-west-2"),
        ("apne1-az4", "ap-northeast-1"),
        ("ap-northeast-1", "ap-northeast-1"),
        ("us-gov-west-1a", ""),
        ("test-zone-a", ""),
        ("", ""),
    ],
)
def test_a_zone_is_in_a_region(zone: str, region: str) -> None:
    assert builtin_region_of(zone) == region


def test_the_largest_region_has_the_types_and_offerings_of_ec2() -> None:
    region = builtin_region("us-east-1")

    assert len(region.types) >= 1370
    assert sum(map(len, region.market.zones.values())) > 6400
    assert builtin_region("us-east-1") is region


def test_every_type_has_a_price_and_spot_costs_less() -> None:
    regions = list(map(builtin_region, builtin_regions()))

    odd = [
        (region.name, name)
        for region in regions
        for name, price in region.market.on_demand.items()
        if not all(0 <= spot < price for spot in (region.market.spot or {})[name].values())
    ]

    assert len(regions) == 30
    assert odd == []


@pytest.mark.parametrize(
    ("name", "dollars"),
    [
        ("m5.large", 0.096),
        ("c7g.xlarge", 0.145),
        ("r6i.2xlarge", 0.504),
        ("t3.medium", 0.0416),
        ("g5.xlarge", 1.006),
        ("p4d.24xlarge", 21.96),
    ],
)
def test_prices_are_within_a_percent_of_those_that_aws_lists(name: str, dollars: float) -> None:
    price = builtin_region("us-east-1").market.on_demand[name] / 1_000_000

    assert price == pytest.approx(dollars, rel=0.01)
