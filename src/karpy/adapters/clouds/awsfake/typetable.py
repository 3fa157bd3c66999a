"""The instance types of the fake: those of moto, and accelerated types that moto lacks."""

import gzip
import json
from collections.abc import Collection
from copy import deepcopy
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
JsonAnything: TypeAlias = Any
"""Any JSON value."""

_GPUS: Final = {
    "g4ad": ("Radeon Pro V520", "AMD", 8_192, "AMD", 3.0),
    "dl1": ("Gaudi HL-205", "Habana", 32_768, "Intel", 3.0),
    "p3": ("V100", "NVIDIA", 16_384, "Intel", 2.7),
}
_MADE: Final = (
    # type, the type of moto that it is copied from, vCPUs, MiB, accelerators
    ("g4ad.xlarge", "g4dn.xlarge", 4, 16_384, 1),
    ("g4ad.2xlarge", "g4dn.2xlarge", 8, 32_768, 1),
    ("g4ad.4xlarge", "g4dn.4xlarge", 16, 65_536, 1),
    ("g4ad.8xlarge", "g4dn.8xlarge", 32, 131_072, 2),
    ("g4ad.16xlarge", "g4dn.16xlarge", 64, 262_144, 4),
    ("dl1.24xlarge", "p4d.24xlarge", 96, 786_432, 8),
    ("p3.2xlarge", "g5.2xlarge", 8, 62_464, 1),
    ("p3.8xlarge", "g5.8xlarge", 32, 249_856, 4),
    ("p3.16xlarge", "g5.16xlarge", 64, 499_712, 8),
)


def types_of(families: Collection[str] = ()) -> dict[str, JsonObject]:
    """Return the types of these families; without families, all types."""
    return {
        name: each
        for name, each in known_types().items()
        if not families or name.partition(".")[0] in families
    }


@lru_cache(maxsize=1)
def known_types() -> dict[str, JsonObject]:
    """Return the answer of DescribeInstanceTypes for each type, by name."""
    known: dict[str, JsonObject] = _resource("instance_types.json.gz")
    return known | {each[0]: _made(known[each[1]], *each) for each in _MADE}


@lru_cache(maxsize=4)
def zones_of(region: str) -> dict[str, tuple[str, ...]]:
    """Return the zones of a region in which each type is sold, by type."""
    rows = _resource(f"instance_type_offerings/availability-zone/{region}.json.gz")
    zones: dict[str, list[str]] = {}
    for each in rows:
        zones.setdefault(each["InstanceType"], []).append(each["Location"])
    every = tuple(sorted({zone for some in zones.values() for zone in some}))
    found = {name: tuple(sorted(some)) for name, some in zones.items()}
    return found | {each[0]: every for each in _MADE}


def _made(like: JsonObject, name: str, _: str, vcpus: int, mib: int, count: int) -> JsonObject:
    gpu, maker, memory, processor, clock = _GPUS[name.partition(".")[0]]
    made = deepcopy(like)
    made["InstanceType"] = name
    made["VCpuInfo"] |= {"DefaultVCpus": vcpus, "DefaultCores": vcpus // 2}
    made["MemoryInfo"] = {"SizeInMiB": mib}
    made["ProcessorInfo"] |= {"Manufacturer": processor, "SustainedClockSpeedInGhz": clock}
    gpus = {"Name": gpu, "Manufacturer": maker, "Count": count, "MemoryInfo": {"SizeInMiB": memory}}
    made["GpuInfo"] = {"Gpus": [gpus], "TotalGpuMemoryInMiB": memory * count}
    return made


def _resource(name: str) -> JsonAnything:
    data = files("moto.ec2").joinpath("resources", *name.split("/")).read_bytes()
    return json.loads(gzip.decompress(data))
