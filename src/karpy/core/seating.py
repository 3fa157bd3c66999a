"""Which pods are told the node that was made for them, and when they are free to go elsewhere."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.resources import CPU, MEMORY
from karpy.model.settings import PodNomination
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict

PATIENCE: Final = timedelta(seconds=30)
"""Within that kube-scheduler has tried a pod on the node that it was told, or given that up."""
NODES_MIN: Final = 10
"""With fewer nodes there is little to save."""
TOLD_MAX: Final = 3000
"""To tell more pods takes too long: the first would have forgotten before the last are told."""
MOST: Final = 0.9
"""The largest pods that make up so much of all requests are most; the rest fits in anywhere."""
LARGEST: Final = 0.35
"""Those that make up so much are the hardest to place once others have taken their room."""
FEW_SHARE_MAX: Final = 0.5
"""More than that takes long to tell, for what it saves."""
APART_MIN: Final = 0.9
"""If so many pods of one size are among themselves, they have nodes of their own."""


# Differs: Karpenter leaves it to kube-scheduler where pods go.
def pods_to_nominate(snapshot: Snapshot, verdict: Verdict, seats: PodNomination) -> frozenset[str]:
    """
    Return the keys of pods that should know their node.

    kube-scheduler puts a pod where most is free. Where pods of one size have nodes of their own,
    others take places there that fit them badly. So the others are told: when they keep to their
    nodes, only those are left for the rest. Where pods mix, small ones take what was made for large
    ones, which fit nowhere else. There the largest are told; all but the smallest, for whoever
    would rather wait than pay (`ALWAYS`). Pods that are all of one size can go where they like.
    """
    pods = {pod.key: pod for pod in snapshot.pods}
    launches = [each for each in verdict.launches if each.options and pods.keys() >= {*each.pods}]
    planned = {key: _size(pods[key]) for launch in launches for key in launch.pods}
    sizes = Counter(planned.values())
    if len(launches) < NODES_MIN or len(sizes) == 1:
        return frozenset()
    apart = _size_apart(launches, planned)
    others = _of_sizes(planned, sizes.keys() - {apart})
    if seats is PodNomination.ALWAYS:
        told = min(others, _of_sizes(planned, _large(sizes, MOST)), key=len)
        return told if len(told) <= TOLD_MAX else frozenset()
    few = min(TOLD_MAX, FEW_SHARE_MAX * len(planned))
    told = others if len(others) <= few else _of_sizes(planned, _large(sizes, LARGEST))
    return told if len(told) <= few else frozenset()


_Size = tuple[int, int]
"""CPU and memory."""


def _size(pod: Pod) -> _Size:
    return pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)


def _of_sizes(planned: Mapping[str, _Size], sizes: Collection[_Size]) -> frozenset[str]:
    return frozenset(key for key, size in planned.items() if size in sizes)


def _large(sizes: Counter[_Size], most: float) -> set[_Size]:
    """Return the largest sizes that make up a given share of all requests."""
    cpu = sum(size[0] * count for size, count in sizes.items()) or 1
    memory = sum(size[1] * count for size, count in sizes.items()) or 1
    weights = {size: (size[0] / cpu + size[1] / memory) / 2 for size in sizes}
    large: set[_Size] = set()
    share = 0.0
    for size in sorted(sizes, key=lambda each: (-weights[each], each)):
        if share >= most:
            break
        large.add(size)
        share += weights[size] * sizes[size]
    return large


def _size_apart(launches: Sequence[Launch], sizes: Mapping[str, _Size]) -> _Size | None:
    """Return the size of which most pods have nodes of their own, if there is one."""
    apart = Counter[_Size]()
    for launch in launches:
        its = {sizes[key] for key in launch.pods}
        if len(its) == 1:
            apart[its.pop()] += len(launch.pods)
    all_of = Counter(sizes.values())
    for size, count in apart.most_common():
        if count >= APART_MIN * all_of[size]:
            return size
    return None


def without_node(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that wait and that nobody has told a node yet."""
    return [each for each in pods if _is_free(each)]


def _is_free(pod: Pod) -> bool:
    return pod.is_active and not pod.node_name and not pod.nominated_node


def is_in_vain(claim: ClaimRecord | None, *, is_emptying: bool, now: datetime) -> bool:
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
