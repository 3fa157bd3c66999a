"""What EC2 sells according to the table that comes with Karpy: no account is asked."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

from karpy.codec.aws.families import FamilyTable, read_table, region_of, region_of_zone
from karpy.model.ec2 import Region

DEFAULT_REGION: Final = "us-east-1"
_REGIONS_KEPT: Final = 4


def builtin_regions() -> tuple[str, ...]:
    """Name the regions that the table knows."""
    return tuple(sorted(_table().regions))


@lru_cache(maxsize=_REGIONS_KEPT)
def builtin_region(name: str) -> Region:
    """Return a region that the table knows, the same object each time."""
    return region_of(_table(), name)


def builtin_region_of(zone: str) -> str:
    """Return the region of a zone, a zone ID or a region; empty if the table has none such."""
    return region_of_zone(_table(), zone)


def known_prices(region: str) -> Mapping[str, int]:
    """Return on-demand prices to begin with; those of another region where this one lacks."""
    known = region if region in _table().regions else DEFAULT_REGION
    return builtin_region(known).market.on_demand


@lru_cache(maxsize=1)
def _table() -> FamilyTable:
    path = files("karpy.codec.aws").joinpath("ec2families.toml")
    return read_table(path.read_text(encoding="utf-8"))
