"""Pods that ride along in a decision, and pods that are on their way and need none."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.model.census import census_of, exchange, uncounted
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, NODE, Pod
from karpy.model.records import ClaimRecord
from karpy.model.resources import Resources, fits
from karpy.model.snapshot import Snapshot

ROUND: Final = timedelta(seconds=2)
"""NodeClaims of one decision are made within that."""
OPENING_TIME: Final = timedelta(seconds=10)
"""Who has lost a place waits so long for other nodes to open before new ones are bought."""


# Differs: Karpenter waits until kube-scheduler has given up on each single pod. Where hundreds come
# at once that takes many seconds, and nodes are bought for the first of them that all of them
# together would not need. Nodes that are there come first, as for everybody else.
def with_untried(snapshot: Snapshot) -> Snapshot:
    """Take pods along that are still untried, if anybody waits for a node at all."""
    waiting = uncounted(snapshot.pods)
    if not any(pod.is_untried for pod in waiting):
        return snapshot
    if not any(pod.is_provisionable for pod in waiting):
        return snapshot
    riding = {id(pod): replace(pod, is_unschedulable=True) for pod in waiting if _rides(pod)}
    return replace(snapshot, pods=exchange(snapshot.pods, riding))


def _rides(pod: Pod) -> bool:
    is_owned = pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE)
    return pod.is_untried and pod.is_active and not pod.node_name and not is_owned


# Differs: Karpenter decides about pods again and again until they are bound. It does not find the
# same places twice, and buys nodes for those that the second order leaves out.
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
