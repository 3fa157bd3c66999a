"""Where pods are expected: which count as bound, and which are given the name of their node."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.model.census import census_of, exchange, uncounted
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, NODE, Pod
from karpy.model.records import ClaimRecord
from karpy.model.resources import CPU, MEMORY, Resources, fits
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

ROUND: Final = timedelta(seconds=2)
"""NodeClaims of one decision are made within that."""
OPENING_TIME: Final = timedelta(seconds=10)
"""Who has lost a place waits so long for other nodes to open before new ones are bought."""


# Differs: hundreds of pods that are created at once: Karpenter waits until kube-scheduler has tried
# each pod, and launches nodes for the first ones that all of them together would not need; Karpy
# decides about all of them as soon as one is unschedulable.
def with_untried(snapshot: Snapshot) -> Snapshot:
    """Count untried pods as pending as soon as one pod waits for a node."""
    waiting = uncounted(snapshot.pods)
    if not any(pod.is_untried for pod in waiting):
        return snapshot
    if not any(pod.is_provisionable for pod in waiting):
        return snapshot
    return with_all_untried(snapshot)


# Differs: a pod of a drained node that was created a moment ago: Karpenter does not count it until
# kube-scheduler has tried it, and gives its room to pods of the next node; Karpy counts it at once.
def with_all_untried(snapshot: Snapshot) -> Snapshot:
    """Count untried pods as pending."""
    riding = {
        id(pod): replace(pod, is_unschedulable=True)
        for pod in uncounted(snapshot.pods)
        if _rides(pod)
    }
    return replace(snapshot, pods=exchange(snapshot.pods, riding)) if riding else snapshot


def _rides(pod: Pod) -> bool:
    is_owned = pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE)
    return pod.is_untried and pod.is_active and not pod.node_name and not is_owned


# Differs: pods that have a place on a node that is not ready yet: Karpenter decides about them
# again until they are bound, may find other places, and launches nodes for the rest; Karpy keeps
# the places of the first decision.
def with_nominated(
    snapshot: Snapshot, places: Mapping[str, str], settling: Collection[str] = ()
) -> Snapshot:
    """
    Take pods for bound that are about to get to a node; `places` has their claims, by key.

    Who was to go where others are by now is not, and waits again. But as long as nodes are about to
    open that came with its own (whose claim is then in `settling`), it is left alone: there may be
    room on those, which the others have left.
    """
    if not places:
        return snapshot
    claims = set(places.values())
    nodes = {
        node.claim: node for node in snapshot.nodes if node.claim in claims and not node.is_deleting
    }
    room = _room_on(nodes.values(), snapshot)
    going: dict[int, Pod] = {}
    for pod in uncounted(snapshot.pods):
        if pod.node_name or not pod.is_active:
            continue
        node = nodes.get(places.get(pod.key, ""))
        if node is None:
            continue
        if fits(pod.requests, room[node.name]):
            _take(room[node.name], pod.requests)
            going[id(pod)] = replace(
                pod, node_name=node.name, is_unschedulable=False, is_expected=True
            )
        elif node.claim in settling:
            going[id(pod)] = replace(
                pod, is_unschedulable=False, is_untried=False, is_expected=True
            )
    return replace(snapshot, pods=exchange(snapshot.pods, going)) if going else snapshot


def settling(claims: Collection[ClaimRecord], now: datetime) -> frozenset[str]:
    """Return the claims of which others, made together with them, are about to open."""
    made = {each.name: each.meta.created for each in claims if not each.meta.is_deleting}
    closed = {each.name for each in claims if not each.conditions.is_true(INITIALIZED)}
    opening = [when for name, when in made.items() if when and name in closed]
    first = min((when for when in opening if now < when + OPENING_TIME), default=None)
    if first is None:
        return frozenset()
    return frozenset(name for name, when in made.items() if when and when + ROUND >= first)


def _room_on(nodes: Iterable[Node], snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """Return what is free on nodes, by name."""
    room = {node.name: {**node.allocatable} for node in nodes}
    census = census_of(snapshot.pods)
    if census is not None:
        for name, left in room.items():
            _take(left, census.requests.get(name, {}))
    for pod in uncounted(snapshot.pods):
        if pod.node_name in room and not pod.is_terminal:
            _take(room[pod.node_name], pod.requests)
    return room


def _take(room: dict[str, int], requests: Resources) -> None:
    for name, amount in requests.items():
        if name in room:
            room[name] -= amount


PATIENCE: Final = timedelta(seconds=30)
"""Within that kube-scheduler has tried a pod on its nominated node, or given that up."""
_SEVERAL: Final = 2
NOMINATED_MAX: Final = 3000
"""A client with the usual 200 requests per second takes 14 seconds for so many."""


# Differs: where pods go when new nodes are ready: Karpenter leaves it to kube-scheduler; Karpy may
# nominate the planned node in the pod's status, so that pods of other sizes do not take its room.
def pods_to_nominate(snapshot: Snapshot, verdict: Verdict) -> frozenset[str]:
    """
    Return the keys of the pods that should know their node.

    kube-scheduler puts a pod where most is free, so that pods take room that was made for others.
    All pods of new nodes keep to their places, if there are several nodes and pods of several
    sizes: if there are very many, the largest, which are the hardest to place elsewhere.
    """
    pods = {pod.key: pod for pod in snapshot.pods}
    launches = [each for each in verdict.launches if each.options and pods.keys() >= {*each.pods}]
    planned = {key: _size(pods[key]) for launch in launches for key in launch.pods}
    if len(launches) < _SEVERAL or len({*planned.values()}) < _SEVERAL:
        return frozenset()
    if len(planned) <= NOMINATED_MAX:
        return frozenset(planned)
    cpu, memory = (sum(column) or 1 for column in zip(*planned.values(), strict=True))
    shares = {key: size[0] / cpu + size[1] / memory for key, size in planned.items()}
    return frozenset(sorted(shares, key=lambda key: (-shares[key], key))[:NOMINATED_MAX])


def _size(pod: Pod) -> tuple[int, int]:
    return pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)


def without_node(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that wait without the name of a node."""
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
