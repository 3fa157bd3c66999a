"""AMIs: the SSM parameters and queries that find them, and the instance types that boot them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from karpy.model.ec2 import Image
from karpy.model.ec2nodeclass import Ec2NodeClass, Ec2NodeClassSpec, FoundImage, ImageTerm
from karpy.model.instances import InstanceType
from karpy.model.labels import ARCH, OS, WINDOWS_BUILD
from karpy.model.requirements import Requirement, Requirements, collect, one_of, why_incompatible

GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
ACCELERATOR_COUNT: Final = "karpenter.k8s.aws/instance-accelerator-count"
LATEST: Final = "latest"
_AL2_UNTIL: Final = 32
"""The last minor version of Kubernetes with images of AL2."""
_WINDOWS_2025_FROM: Final = 35
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_IMAGE_PREFIX: Final = "ami-"
_NVIDIA: Final = (Requirement(GPU_COUNT, complement=True),)
_NEURON: Final = (Requirement(ACCELERATOR_COUNT, complement=True),)
_STANDARD: Final = (
    Requirement(GPU_COUNT, frozenset()),
    Requirement(ACCELERATOR_COUNT, frozenset()),
)


class Variant(Struct, frozen=True, gc=False):
    """An SSM parameter that holds the ID of an image, and the machines that the image is for."""

    parameter: str
    requirements: tuple[tuple[Requirement, ...], ...] = ((),)
    """One set of requirements for each kind of machine."""
    is_mutable: bool = False
    """Whether AWS changes the value of the parameter, as for `latest`."""


class ImageQuery(Struct, frozen=True, gc=False):
    """A request to DescribeImages."""

    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Filters by name; an image must match one value of each filter."""
    owners: tuple[str, ...] = ()


def variants_of(alias: tuple[str, str], version: str) -> tuple[Variant, ...]:
    """Return the SSM parameters of an alias for a version of Kubernetes, such as `1.34`."""
    family, wanted = alias
    is_latest = wanted == LATEST
    match family.lower():
        case "al2":
            return _al2(version, wanted, is_latest=is_latest)
        case "al2023":
            return _al2023(version, wanted, is_latest=is_latest)
        case "bottlerocket":
            return _bottlerocket(version, wanted, is_latest=is_latest)
        case windows if windows.startswith("windows"):
            return _windows(windows.removeprefix("windows"), version)
    return ()


def why_unsupported(alias: tuple[str, str], version: str) -> str:
    """Say why an alias cannot be used with a version of Kubernetes; empty if it can."""
    family, minor = alias[0].lower(), _minor(version)
    if family == "al2" and minor > _AL2_UNTIL:
        return f"AL2 has no images for Kubernetes {version}"
    if family == "windows2025" and minor < _WINDOWS_2025_FROM:
        return f"Windows 2025 has no images for Kubernetes {version}"
    return ""


def queries_of(
    spec: Ec2NodeClassSpec, ids: Sequence[str], parameters: Mapping[str, str]
) -> tuple[ImageQuery, ...]:
    """
    Return the queries that find the images of a node class.

    `ids` are the values of the SSM parameters of its alias, `parameters` the values of its
    `ssmParameter` terms.
    """
    if spec.alias is not None:
        return (_by_ids(ids),) if ids else ()
    named = [each.id for each in spec.image_terms if each.id]
    for term in spec.image_terms:
        value = parameters.get(term.ssm_parameter, "")
        if value.startswith(_IMAGE_PREFIX):
            named.append(value)
    others = [
        _by_term(each)
        for each in spec.image_terms
        if not each.id and not each.ssm_parameter and (each.name or each.tags)
    ]
    return (*((_by_ids(named),) if named else ()), *others)


def choose_images(
    images: Iterable[tuple[Image, tuple[Requirement, ...]]], now: datetime
) -> tuple[FoundImage, ...]:
    """
    Return the best image for each kind of machine, newest first, as the status lists them.

    The best image is the newest that is not deprecated, or the newest if all are.
    """
    best: dict[tuple[Requirement, ...], Image] = {}
    for image, requirements in images:
        architecture = _ARCHITECTURES.get(image.architecture)
        if architecture is None:
            continue
        key = (one_of(ARCH, architecture), *requirements)
        known = best.get(key)
        if known is None or _rank(image, now) > _rank(known, now):
            best[key] = image
    found = [
        FoundImage(image.id, image.name, _in_order(key), is_deprecated(image, now))
        for key, image in best.items()
    ]
    created = {image.id: image.created for image in best.values()}
    return tuple(sorted(found, key=lambda each: (_newest_first(created[each.id]), each.id)))


def unusable_images(images: Iterable[Image]) -> tuple[str, ...]:
    """Return the IDs of images without a supported architecture."""
    return tuple(sorted({each.id for each in images if each.architecture not in _ARCHITECTURES}))


def image_for(images: Iterable[FoundImage], type_: InstanceType) -> FoundImage | None:
    """Return the first image that boots an instance type."""
    return next((each for each in images if boots(each, type_.requirements)), None)


def boots(image: FoundImage, requirements: Requirements) -> bool:
    """Say whether an image boots machines with these requirements."""
    return why_incompatible(requirements, collect(image.requirements)) is None


