"""Which pods of a terminating node to evict next, and whether it is drained and detached."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.changes import Changes, Count, about_node, listed
from karpy.core.lifecycle.conditions import (
    DISRUPTION_REASON,
    DRAINED,
    VOLUMES_DETACHED,
    changed,
    is_decided,
    with_false,
    with_true,
    with_unknown,
)
from karpy.core.lifecycle.eviction import (
    Eviction,
    drain_failed_notice,
    is_past_threshold,
    protection_of,
)
from karpy.model.labels import DO_NOT_DISRUPT, NODE_POOL
from karpy.model.notices import Notice
from karpy.model.pods import Pod
from karpy.model.pools import DisruptionReason
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.resources import CPU, MEMORY
from karpy.model.storage import VolumeAttachment

LEAST_DRAIN: Final = timedelta(seconds=5)
REQUEUE_PERIOD: Final = timedelta(seconds=1)
_DRAINING: Final = "Draining"
_AWAITING: Final = "AwaitingVolumeDetachment"
_GRACE_ELAPSED: Final = "TerminationGracePeriodElapsed"
_PLANNED: Final = frozenset({DisruptionReason.UNDERUTILIZED.value, DisruptionReason.DRIFTED.value})
"""Disruption reasons whose commands plan just enough room for the evicted pods on other nodes."""
_SIZES: Final = (CPU, MEMORY)
_WAVES: Final = (
    (timedelta(seconds=1), 1 / 4),
    (timedelta(seconds=2), 1 / 8),
    (timedelta(seconds=3), 1 / 16),
)
"""Until this time after its start, a drain evicts only pods that request this share of the node."""


class Drain(Struct, frozen=True, gc=False):
    """How far the drain of a node is."""

    changes: Changes
    evictions: tuple[Eviction, ...] = ()
    """Pods to evict now, once the node is tainted."""
    is_done: bool = False


class DrainingNode(Struct, frozen=True, gc=False):
    """A node being drained, and the pods on it."""

    node: NodeRecord
    claim: ClaimRecord | None = None
    pods: tuple[Pod, ...] = ()
    deadline: datetime | None = None
    """By when all pods must be gone; None is no deadline."""
    refused: Mapping[str, str] = {}
    """Why the last eviction request was refused, by UID of the pod."""


def drain(draining: DrainingNode, now: datetime) -> Drain:
    """Return the pods to evict now, and Drained with a message that names the blocking pods."""
    waiting = [each for each in draining.pods if each.is_waited_for(now)]
    if not waiting:
        return _emptied(draining, now)
    blockers = find_blockers(waiting, draining.refused, now)
    why = f"{len(waiting)} pods are waiting to be evicted"
    message = _DRAINING
    if blockers:
        # Differs: the message about a drain in progress: Karpenter reports how many pods are left;
        # Karpy also names the pods that block the drain.
        why += f", blocked by {listed(blockers)}"
        message += f", blocked by {listed(blockers)}"
    claim = draining.claim
    if claim is not None:
        claim = with_unknown(claim, DRAINED, _DRAINING, message, now)
    notice = drain_failed_notice(draining.node, why, *blockers)
    changes = Changes(claim, notices=(notice,), requeue_after=REQUEUE_PERIOD)
    return Drain(changes, _evictions_due(draining, waiting, now))


def find_blockers(
    waiting: Iterable[Pod], refused: Mapping[str, str], now: datetime
) -> tuple[str, ...]:
    """Name the pods that block a drain, each with the reason, in the order of their names."""
    named = sorted((pod.key, _why_blocked(pod, refused, now)) for pod in waiting)
    return tuple(f"{key} ({why})" for key, why in named if why)


def first_tier(waiting: Sequence[Pod]) -> list[Pod]:
    """Return the pods to evict first: non-critical before critical, daemons last among each."""
    ranks = [(pod.disruption.is_critical, pod.is_daemon) for pod in waiting]
    lowest = min(ranks, default=None)
    return [pod for pod, rank in zip(waiting, ranks, strict=True) if rank == lowest]


def _evictions_due(
    draining: DrainingNode, waiting: Sequence[Pod], now: datetime
) -> tuple[Eviction, ...]:
    deadline = draining.deadline
    late = [
        pod for pod in waiting if deadline is not None and is_past_threshold(pod, deadline, now)
    ]
    rest = [pod for pod in waiting if pod not in late]
    chosen = (*late, *_first_wave(draining, first_tier(rest), now))
    node = draining.node
    # The eviction queue keeps this order, so that the largest pods are rescheduled first.
    chosen = tuple(sorted(chosen, key=lambda pod: (-_share_of(pod, node), pod.key)))
    return tuple(Eviction(pod.namespace, pod.name, pod.uid, deadline=deadline) for pod in chosen)


# Differs: draining a consolidated or drifted node: Karpenter evicts all pods at once, so that small
# pods take the room that was planned for large ones, which then need new nodes; Karpy evicts the
# large pods of all nodes first.
def _first_wave(draining: DrainingNode, pods: Sequence[Pod], now: datetime) -> Sequence[Pod]:
    """Return the pods that are large enough to be evicted by now."""
    claim = draining.claim
    reason = None if claim is None else claim.conditions.get(DISRUPTION_REASON)
    if claim is None or reason is None or not reason.is_true or reason.reason not in _PLANNED:
        return pods
    is_begun = claim.conditions.get(DRAINED) is not None and not is_decided(claim, DRAINED)
    age = now - changed(claim, DRAINED) if is_begun else timedelta()
    least = next((share for until, share in _WAVES if age < until), 0.0)
    return [pod for pod in pods if _share_of(pod, draining.node) >= least]


def _share_of(pod: Pod, node: NodeRecord) -> float:
    """Return the larger of the shares of CPU and memory of its node that a pod requests."""
    shares = [pod.requests.get(key, 0) / (node.allocatable.get(key, 0) or 1) for key in _SIZES]
    return max(shares)


def _emptied(draining: DrainingNode, now: datetime) -> Drain:
    claim = draining.claim
    if claim is None:
        return Drain(Changes(), is_done=True)
    if claim.conditions.is_true(DRAINED):
        return Drain(Changes(claim), is_done=True)
    if claim.conditions.get(DRAINED) is None or is_decided(claim, DRAINED):
        claim = with_unknown(claim, DRAINED, _DRAINING, _DRAINING, now)
    # A pod that was bound a moment ago may not be in the cache yet.
    if now - changed(claim, DRAINED) < LEAST_DRAIN:
        return Drain(Changes(claim, requeue_after=REQUEUE_PERIOD))
    pool = draining.node.meta.labels.get(NODE_POOL, "")
    counts = (Count("nodes_drained_total", {"nodepool": pool}),)
    return Drain(Changes(with_true(claim, DRAINED, now), counts=counts), is_done=True)


def _why_blocked(pod: Pod, refused: Mapping[str, str], now: datetime) -> str:
    if pod.deleted is not None:
        return "still there after its grace period" if now > pod.deleted else ""
    if protection_of(pod, now).is_active:
        return DO_NOT_DISRUPT
    return refused.get(pod.uid, "")


class Detachment(Struct, frozen=True, gc=False):
    """Whether the volumes of a node are detached, or the wait for them is over."""

    changes: Changes
    is_done: bool = False


def find_pending(
    attachments: Iterable[VolumeAttachment],
    pods: Iterable[Pod],
    volumes: Mapping[tuple[str, str], str],
    now: datetime,
) -> tuple[str, ...]:
    """
    Name the attachments to wait for: all except those of pods that a drain leaves on the node.

    `volumes` maps namespace and name of a PersistentVolumeClaim to its PersistentVolume.
    """
    kept = {
        volumes.get((pod.namespace, volume.claim_of(pod.name)))
        for pod in pods
        if not pod.is_drainable(now)
        for volume in pod.rules.volumes
    }
    return tuple(sorted(each.name for each in attachments if each.volume not in {"", *kept}))


def await_detachment(draining: DrainingNode, pending: Sequence[str], now: datetime) -> Detachment:
    """Wait until all volumes are detached and can be attached elsewhere, or until the deadline."""
    claim, deadline = draining.claim, draining.deadline
    if not pending:
        if claim is not None:
            claim = with_true(claim, VOLUMES_DETACHED, now)
        return Detachment(Changes(claim), is_done=True)
    if deadline is not None and now >= deadline:
        if claim is not None:
            claim = with_false(claim, VOLUMES_DETACHED, _GRACE_ELAPSED, _GRACE_ELAPSED, now)
        return Detachment(Changes(claim), is_done=True)
    if claim is not None:
        claim = with_unknown(claim, VOLUMES_DETACHED, _AWAITING, _AWAITING, now)
    node = draining.node
    notice = Notice(
        about_node(node),
        _AWAITING,
        f"Awaiting deletion of bound volumeattachments ({listed(tuple(pending))})",
        same_as=(node.name,),
    )
    return Detachment(Changes(claim, notices=(notice,), requeue_after=REQUEUE_PERIOD))
