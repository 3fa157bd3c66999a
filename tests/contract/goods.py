"""The launch options of a cloud for the contract tests."""

from typing import Final

from msgspec import Struct

from karpy.model.verdicts import LaunchOption


class Goods(Struct, frozen=True):
    """The launch options of a cloud that the contract tests use."""

    on_demand: LaunchOption
    spot: LaunchOption
    """The same instance type at a lower price."""
    dear: LaunchOption
    """An instance type of twice the size."""
    types: int
    cpu: int
    allocatable: int


KWOK_GOODS: Final = Goods(
    LaunchOption("c-1x-amd64-linux", 27147, "test-zone-b", "on-demand"),
    LaunchOption("c-1x-amd64-linux", 19003, "test-zone-c", "spot"),
    LaunchOption("c-2x-amd64-linux", 54294, "test-zone-b", "on-demand"),
    types=144,
    cpu=1000,
    allocatable=900,
)

AWS_GOODS: Final = Goods(
    LaunchOption("c6a.large", 76500, "us-west-2b", "on-demand"),
    LaunchOption("c6a.large", 40000, "us-west-2c", "spot"),
    LaunchOption("c6a.xlarge", 153000, "us-west-2b", "on-demand"),
    types=4,
    cpu=2000,
    allocatable=1930,
)
