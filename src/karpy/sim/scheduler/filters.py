"""Filters on a node and the pods on it, in the order of kube-scheduler."""

from karpy.codec.fields import JsonObject
from karpy.sim.scheduler.nodes import NodeInfo
from karpy.sim.scheduler.refusals import (
    CORDONED,
    DISK_TAKEN,
    PORTS_TAKEN,
    TAINTED,
    UNWANTED,
    SchedulerRefusal,
    short_of,
)
from karpy.sim.scheduler.wants import Wants


def why_unfit(wants: Wants, node: NodeInfo) -> SchedulerRefusal | None:
    """Return why a node refuses such pods even if empty; None if it does not."""
    if node.is_cordoned and not wants.tolerates_cordon:
        return CORDONED
    if node.taints and not all(map(wants.tolerates, node.taints)):
        return TAINTED
    if not wants.choice.allows(node.labels, node.name):
        return UNWANTED
    return None


def why_full(wants: Wants, node: NodeInfo) -> SchedulerRefusal | None:
    """Return which resources or ports a node lacks for such pods; None if it has room."""
    if wants.ports and not node.has_free(wants.ports):
        return PORTS_TAKEN
    if (
        len(node.pods) >= node.pods_max
        or wants.cpu > node.cpu - node.used_cpu
        or wants.memory > node.memory - node.used_memory
        or wants.others
    ):
        refusal = _why_short(wants, node)
        if refusal is not None:
            return refusal
    if wants.disks and _is_disk_taken(wants, node):
        return DISK_TAKEN
    return None


def has_room(wants: Wants, node: NodeInfo) -> bool:
    """Say whether a node has room; cheaper than `why_full`, which names what is lacking."""
    if (
        len(node.pods) >= node.pods_max
        or (wants.cpu and wants.cpu > node.cpu - node.used_cpu)
        or (wants.memory and wants.memory > node.memory - node.used_memory)
    ):
        return False
    is_simple = not (wants.ports or wants.others or wants.disks)
    return is_simple or why_full(wants, node) is None


def fits_empty(wants: Wants, node: NodeInfo) -> bool:
    """Say whether a node would be large enough if it were empty."""
    return node.pods_max > 0 and all(
        amount <= node.allocatable.get(name, 0) for name, amount in wants.requests.items()
    )


def _why_short(wants: Wants, node: NodeInfo) -> SchedulerRefusal | None:
    reasons = ["Too many pods"] if len(node.pods) >= node.pods_max else []
    is_final = False
    for name, amount, size, used in (
        ("cpu", wants.cpu, node.cpu, node.used_cpu),
        ("memory", wants.memory, node.memory, node.used_memory),
        *(
            (name, amount, node.allocatable.get(name, 0), node.used.get(name, 0))
            for name, amount in wants.others
        ),
    ):
        if amount and amount > size - used:
            reasons.append(f"Insufficient {name}")
            is_final = is_final or amount > size
    return short_of(tuple(reasons), is_final=is_final) if reasons else None


def _is_disk_taken(wants: Wants, node: NodeInfo) -> bool:
    return any(
        kind == other_kind and _is_same_disk(kind, disk, other)
        for kind, disk in wants.disks
        for pod in node.pods.values()
        for other_kind, other in pod.wants.disks
    )


def _is_same_disk(kind: str, disk: JsonObject, other: JsonObject) -> bool:
    """Say whether two pods conflict over a disk: most kinds can be shared read-only."""
    is_read_only = bool(disk.get("readOnly")) and bool(other.get("readOnly"))
    match kind:
        case "awsElasticBlockStore":
            return disk.get("volumeID") == other.get("volumeID")
        case "gcePersistentDisk":
            return disk.get("pdName") == other.get("pdName") and not is_read_only
        case "iscsi":
            return disk.get("iqn") == other.get("iqn") and not is_read_only
    is_same = not set(disk.get("monitors") or ()).isdisjoint(other.get("monitors") or ())
    is_same = is_same and disk.get("pool", "rbd") == other.get("pool", "rbd")
    return is_same and disk.get("image") == other.get("image") and not is_read_only
