"""What is counted when a claim is given up, and under which labels."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from karpy.core.lifecycle.outcomes import Count
from karpy.model.labels import CAPACITY_TYPE
from karpy.model.pods import DAEMON_SET, NODE, STATEFUL_SET, Pod
from karpy.model.records import ClaimRecord

_NOTHING: Final = timedelta()


def disruption_counts(
    claim: ClaimRecord, reason: str, pods: int | None = None
) -> tuple[Count, ...]:
    """Count a claim that is given up; with `pods`, also those that must move because of it."""
    labels = {
        "reason": reason,
        "nodepool": claim.pool,
        "capacity_type": claim.meta.labels.get(CAPACITY_TYPE, ""),
        "consolidation_policy": "",
        "termination_mode": termination_mode(claim.grace_period),
    }
    claims = Count("nodeclaims_disrupted_total", labels)
    if pods is None:
        return (claims,)
    return claims, Count("pods_disruption_initiated_total", labels, float(pods))


def termination_mode(grace_period: timedelta | None) -> str:
    """Say how a node with this grace period ends."""
    if grace_period is None:
        return "graceful"
    return "eventual" if grace_period > _NOTHING else "forceful"


def count_reschedulable(pods: Iterable[Pod]) -> int:
    """Count the pods that want another node when theirs goes."""
    return sum(is_reschedulable(pod) for pod in pods)


def is_reschedulable(pod: Pod) -> bool:
    """Say whether a pod wants another node when its own goes."""
    if pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE):
        return False
    # A StatefulSet makes the next pod only after this one is gone: it is as good as pending.
    return pod.is_active or (pod.is_deleting and pod.is_owned_by(STATEFUL_SET))
