"""Pods that are about to move anyway: nodes boot for them, or a rollout replaces them."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.model.census import uncounted
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot

SCALE_OUT_TIME: Final = timedelta(minutes=5)
"""A node that is not initialized by then holds up no consolidation."""
PENDING_TIME: Final = timedelta(seconds=30)
"""A pod that no decision has placed by then holds up no consolidation."""
ROLLOUT_TIME: Final = timedelta(minutes=10)
"""A rollout without a new pod for so long is stuck, as Deployments have it by default."""
REPLICA_SET: Final = ("apps/v1", "ReplicaSet")
_TEMPLATE_HASH: Final = "pod-template-hash"


# Differs: Karpenter moves pods of other nodes while nodes for pending pods are on their way, and
# moves them once more when these are there.
def is_scaling_out(snapshot: Snapshot) -> bool:
    """Say whether nodes for pending pods are on their way, or are about to be launched."""
    now = snapshot.now
    booting = {
        node.name
        for node in snapshot.nodes
        if node.claim_record is not None
        and not node.is_deleting
        and node.claim not in snapshot.in_command
        and not node.claim_record.conditions.is_true(INITIALIZED)
        and _is_within(node.claim_record.meta.created, SCALE_OUT_TIME, now)
    }
    for pod in uncounted(snapshot.pods):
        if pod.is_virtual or (pod.node_name and not pod.is_expected):
            continue
        if pod.is_expected and pod.node_name in booting:
            return True
        if (pod.is_provisionable or pod.is_untried) and _is_within(pod.created, PENDING_TIME, now):
            return True
    return False


# Differs: Karpenter consolidates nodes whose pods a rollout is about to replace, so that they are
# evicted for nothing.
def find_rollouts(pods: Iterable[Pod], now: datetime) -> frozenset[str]:
    """Return the UIDs of ReplicaSets whose Deployment has pods of several, a new one among them."""
    newest: dict[tuple[str, str], dict[str, datetime]] = {}
    known: dict[int, tuple[str, str, str] | None] = {}
    for pod in pods:
        if not pod.owners or not pod.is_active:
            continue
        key = id(pod.owners)
        if key not in known:
            known[key] = _replica_set_of(pod)
        found = known[key]
        if found is not None:
            namespace, deployment, uid = found
            sets = newest.setdefault((namespace, deployment), {})
            sets[uid] = max(sets.get(uid, pod.created), pod.created)
    return frozenset(uid for sets in newest.values() if _is_rollout(sets, now) for uid in sets)


def replica_set_uid(pod: Pod) -> str:
    """Return the UID of the ReplicaSet that controls a pod; empty without one."""
    return next(
        (
            owner.uid
            for owner in pod.owners
            if owner.is_controller and (owner.api_version, owner.kind) == REPLICA_SET
        ),
        "",
    )


def _replica_set_of(pod: Pod) -> tuple[str, str, str] | None:
    """Return the namespace, Deployment and ReplicaSet of a pod, if it has a Deployment."""
    digest = pod.labels.get(_TEMPLATE_HASH, "")
    for owner in pod.owners:
        is_set = owner.is_controller and (owner.api_version, owner.kind) == REPLICA_SET
        if is_set and digest and owner.name.endswith(f"-{digest}"):
            return pod.namespace, owner.name.removesuffix(f"-{digest}"), owner.uid
    return None


def _is_rollout(sets: Mapping[str, datetime], now: datetime) -> bool:
    return len(sets) > 1 and _is_within(max(sets.values()), ROLLOUT_TIME, now)


def _is_within(since: datetime | None, span: timedelta, now: datetime) -> bool:
    return since is not None and now - since < span
