"""Pods that ride along in a decision, and pods that are on their way and need none."""

from collections.abc import Mapping

from msgspec.structs import replace

from karpy.model.pods import DAEMON_SET, NODE, Pod
from karpy.model.snapshot import Snapshot


# Differs: Karpenter waits until kube-scheduler has given up on each single pod. Where hundreds come
# at once that takes many seconds, and nodes are bought for the first of them that all of them
# together would not need. Nodes that are there come first, as for everybody else.
def with_passengers(snapshot: Snapshot) -> Snapshot:
    """Take pods along that are still untried, if anybody waits for a node at all."""
    if not any(pod.is_untried for pod in snapshot.pods):
        return snapshot
    if not any(pod.is_provisionable for pod in snapshot.pods):
        return snapshot
    pods = (replace(pod, is_unschedulable=True) if _rides(pod) else pod for pod in snapshot.pods)
    return replace(snapshot, pods=tuple(pods))


def _rides(pod: Pod) -> bool:
    is_owned = pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE)
    return pod.is_untried and pod.is_active and not pod.node_name and not is_owned


# Differs: Karpenter decides about pods again and again until they are bound. It does not find the
# same places twice, and buys nodes for those that the second order leaves out.
def with_expected(snapshot: Snapshot, places: Mapping[str, str]) -> Snapshot:
    """Take pods for bound that are about to get to a node; `places` has their claims, by key."""
    if not places:
        return snapshot
    nodes = {
        node.claim: node.name for node in snapshot.nodes if node.claim and not node.is_deleting
    }
    pods = (_expected(pod, nodes.get(places.get(pod.key, ""), "")) for pod in snapshot.pods)
    return replace(snapshot, pods=tuple(pods))


def _expected(pod: Pod, node: str) -> Pod:
    if not node or pod.node_name or not pod.is_active:
        return pod
    return replace(pod, node_name=node, is_unschedulable=False)
