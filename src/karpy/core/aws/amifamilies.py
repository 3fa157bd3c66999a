"""What the family of an image decides about the room on a node."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from karpy.model.ec2types import AmiFamily

_GIB: Final = 2**30


class FamilyTraits(Struct, frozen=True):
    """How nodes of an image family differ from those of another."""

    ephemeral_device: str = "/dev/xvda"
    """The disk that pods' ephemeral storage is on."""
    disk_bytes: int | None = 20 * _GIB
    """Its size if the EC2NodeClass does not say; None if the image decides."""
    is_eni_limited: bool = True
    """Whether the addresses of the network interfaces limit the pods."""
    has_pods_per_core: bool = True
    reserves_for_eni_pods: bool = True
    """Whether memory is kept for the pods that have an address, even if maxPods allows fewer."""
    windows_build: str = ""

    @property
    def is_windows(self) -> bool:
        return bool(self.windows_build)


def _windows(build: str) -> FamilyTraits:
    return FamilyTraits(
        "/dev/sda1",
        50 * _GIB,
        is_eni_limited=False,
        reserves_for_eni_pods=False,
        windows_build=build,
    )


TRAITS: Final[Mapping[AmiFamily, FamilyTraits]] = {
    AmiFamily.AL2: FamilyTraits(),
    AmiFamily.AL2023: FamilyTraits(),
    AmiFamily.BOTTLEROCKET: FamilyTraits(
        "/dev/xvdb", has_pods_per_core=False, reserves_for_eni_pods=False
    ),
    AmiFamily.CUSTOM: FamilyTraits("", None),
    AmiFamily.WINDOWS_2019: _windows("10.0.17763"),
    AmiFamily.WINDOWS_2022: _windows("10.0.20348"),
    AmiFamily.WINDOWS_2025: _windows("10.0.26100"),
}
