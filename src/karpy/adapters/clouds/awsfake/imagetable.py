"""The images of EKS, and the public SSM parameters that hold their IDs."""

import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from msgspec import Struct

RELEASE: Final = "v20260101"
OWNER: Final = "602401143452"
_BOTTLEROCKET: Final = "1.52.0"
_AL2: Final = re.compile(
    r"/aws/service/eks/optimized-ami/(?P<version>[\d.]+)/amazon-linux-2(?P<variant>|-arm64|-gpu)/"
    r"(?P<release>[^/]+)/image_id"
)
_AL2023: Final = re.compile(
    r"/aws/service/eks/optimized-ami/(?P<version>[\d.]+)/amazon-linux-2023/(?P<arch>x86_64|arm64)/"
    r"(?P<variant>standard|nvidia|neuron)/(?P<release>[^/]+)/image_id"
)
_BOTTLE: Final = re.compile(
    r"/aws/service/bottlerocket/aws-k8s-(?P<version>[\d.]+)(?P<variant>|-nvidia)/"
    r"(?P<arch>x86_64|arm64)/(?P<release>[^/]+)/image_id"
)
_WINDOWS: Final = re.compile(
    r"/aws/service/ami-windows-latest/"
    r"(?P<name>Windows_Server-(?:2019|2022|2025)-English-Core-EKS_Optimized-[\d.]+)/image_id"
)
_DATED: Final = re.compile(r"v(\d{4})(\d{2})(\d{2})")
_LONG_AGO: Final = datetime(2025, 1, 1, tzinfo=UTC)


class ImageSeed(Struct, frozen=True):
    """The fields of an image that the fake stores."""

    id: str
    name: str
    architecture: str
    created: datetime
    platform: str = ""


def image_of_parameter(parameter: str, release: str = RELEASE) -> ImageSeed | None:
    """
    Return the image that a public parameter names; None if it is none of EKS, or not released.

    Every day until the last release has images, and every version of Bottlerocket until its last.
    """
    for pattern, read in ((_AL2, _al2), (_AL2023, _al2023), (_BOTTLE, _bottle), (_WINDOWS, _win)):
        match = pattern.fullmatch(parameter)
        if match is not None:
            return read(match, release)
    return None


def image_seed(
    name: str, architecture: str, created: datetime | None = None, platform: str = ""
) -> ImageSeed:
    """Return an image; its ID follows from its name."""
    id_ = f"ami-{sha256(name.encode()).hexdigest()[:17]}"
    return ImageSeed(id_, name, architecture, created or _created(name), platform)


def _al2(match: re.Match[str], release: str) -> ImageSeed | None:
    variant = match["variant"].removeprefix("-")
    kind = f"{variant}-" if variant else ""
    architecture = "arm64" if variant == "arm64" else "x86_64"
    prefix = f"amazon-eks-{kind}node-{match['version']}-"
    return _dated_seed(prefix, match["release"], release, architecture)


def _al2023(match: re.Match[str], release: str) -> ImageSeed | None:
    kind = f"{match['arch']}-{match['variant']}-{match['version']}"
    prefix = f"amazon-eks-node-al2023-{kind}-"
    return _dated_seed(prefix, match["release"], release, match["arch"])


def _dated_seed(prefix: str, wanted: str, release: str, architecture: str) -> ImageSeed | None:
    """Return the image of a date; None for a date in the future, and for other versions."""
    if wanted == "recommended":
        return image_seed(prefix + release, architecture)
    date = wanted.removeprefix(prefix)
    is_there = wanted.startswith(prefix) and _DATED.fullmatch(date) and date <= release
    return image_seed(wanted, architecture) if is_there and _day(date) else None


def _bottle(match: re.Match[str], release: str) -> ImageSeed | None:
    wanted = match["release"]
    if wanted != "latest" and not _is_released(wanted):
        return None
    version = f"{_BOTTLEROCKET}-{release.removeprefix('v')}" if wanted == "latest" else wanted
    name = f"bottlerocket-aws-k8s-{match['version']}{match['variant']}-{match['arch']}-v{version}"
    return image_seed(name, match["arch"], None if wanted != "latest" else _created(release))


def _win(match: re.Match[str], release: str) -> ImageSeed:
    return image_seed(f"{match['name']}-{release}", "x86_64", None, "windows")


def _is_released(version: str) -> bool:
    """Say whether a version of Bottlerocket, such as `1.46.0`, has been released."""
    parts, last = version.split("."), _BOTTLEROCKET.split(".")
    if len(parts) != len(last) or not all(each.isdecimal() for each in parts):
        return False
    return [int(each) for each in parts] <= [int(each) for each in last]


def _created(name: str) -> datetime:
    return _day(name) or _LONG_AGO


def _day(name: str) -> datetime | None:
    """Return the date in a name, or None."""
    match = _DATED.search(name)
    if match is None:
        return None
    try:
        return datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC)
    except ValueError:
        return None
