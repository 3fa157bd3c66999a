"""Image families: what their user data looks like, and what types and disks depend on."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from karpy.core.aws.userdata import al2, al2023, bottlerocket, windows
from karpy.core.aws.userdata.bootstrap import Bootstrap
from karpy.model.ec2nodeclass import Disk, DiskMapping, Ec2NodeClassSpec

AL2: Final = "AL2"
AL2023: Final = "AL2023"
BOTTLEROCKET: Final = "Bottlerocket"
CUSTOM: Final = "Custom"


class ImageFamily(Struct, frozen=True):
    """How images of a family join a cluster, and what follows for their machines."""

    name: str
    user_data: Callable[[Bootstrap], str]
    disks: tuple[DiskMapping, ...] = ()
    """Those of a node class that names none."""
    ephemeral_device: str = ""
    """The device that ephemeral storage of pods is on."""
    limits_pods_by_interfaces: bool = True
    has_pods_per_core: bool = True
    reserves_memory_by_interfaces: bool = True
    """Whether reserved memory follows from network interfaces, whatever `maxPods` says."""
    has_soft_eviction: bool = True
    windows_build: str = ""


def _disk(device: str, size: str) -> DiskMapping:
    return DiskMapping(device, Disk(encrypted=True, size=size, type="gp3"))


def _windows(year: str, build: str) -> ImageFamily:
    return ImageFamily(
        f"Windows{year}",
        windows.user_data,
        (_disk("/dev/sda1", "50Gi"),),
        "/dev/sda1",
        limits_pods_by_interfaces=False,
        windows_build=build,
    )


FAMILIES: Final[Mapping[str, ImageFamily]] = {
    each.name: each
    for each in (
        ImageFamily(AL2, al2.user_data, (_disk("/dev/xvda", "20Gi"),), "/dev/xvda"),
        ImageFamily(AL2023, al2023.user_data, (_disk("/dev/xvda", "20Gi"),), "/dev/xvda"),
        ImageFamily(
            BOTTLEROCKET,
            bottlerocket.user_data,
            (_disk("/dev/xvda", "4Gi"), _disk("/dev/xvdb", "20Gi")),
            "/dev/xvdb",
            has_pods_per_core=False,
            reserves_memory_by_interfaces=False,
            has_soft_eviction=False,
        ),
        _windows("2019", "10.0.17763"),
        _windows("2022", "10.0.20348"),
        _windows("2025", "10.0.26100"),
        ImageFamily(CUSTOM, lambda bootstrap: bootstrap.user_data),
    )
}
_OF_ALIAS: Final = {
    "al2": AL2,
    "al2023": AL2023,
    "bottlerocket": BOTTLEROCKET,
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}


def family_name(spec: Ec2NodeClassSpec) -> str:
    """Return the family of a node class: as it says, or as the alias of its images does."""
    if spec.image_family:
        return spec.image_family
    return "" if spec.alias is None else _OF_ALIAS.get(spec.alias[0].lower(), "")


def family_of(spec: Ec2NodeClassSpec) -> ImageFamily:
    """Return what is known of the family of a node class; that of AL2 where nothing is."""
    return FAMILIES.get(family_name(spec), FAMILIES[AL2])


def encoded_user_data(family: ImageFamily, bootstrap: Bootstrap) -> str:
    """Return user data as EC2 takes it; raise UserDataInvalid."""
    return b64encode(family.user_data(bootstrap).encode()).decode()
