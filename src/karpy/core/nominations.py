"""Nominations: which pods count as bound to a planned node, and which ones get its name."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.model.census import census_of, exchange, uncounted, with_more
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, NODE, Pod
from karpy.model.records import ClaimRecord
from karpy.model.resources import CPU, MEMORY, Resources, fits
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

STAND_IN_TIME: Final = timedelta(minutes=5)
"""Longest wait for the successor of a pod: those of lower ordinals must become ready first."""
ROUND: Final = timedelta(seconds=2)
"""All NodeClaims of one decision are created within this time."""
OPENING_TIME: Final = timedelta(seconds=10)
"""A pod whose room was taken waits this long for sibling nodes before new nodes are launched."""


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
    untried = {
        id(pod): replace(pod, is_unschedulable=True)
        for pod in uncounted(snapshot.pods)
        if _needs_node(pod)
    }
    return replace(snapshot, pods=exchange(snapshot.pods, untried)) if untried else snapshot


def _needs_node(pod: Pod) -> bool:
    is_owned = pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE)
    return pod.is_untried and pod.is_active and not pod.node_name and not is_owned


# Differs: pods that have a place on a node that is not ready yet: Karpenter decides about them
# again until they are bound, may find other places, and launches nodes for the rest; Karpy keeps
# the places of the first decision.
def with_nominated(
    snapshot: Snapshot, places: Mapping[str, str], settling: Collection[str] = ()
) -> Snapshot:
    """
    Count pods as bound to the nodes that they are nominated to; `places` maps pod keys to claims.

    A pod whose planned room is taken by other pods counts as pending again. While sibling nodes of
    its node are about to open (its claim is then in `settling`), it is left alone instead: the pods
    that took its room have left room there.
    """
    if not places:
        return snapshot
    claims = set(places.values())
    nodes = {
        node.claim: node for node in snapshot.nodes if node.claim in claims and not node.is_deleting
    }
    room = _room_on(nodes.values(), snapshot)
    expected: dict[int, Pod] = {}
    for pod in uncounted(snapshot.pods):
        if pod.node_name or not pod.is_active:
            continue
        node = nodes.get(places.get(pod.key, ""))
        if node is None:
            continue
        if fits(pod.requests, room[node.name]):
            _take(room[node.name], pod.requests)
            expected[id(pod)] = replace(
                pod, node_name=node.name, is_unschedulable=False, is_expected=True
            )
        elif node.claim in settling:
            expected[id(pod)] = replace(
                pod, is_unschedulable=False, is_untried=False, is_expected=True
            )
    return replace(snapshot, pods=exchange(snapshot.pods, expected)) if expected else snapshot


class Predecessor(Struct, frozen=True, gc=False):
    """A pod whose StatefulSet creates its successor, of the same name, only after it has ended."""

    pod: Pod
    claims: tuple[str, ...]
    """NodeClaims launched for pods of the StatefulSet, the one planned for the successor first."""
    ended: datetime | None = None
    """None while the pod exists."""


# Differs: a pod of a StatefulSet whose node is replaced, from its end until its successor is
# created: in Karpenter nothing stands for it, so that the node launched for it counts as empty and
# may be deleted; Karpy keeps its place for up to five minutes.
def with_stand_ins(snapshot: Snapshot, predecessors: Iterable[Predecessor]) -> Snapshot:
    """
    Add a pod on its planned node for each successor that does not exist yet.

    kube-scheduler may have bound another pod of the StatefulSet there: the place of that pod counts
    instead. The node counts as nominated. A successor for which there is no room has no stand-in.
    """
    ends = [(each, each.ended + STAND_IN_TIME) for each in predecessors if each.ended is not None]
    missing = {each.pod.key: (each, end) for each, end in ends if snapshot.now < end}
    if not missing:
        return snapshot
    claims = {claim for each, _ in missing.values() for claim in each.claims}
    nodes = {
        node.claim: node for node in snapshot.nodes if node.claim in claims and not node.is_deleting
    }
    room = _room_on(nodes.values(), snapshot)
    stand_ins: list[Pod] = []
    for _, (each, end) in sorted(missing.items()):
        planned = (nodes[claim] for claim in each.claims if claim in nodes)
        node = next((some for some in planned if fits(each.pod.requests, room[some.name])), None)
        if node is not None:
            _take(room[node.name], each.pod.requests)
            stand_ins.append(_successor_of(each.pod, node))
            nodes[node.claim] = replace(node, nominated_until=max(end, node.nominated_until or end))
    return replace(
        snapshot,
        pods=with_more(snapshot.pods, tuple(stand_ins)),
        nodes=tuple([nodes.get(each.claim, each) for each in snapshot.nodes]),
    )


def _successor_of(pod: Pod, node: Node) -> Pod:
    return replace(
        pod,
        node_name=node.name,
        phase="",
        is_deleting=False,
        is_expected=True,
        bound=None,
        ready=None,
        started=None,
        deleted=None,
    )


def settling(claims: Collection[ClaimRecord], now: datetime) -> frozenset[str]:
    """Return the claims whose siblings, created by the same decision, are about to open."""
    created = {each.name: each.meta.created for each in claims if not each.meta.is_deleting}
    unready = {each.name for each in claims if not each.conditions.is_true(INITIALIZED)}
    opening = [when for name, when in created.items() if when and name in unready]
    first = min((when for when in opening if now < when + OPENING_TIME), default=None)
    if first is None:
        return frozenset()
    return frozenset(name for name, when in created.items() if when and when + ROUND >= first)


def _room_on(nodes: Iterable[Node], snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """Return the free resources of nodes, by name."""
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
"""kube-scheduler tries a pod on its nominated node within this time, or gives up on it."""
_SEVERAL: Final = 2
NOMINATED_MAX: Final = 3000
"""A client with the usual 200 requests per second nominates this many pods in 14 seconds."""


# Differs: where pods go when new nodes are ready: Karpenter leaves it to kube-scheduler; Karpy may
# nominate the planned node in the pod's status, so that pods of other sizes do not take its room.
def pods_to_nominate(snapshot: Snapshot, verdict: Verdict) -> frozenset[str]:
    """
    Return the keys of the pods to nominate in `status.nominatedNodeName`.

    kube-scheduler binds a pod where most is free, so that pods take room that was planned for other
    pods. If pods of several sizes need several new nodes, all of them are nominated; of more than
    `NOMINATED_MAX` pods only the largest, which are the hardest to place elsewhere.
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
    """Return the pods that are neither bound nor nominated."""
    return [each for each in pods if _is_unassigned(each)]


def _is_unassigned(pod: Pod) -> bool:
    return pod.is_active and not pod.node_name and not pod.nominated_node


def is_in_vain(claim: ClaimRecord | None, *, is_emptying: bool, now: datetime) -> bool:
    """
    Say whether the nomination of a pod to a node has had no effect, and should be removed.

    `claim` is the NodeClaim of the node, None if the node does not exist. kube-scheduler itself
    nominates pods to nodes on which other pods must end first (`is_emptying`): these pods wait.
    """
    if claim is None:
        return True
    ready = claim.conditions.get(INITIALIZED)
    is_settled = ready is not None and ready.is_true and now >= ready.changed + PATIENCE
    return is_settled and not is_emptying