def bottlerocket_version(node_class: Ec2NodeClass) -> str:
    """Return the version of Bottlerocket that a node class boots, such as `v1.46.0`; or empty."""
    if node_class.spec.alias is not None:
        return node_class.spec.alias[1]
    found = {each.id: each.name for each in node_class.status.images}
    terms = node_class.spec.image_terms
    names = [each.name for each in terms if each.name]
    names += [found[each.id] for each in terms if each.id in found]
    names += [each for each in found.values() if "bottlerocket" in each]
    versions = (version for each in names if (version := _version_in(each)))
    return next(versions, "")


def _version_in(name: str) -> str:
    parts = name.split("-")
    return next((each for each in parts if each.startswith("v") and "." in each), "")


def requirements_by_id(
    found: Mapping[str, str], variants: Iterable[Variant]
) -> dict[str, tuple[tuple[Requirement, ...], ...]]:
    """Return the requirements of images by ID; `found` has the values of SSM parameters."""
    return {
        found[each.parameter]: each.requirements for each in variants if each.parameter in found
    }


def filters_of(query: ImageQuery) -> list[dict[str, Any]]:
    """Return the filters of a query in the format of EC2."""
    wanted = (*query.filters, ("state", ("available",)))
    return [{"Name": name, "Values": list(values)} for name, values in wanted]


def _al2(version: str, wanted: str, *, is_latest: bool) -> tuple[Variant, ...]:
    def parameter(suffix: str) -> str:
        name = f"amazon-eks-{suffix.lstrip('-') + '-' if suffix else ''}node-{version}-{wanted}"
        place = "recommended" if is_latest else name
        return f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2{suffix}/{place}/image_id"

    return (
        Variant(parameter(""), (_STANDARD,), is_latest),
        Variant(parameter("-arm64"), (_STANDARD,), is_latest),
        Variant(parameter("-gpu"), (_NEURON, _NVIDIA), is_latest),
    )


def _al2023(version: str, wanted: str, *, is_latest: bool) -> tuple[Variant, ...]:
    def parameter(arch: str, variant: str) -> str:
        name = f"amazon-eks-node-al2023-{arch}-{variant}-{version}-{wanted}"
        place = "recommended" if is_latest else name
        root = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023"
        return f"{root}/{arch}/{variant}/{place}/image_id"

    return (
        Variant(parameter("x86_64", "standard"), (_STANDARD,), is_latest),
        Variant(parameter("arm64", "standard"), (_STANDARD,), is_latest),
        Variant(parameter("x86_64", "nvidia"), (_NVIDIA,), is_latest),
        Variant(parameter("arm64", "nvidia"), (_NVIDIA,), is_latest),
        Variant(parameter("x86_64", "neuron"), (_NEURON,), is_latest),
    )


def _bottlerocket(version: str, wanted: str, *, is_latest: bool) -> tuple[Variant, ...]:
    def parameter(arch: str, flavour: str = "") -> str:
        root = f"/aws/service/bottlerocket/aws-k8s-{version}{flavour}"
        return f"{root}/{arch}/{wanted.removeprefix('v')}/image_id"

    return (
        Variant(parameter("x86_64"), (_STANDARD, _NEURON), is_latest),
        Variant(parameter("arm64"), (_STANDARD,), is_latest),
        Variant(parameter("x86_64", "-nvidia"), (_NVIDIA,), is_latest),
        Variant(parameter("arm64", "-nvidia"), (_NVIDIA,), is_latest),
    )


_WINDOWS_BUILDS: Final = {"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}


def _windows(year: str, version: str) -> tuple[Variant, ...]:
    name = f"Windows_Server-{year}-English-Core-EKS_Optimized-{version}"
    wanted = (one_of(OS, "windows"), one_of(WINDOWS_BUILD, _WINDOWS_BUILDS.get(year, "")))
    return (Variant(f"/aws/service/ami-windows-latest/{name}/image_id", (wanted,), True),)


def _by_ids(ids: Iterable[str]) -> ImageQuery:
    return ImageQuery((("image-id", tuple(dict.fromkeys(ids))),))


def _by_term(term: ImageTerm) -> ImageQuery:
    filters = tag_filters(term.tags)
    if term.name:
        filters = (*filters, ("name", (term.name,)))
    owners = (term.owner,) if term.owner else ("self", "amazon") if term.name else ()
    return ImageQuery(filters, owners)


def tag_filters(tags: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return filters for resources with all these tags; the value `*` matches any value."""
    return tuple(
        ("tag-key", (key,)) if value == "*" else (f"tag:{key}", (value,))
        for key, value in sorted(tags.items())
    )


def _rank(image: Image, now: datetime) -> tuple[bool, float, str]:
    created = 0.0 if image.created is None else image.created.timestamp()
    return not is_deprecated(image, now), created, image.name


def is_deprecated(image: Image, now: datetime) -> bool:
    """Say whether the deprecation time of an image has passed."""
    return image.deprecated is not None and image.deprecated <= now


def _newest_first(created: datetime | None) -> float:
    return 0.0 if created is None else -created.timestamp()


def _in_order(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Return requirements in the order of the status: by length of the key, then by key."""
    return tuple(sorted(requirements, key=lambda each: (len(each.key), each.key)))


def _minor(version: str) -> int:
    digits = version.partition(".")[2].rstrip("+")
    return int(digits) if digits.isdecimal() else 0
