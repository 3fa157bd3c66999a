"""Which pods are told the node that was made for them, and when they are free to go elsewhere."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.model.instances import allocatable
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.resources import CPU, MEMORY, Resources
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict

PATIENCE: Final = timedelta(seconds=10)
"""Within that kube-scheduler has tried a pod on the node that it was told, or given that up."""
NODES_MAX: Final = 100
LEFT_OVER_PARTS: Final = 50
"""If more than one of so many pods would be left over, they are told their nodes."""


def needs_seats(snapshot: Snapshot, verdict: Verdict) -> bool:
    """
    Say whether pods would be left over if all went where kube-scheduler likes.

    It puts a pod where most is free. Often that does no harm; but small pods may then take what
    was made for large ones. Constraints other than room are left aside, and of many nodes only some
    are looked at, with the pods that were planned for them.
    """
    launches = verdict.launches[:: len(verdict.launches) // NODES_MAX + 1]
    pods = {pod.key: pod for pod in snapshot.pods}
    catalog: dict[tuple[str, str], Resources] = {}
    for pool in {each.pool for each in launches}:
        for type_ in snapshot.catalog.types_for(pool):
            catalog[pool, type_.name] = allocatable(type_.capacity, type_.overhead)
    rooms, guests = [], []
    for launch in launches:
        its = [pods[key] for key in launch.pods if key in pods]
        if len(its) < len(launch.pods) or not launch.options:
            continue
        room = catalog[launch.pool, launch.options[0].instance_type]
        rooms.append(_Room(*(_left_for(its, launch, room, name) for name in (CPU, MEMORY))))
        guests += its
    left_over = sum(not _sit_down(pod, rooms) for pod in sorted(guests, key=_turn))
    return left_over * LEFT_OVER_PARTS > len(guests)


class _Room:
    """What is free on a node, and what of it there was at first."""

    __slots__ = ("cpu", "cpu_share", "memory", "memory_share")

    def __init__(self, cpu: int, memory: int) -> None:
        self.cpu, self.memory = cpu, memory
        self.cpu_share, self.memory_share = 1 / max(cpu, 1), 1 / max(memory, 1)


def _left_for(pods: Sequence[Pod], launch: Launch, room: Resources, name: str) -> int:
    """Return what a node has for pods; what its claim requests beyond theirs is for daemons."""
    asked = sum(pod.requests.get(name, 0) for pod in pods)
    return room.get(name, 0) - (launch.resources.get(name, 0) - asked)


def _sit_down(pod: Pod, rooms: Sequence[_Room]) -> bool:
    """Put a pod where most is free afterwards; say whether it fits anywhere."""
    cpu, memory = pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)
    most, best = -1.0, None
    for room in rooms:
        cpu_left, memory_left = room.cpu - cpu, room.memory - memory
        if cpu_left >= 0 and memory_left >= 0:
            free = cpu_left * room.cpu_share + memory_left * room.memory_share
            if free > most:
                most, best = free, room
    if best is None:
        return False
    best.cpu -= cpu
    best.memory -= memory
    return True


def _turn(pod: Pod) -> tuple[datetime, str]:
    """kube-scheduler tries pods as they came; of those that came together, nobody knows."""
    return pod.created, pod.uid


def to_seat(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that wait and that nobody has told a node yet."""
    return [each for each in pods if _is_free(each)]


def _is_free(pod: Pod) -> bool:
    return pod.is_active and not pod.node_name and not pod.nominated_node


def is_stood_up(claim: ClaimRecord | None, *, is_emptying: bool, now: datetime) -> bool:
    """
    Say whether a pod has been told its node in vain.

    `claim` is that of the node, None if the node is not there. kube-scheduler itself tells pods a
    node on which others must end first (`is_emptying`); those wait.
    """
    if claim is None:
        return True
    ready = claim.conditions.get(INITIALIZED)
    is_settled = ready is not None and ready.is_true and now >= ready.changed + PATIENCE
    return is_settled and not is_emptying
