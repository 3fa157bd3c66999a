"""Pods that are placed along with others, before kube-scheduler has looked at them."""

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
