"""Instance types of EC2 that the specification has figures of, and where they are sold."""

import gzip
import json
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

import pytest
from msgspec.structs import replace

from karpy.adapters.clouds.aws.builtin import builtin_region, builtin_regions
from karpy.codec.aws.instancetypes import read_instance_types
from karpy.core.aws.capacity import capacity, overhead
from karpy.model.ec2 import (
    Ec2Market,
    Ec2Settings,
    InstanceSettings,
    InstanceTypeInfo,
    NetworkCard,
    Region,
)
from karpy.model.instances import allocatable
from karpy.model.resources import Resources

MI: Final = 2**20
GI: Final = 2**30
JsonAnything: TypeAlias = Any
"""What is in a file of JSON, which only its reader knows."""
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


@lru_cache(maxsize=1)
def described() -> tuple[InstanceTypeInfo, ...]:
    """Return the instance types that moto describes; skip the test if it is not installed."""
    types, faults = read_instance_types(described_answers())
    assert faults == ()
    return types


@lru_cache(maxsize=1)
def described_answers() -> list[JsonAnything]:
    """Return what moto answers to DescribeInstanceTypes, decoded."""
    every: dict[str, JsonAnything] = _resource("instance_types.json.gz")
    return list(every.values())


@lru_cache(maxsize=1)
def described_zones() -> dict[str, frozenset[str]]:
    """Return the zones of us-east-1 that moto offers each instance type in."""
    zones: dict[str, set[str]] = {}
    for each in _resource("instance_type_offerings/availability-zone/us-east-1.json.gz"):
        zones.setdefault(each["InstanceType"], set()).add(each["Location"])
    return {name: frozenset(some) for name, some in zones.items()}


def every_type() -> list[InstanceTypeInfo]:
    """Return all instance types of moto, and those it lacks of Karpy's own table."""
    known = {
        each.name: each for region in builtin_regions() for each in builtin_region(region).types
    }
    return list({**known, **{each.name: each for each in described()}}.values())


def _resource(name: str) -> JsonAnything:
    pytest.importorskip("moto", reason="moto is not installed: `pip install karpy[aws-fake]`")
    data = files("moto.ec2").joinpath("resources", *name.split("/")).read_bytes()
    return json.loads(gzip.decompress(data))


def market(*types: InstanceTypeInfo, price: int = 96_000) -> Ec2Market:
    """Sell instance types in both zones, at one price, spot at half of it."""
    return Ec2Market(
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
