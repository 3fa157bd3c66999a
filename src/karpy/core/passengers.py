"""Pods that ride along in a decision, and pods that are on their way and need none."""

from collections.abc import Mapping

from msgspec.structs import replace

from karpy.model.census import census_of, exchange, uncounted
from karpy.model.pods import DAEMON_SET, NODE, Pod
from karpy.model.resources import Resources, fits
from karpy.model.snapshot import Snapshot


# Differs: Karpenter waits until kube-scheduler has given up on each single pod. Where hundreds come
# at once that takes many seconds, and nodes are bought for the first of them that all of them
# together would not need. Nodes that are there come first, as for everybody else.
def with_passengers(snapshot: Snapshot) -> Snapshot:
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
def with_expected(snapshot: Snapshot, places: Mapping[str, str]) -> Snapshot:
    """
    Take pods for bound that are about to get to a node; `places` has their claims, by key.

    Who was to go where others are by now is not: as soon as there is no room left, it waits again.
    """
    if not places:
        return snapshot
    claims = set(places.values())
    nodes = {
        node.claim: node for node in snapshot.nodes if node.claim in claims and not node.is_deleting
    }
    room = {node.name: {**node.allocatable} for node in nodes.values()}
    census, waiting = census_of(snapshot.pods), uncounted(snapshot.pods)
    if census is not None:
        for name, left in room.items():
            _take(left, census.requests.get(name, {}))
    for pod in waiting:
        if pod.node_name in room and not pod.is_terminal:
            _take(room[pod.node_name], pod.requests)
    going: dict[int, Pod] = {}
    for pod in waiting:
        if pod.node_name or not pod.is_active:
            continue
        node = nodes.get(places.get(pod.key, ""))
        if node is not None and fits(pod.requests, room[node.name]):
            _take(room[node.name], pod.requests)
            going[id(pod)] = replace(pod, node_name=node.name, is_unschedulable=False)
    return replace(snapshot, pods=exchange(snapshot.pods, going)) if going else snapshot


def _take(room: dict[str, int], requests: Resources) -> None:
    for name, amount in requests.items():
        if name in room:
            room[name] -= amount
