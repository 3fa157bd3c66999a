"""The parts of user data: facts about the cluster, flags of the kubelet, and MIME parts."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from typing import Final

from msgspec import Struct

from karpy.model.constraints import NO_EXECUTE, UNREGISTERED_TAINT, Taint
from karpy.model.ec2nodeclass import Kubelet
from karpy.model.labels import CAPACITY_TYPE
from karpy.model.times import write_duration

DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?")
RAID0: Final = "RAID0"
_UNREGISTERED: Final = Taint(UNREGISTERED_TAINT, NO_EXECUTE)
_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")
"""A kubelet may not set labels of these domains; Karpy writes them when the node registers."""
SHELL: Final = 'text/x-shellscript; charset="us-ascii"'
NODE_CONFIG: Final = "application/node.eks.aws"
_BOUNDARY: Final = "//"
_MIME_HEAD: Final = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n'
_MIME_STARTS: Final = ("MIME-Version:", "Content-Type:")
_BOUNDARY_OF: Final = re.compile(
    r"""^content-type:\s*multipart/[^\n]*?boundary=(?:"([^"\n]+)"|([^\s;]+))""",
    re.IGNORECASE | re.MULTILINE,
)


class UserDataInvalid(ValueError):
    """User data of a node class cannot be merged with Karpy's; the message says why."""


def is_ipv6(address: str) -> bool:
    """Say whether an address of the cluster's DNS is of version 6."""
    try:
        return isinstance(ip_address(address), IPv6Address)
    except ValueError:
        return False


class Bootstrap(Struct, frozen=True):
    """The input of user data: settings of the node, and facts about the cluster that it joins."""

    cluster: str
    endpoint: str
    ca_bundle: str
    """Base64."""
    kubelet: Kubelet = Kubelet()
    """With maxPods and clusterDNS filled in."""
    taints: tuple[Taint, ...] = ()
    labels: Mapping[str, str] = {}
    user_data: str = ""
    """The userData of the node class."""
    instance_store_policy: str = ""
    cidr: str = ""
    """The range of addresses of Services; AL2023 needs it."""
    is_ipv6: bool = False
    image_version: str = ""
    """The version of Bottlerocket, from the alias or the name of the image; empty if unknown."""


def registration_taints(taints: Iterable[Taint], startup: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return the taints that a node registers with, including `karpenter.sh/unregistered`."""
    wanted = (*taints, *startup)
    is_there = any((each.key, each.effect) == (_UNREGISTERED.key, NO_EXECUTE) for each in wanted)
    return wanted if is_there else (*wanted, _UNREGISTERED)


def node_labels(
    labels: Mapping[str, str], capacity_type: str, *, is_custom: bool = False
) -> dict[str, str]:
    """Return the labels that a kubelet sets; raise UserDataInvalid if one is not a valid label."""
    wanted = {**labels, CAPACITY_TYPE: capacity_type}
    for key, value in sorted(wanted.items()):
        # Labels become part of a script that root runs: a label must not inject a command.
        if not (_LABEL.fullmatch(key) and _LABEL.fullmatch(value or "x")):
            raise UserDataInvalid(f"`{key}: {value}` is no label")
    if not is_custom:
        wanted[DO_NOT_SYNC_TAINTS] = "true"
    return {key: value for key, value in sorted(wanted.items()) if not _is_reserved(key)}


def kubelet_flags(bootstrap: Bootstrap) -> list[str]:
    """Return the flags of a kubelet, in Karpenter's order."""
    kubelet = bootstrap.kubelet
    flags = []
    if bootstrap.labels:
        flags.append(f'--node-labels="{_pairs(bootstrap.labels)}"')
    taints = ",".join(map(write_taint, bootstrap.taints))
    flags.append(f'--register-with-taints="{taints}"')
    for name, number in (
        ("max-pods", kubelet.max_pods),
        ("pods-per-core", kubelet.pods_per_core),
    ):
        if number is not None:
            flags.append(f"--{name}={number}")
    for name, amounts, sign in (
        ("system-reserved", kubelet.system_reserved, "="),
        ("kube-reserved", kubelet.kube_reserved, "="),
        ("eviction-hard", kubelet.eviction_hard, "<"),
        ("eviction-soft", kubelet.eviction_soft, "<"),
        ("eviction-soft-grace-period", _durations(kubelet.eviction_soft_grace_period), "="),
    ):
        if amounts:
            flags.append(f'--{name}="{_pairs(amounts, sign)}"')
    for name, number in (
        ("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        ("image-gc-high-threshold", kubelet.image_gc_high),
        ("image-gc-low-threshold", kubelet.image_gc_low),
    ):
        if number is not None:
            flags.append(f"--{name}={number}")
    if kubelet.cpu_cfs_quota is not None:
        flags.append(f"--cpu-cfs-quota={str(kubelet.cpu_cfs_quota).lower()}")
    return flags


def write_taint(taint: Taint) -> str:
    """Write a taint in the syntax of the kubelet's flag."""
    if not taint.value:
        return f"{taint.key}:{taint.effect}"
    return f"{taint.key}={taint.value}:{taint.effect}"


def _durations(periods: Mapping[str, timedelta]) -> dict[str, str]:
    return {key: write_duration(period) for key, period in periods.items()}


def _pairs(values: Mapping[str, str], sign: str = "=") -> str:
    return ",".join(f"{key}{sign}{values[key]}" for key in sorted(values))


def _is_reserved(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    return any(domain == each or domain.endswith(f".{each}") for each in _RESERVED_DOMAINS)


class MimePart(Struct, frozen=True):
    """A MIME part of user data."""

    content_type: str
    text: str
    headers: tuple[str, ...] = ()
    """Headers other than Content-Type, as written."""


def is_mime(user_data: str) -> bool:
    """Say whether user data is MIME multipart."""
    return user_data.lstrip().startswith(_MIME_STARTS)


def read_parts(user_data: str) -> list[MimePart]:
    """Split MIME user data into its parts; raise UserDataInvalid."""
    text = user_data.lstrip().replace("\r\n", "\n")
    head, blank, body = text.partition("\n\n")
    boundary = _BOUNDARY_OF.search(head)
    if boundary is None or not blank:
        raise UserDataInvalid("it begins as MIME, but names no boundary of its parts")
    mark = f"--{boundary[1] or boundary[2]}"
    # The line break before a boundary is not part of the text.
    chunks = re.split(rf"(?:^|\n){re.escape(mark)}", body)
    if not any(each.startswith("--") for each in chunks[1:]):
        raise UserDataInvalid(f"the part that begins with `{mark}` has no end `{mark}--`")
    parts = []
    for chunk in chunks[1:]:
        if chunk.startswith("--"):
            break
        parts.append(_read_part(chunk))
    return parts


def write_parts(parts: Iterable[MimePart]) -> str:
    """Join parts into one MIME multipart document."""
    text = _MIME_HEAD
    for part in parts:
        headers = "".join(f"{each}\n" for each in part.headers)
        text += f"--{_BOUNDARY}\n{headers}Content-Type: {part.content_type}\n\n{part.text}\n"
    return f"{text}--{_BOUNDARY}--"


def _read_part(chunk: str) -> MimePart:
    head, _, text = chunk.lstrip("\n").partition("\n\n")
    content_type, others = "text/plain", []
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-type":
            content_type = value.strip()
        elif line.strip():
            others.append(line.strip())
    return MimePart(content_type, text, tuple(others))
