"""The images of EKS, and the public parameters that name them."""

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
    """An image, as far as a fake needs to know it."""

    id: str
    name: str
    architecture: str
    created: datetime
    platform: str = ""


def image_of_parameter(parameter: str, release: str = RELEASE) -> ImageSeed | None:
    """Return the image that a public parameter names; None if it is none of EKS."""
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


def _al2(match: re.Match[str], release: str) -> ImageSeed:
    variant = match["variant"].removeprefix("-")
    kind = f"{variant}-" if variant else ""
    wanted = match["release"]
    latest = f"amazon-eks-{kind}node-{match['version']}-{release}"
    architecture = "arm64" if variant == "arm64" else "x86_64"
    return image_seed(latest if wanted == "recommended" else wanted, architecture)


def _al2023(match: re.Match[str], release: str) -> ImageSeed:
    wanted, kind = match["release"], f"{match['arch']}-{match['variant']}-{match['version']}"
    latest = f"amazon-eks-node-al2023-{kind}-{release}"
    return image_seed(latest if wanted == "recommended" else wanted, match["arch"])


def _bottle(match: re.Match[str], release: str) -> ImageSeed:
    wanted = match["release"]
    version = f"{_BOTTLEROCKET}-{release.removeprefix('v')}" if wanted == "latest" else wanted
    name = f"bottlerocket-aws-k8s-{match['version']}{match['variant']}-{match['arch']}-v{version}"
    return image_seed(name, match["arch"], None if wanted != "latest" else _created(release))


def _win(match: re.Match[str], release: str) -> ImageSeed:
    return image_seed(f"{match['name']}-{release}", "x86_64", None, "windows")


def _created(name: str) -> datetime:
    match = _DATED.search(name)
    if match is None:
        return _LONG_AGO
    try:
        return datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC)
    except ValueError:
        return _LONG_AGO
