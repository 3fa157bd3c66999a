"""EC2's instance types and prices from a table that comes with Karpy, without an AWS account."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

from karpy.codec.aws.families import FamilyTable, read_table, region_of, region_of_zone
from karpy.model.ec2 import Region

DEFAULT_REGION: Final = "us-east-1"
_REGIONS_KEPT: Final = 4


def builtin_regions() -> tuple[str, ...]:
    """Return the names of the regions in the table."""
    return tuple(sorted(_table().regions))


@lru_cache(maxsize=_REGIONS_KEPT)
def builtin_region(name: str) -> Region:
    """Return a region of the table, the same object each time."""
    return region_of(_table(), name)


def builtin_region_of(zone: str) -> str:
    """Return the region of a zone, a zone ID or a region; empty if it is not in the table."""
    return region_of_zone(_table(), zone)


def known_prices(region: str) -> Mapping[str, int]:
    """Return the on-demand prices of a region; those of us-east-1 if the table has no others."""
    known = region if region in _table().regions else DEFAULT_REGION
    return builtin_region(known).market.on_demand


@lru_cache(maxsize=1)
def _table() -> FamilyTable:
    path = files("karpy.codec.aws").joinpath("ec2families.toml")
    return read_table(path.read_text(encoding="utf-8"))
