"""The cloud providers that manifests name, with their node classes, labels and catalogs."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from karpy.codec.schemas.labelrules import AWS_LABELS
from karpy.model.labels import WELL_KNOWN


class Provider(Struct, frozen=True):
    """A cloud, as manifests name it."""

    title: str
    """The name of the cloud in messages about its instance types."""
    domains: tuple[str, ...]
    """Label domains that are about its instance types."""
    classes: tuple[tuple[str, str], ...]
    """Group and kind of its node classes."""
    labels: frozenset[str] = frozenset()
    """Its labels of instance types, as far as they are known."""
    deciding: tuple[str, ...] = ()
    """Fields of its node classes that change what fits on a node, where it is, or its price."""
    catalog: str = ""
    """The catalog of its instance types that comes with Karpy; empty if none does."""


_EKS_LABELS: Final = frozenset(
    f"eks.amazonaws.com/instance-{each}"
    for each in (
        "category",
        "cpu",
        "cpu-manufacturer",
        "ebs-bandwidth",
        "encryption-in-transit-supported",
        "family",
        "generation",
        "gpu-count",
        "gpu-manufacturer",
        "gpu-memory",
        "gpu-name",
        "hypervisor",
        "local-nvme",
        "memory",
        "network-bandwidth",
        "size",
    )
)
_AZURE_LABELS: Final = frozenset(
    f"karpenter.azure.com/sku-{each}"
    for each in (
        "cpu",
        "family",
        "gpu-count",
        "gpu-manufacturer",
        "gpu-name",
        "memory",
        "name",
        "networking-accelerated",
        "storage-ephemeralos-maxsize",
        "storage-premium-capable",
        "version",
    )
)

EC2: Final = Provider(
    "EC2",
    ("karpenter.k8s.aws", "topology.k8s.aws"),
    (("karpenter.k8s.aws", "EC2NodeClass"), ("karpenter.k8s.aws", "AWSNodeTemplate")),
    frozenset(AWS_LABELS) | {"topology.k8s.aws/zone-id"},
    (
        "amiFamily",
        "amiSelectorTerms",
        "blockDeviceMappings",
        "capacityReservationSelectorTerms",
        "instanceStorePolicy",
        "kubelet",
        "networkInterfaces",
        "placementGroupSelector",
        "subnetSelectorTerms",
        "subnetSelector",
    ),
    "ec2",
)
EKS: Final = Provider(
    "EKS Auto Mode",
    ("eks.amazonaws.com",),
    (("eks.amazonaws.com", "NodeClass"),),
    _EKS_LABELS,
    (
        "advancedNetworking",
        "capacityReservationSelectorTerms",
        "ephemeralStorage",
        "podSubnetSelectorTerms",
        "subnetSelectorTerms",
    ),
    "ec2",
)
AZURE: Final = Provider(
    "Azure",
    ("karpenter.azure.com", "kubernetes.azure.com"),
    (("karpenter.azure.com", "AKSNodeClass"),),
    _AZURE_LABELS,
    ("fipsMode", "imageFamily", "kubelet", "maxPods", "osDiskSizeGB", "vnetSubnetID"),
)
KWOK: Final = Provider(
    "KWOK", ("karpenter.kwok.sh",), (("karpenter.kwok.sh", "KWOKNodeClass"),), frozenset(), ()
)

PROVIDERS: Final = (EC2, EKS, AZURE, KWOK)

PROVIDER_LABELS: Final = frozenset().union(*(each.labels for each in PROVIDERS)) | WELL_KNOWN


_OF_NODE_GROUPS: Final = frozenset(
    f"eks.amazonaws.com/{each}"
    for each in (
        "capacityType",
        "nodegroup",
        "nodegroup-image",
        "sourceLaunchTemplateId",
        "sourceLaunchTemplateVersion",
    )
)
"""Labels that only nodes of managed node groups have, and no node of an autoscaler."""


def provider_of_key(key: str) -> Provider | None:
    """Return the provider that a label belongs to."""
    if key in _OF_NODE_GROUPS:
        return None
    domain = key.partition("/")[0] if "/" in key else ""
    return next((each for each in PROVIDERS if domain in each.domains), None)


def provider_of_class(group: str, kind: str) -> Provider | None:
    """Return the provider that a node class belongs to."""
    # A reference may leave out either of them.
    return next((each for each in PROVIDERS if _names(each, group, kind)), None)


def group_of_class(kind: str) -> str:
    """Return the only group with node classes of a kind; empty if there are none or several."""
    groups = {group for each in PROVIDERS for group, name in each.classes if name == kind}
    # Cloud providers that are not known here may use this kind, too.
    is_common = kind == "NodeClass"
    return groups.pop() if len(groups) == 1 and not is_common else ""


def namesake(key: str) -> str:
    """Return a label with the same name in another domain; empty if there is none."""
    domain, _, name = key.rpartition("/")
    same = (each for each in sorted(PROVIDER_LABELS) if each.rpartition("/")[2] == name)
    ranked = sorted((_place(each), each) for each in same if each != key)
    return ranked[0][1] if domain and ranked else ""


def nearest(key: str, known: Iterable[str]) -> str | None:
    """
    Return the label that a key most likely misspells, or None.

    Keys without a domain are compared with the last part of the labels alone.
    """
    ranked = []
    bare = "/" not in key
    for label in sorted(known):
        other = label.rpartition("/")[2] if bare else label
        shortest = min(len(key), len(other))
        most = _EDITS_MAX if shortest >= _LONG else 0
        distance = edits(key.lower(), other.lower(), most)
        if distance is not None:
            ranked.append((distance, _place(label), label))
    return min(ranked)[-1] if ranked else None


def edits(one: str, other: str, most: int) -> int | None:
    """
    Count the letters to add, drop, change or swap with the next to make one text the other.

    None if these are more than `most`.
    """
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        before, last, row = row, before, [at]
        for place, opposite in enumerate(other, start=1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != opposite))
            is_swap = at > 1 and place > 1 and (letter, opposite) == (other[place - 2], one[at - 2])
            row.append(min(cost, last[place - 2] + 1) if is_swap else cost)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None


_EDITS_MAX: Final = 2
_LONG: Final = 6
"""A label that is shorter than this must match without an edit."""


def _place(label: str) -> int:
    """Rank labels of no cloud before those of a cloud, and clouds in the order of PROVIDERS."""
    provider = provider_of_key(label)
    return -1 if provider is None else PROVIDERS.index(provider)


def _names(provider: Provider, group: str, kind: str) -> bool:
    return any(
        (group, kind) == each or (not group and kind == each[1]) for each in provider.classes
    )
