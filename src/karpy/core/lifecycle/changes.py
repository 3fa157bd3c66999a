"""The result of a reconcile: objects to write or delete, events, counts, log lines, a requeue."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.kinds import NODE as NODE_KIND
from karpy.model.kinds import NODE_CLAIM, POD
from karpy.model.labels import CAPACITY_TYPE, TERMINATION_FINALIZER
from karpy.model.notices import Notice, Subject
from karpy.model.pods import DAEMON_SET, NODE, STATEFUL_SET, Pod
from karpy.model.records import ClaimRecord, Identity, NodeClassRef, NodeRecord, PoolRecord

_NOTHING: Final = timedelta()
FINALIZER: Final = TERMINATION_FINALIZER
_SHOWN_MAX: Final = 5


class Count(Struct, frozen=True):
    """An increment of a counter, or a value that a histogram takes."""

    metric: str
    """Without its prefix: `nodeclaims_disrupted_total`."""
    labels: Mapping[str, str] = {}
    value: float = 1.0


class Remark(Struct, frozen=True):
    """A line of the log."""

    event: str
    """Constant words: `launched nodeclaim`."""
    fields: Mapping[str, str] = {}
    is_error: bool = False


class Changes(Struct, frozen=True):
    """
    What a reconcile changes; a record that is None stays as it is.

    The writer patches the difference, deletes what is to be deleted, then emits events, counts and
    log lines. The controller reconciles again after `requeue_after` at the latest.
    """

    claim: ClaimRecord | None = None
    node: NodeRecord | None = None
    pool: PoolRecord | None = None
    deletes_claim: bool = False
    deletes_node: bool = False
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()
    remarks: tuple[Remark, ...] = ()
    requeue_after: timedelta | None = None
    has_registered: bool | None = None
    """Whether a node of the pool registered (True) or failed to (False); None if neither yet."""


def joined(first: Changes, then: Changes) -> Changes:
    """Join the changes of two steps, the second of which started from the records of the first."""
    times = [each for each in (first.requeue_after, then.requeue_after) if each is not None]
    return Changes(
        claim=then.claim or first.claim,
        node=then.node or first.node,
        pool=then.pool or first.pool,
        deletes_claim=first.deletes_claim or then.deletes_claim,
        deletes_node=first.deletes_node or then.deletes_node,
        notices=first.notices + then.notices,
        counts=first.counts + then.counts,
        remarks=first.remarks + then.remarks,
        requeue_after=min(times, default=None),
        has_registered=then.has_registered
        if first.has_registered is None
        else first.has_registered,
    )


def disruption_counts(
    claim: ClaimRecord, reason: str, pods: int | None = None
) -> tuple[Count, ...]:
    """Count a disrupted NodeClaim; with `pods`, also the pods that must be rescheduled."""
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
    """Return the termination mode of a node with this grace period."""
    if grace_period is None:
        return "graceful"
    return "eventual" if grace_period > _NOTHING else "forceful"


def count_reschedulable(pods: Iterable[Pod]) -> int:
    """Count the pods that need another node when theirs is deleted."""
    return sum(is_reschedulable(pod) for pod in pods)


def is_reschedulable(pod: Pod) -> bool:
    """Say whether a pod needs another node when its own is deleted."""
    if pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE):
        return False
    # A StatefulSet creates the next pod only after this one is gone: the pod counts as pending.
    return pod.is_active or (pod.is_deleting and pod.is_owned_by(STATEFUL_SET))


def with_finalizer(meta: Identity) -> Identity:
    """Add the finalizer, except to a deleting object: the API server rejects that."""
    if FINALIZER in meta.finalizers or meta.is_deleting:
        return meta
    return replace(meta, finalizers=(*meta.finalizers, FINALIZER))


def without_finalizer(meta: Identity) -> Identity:
    """Remove the finalizer."""
    return replace(meta, finalizers=tuple(each for each in meta.finalizers if each != FINALIZER))


def with_labels(meta: Identity, labels: Mapping[str, str]) -> Identity:
    """Set labels; they replace labels with the same key."""
    return replace(meta, labels={**meta.labels, **labels})


def with_annotations(meta: Identity, annotations: Mapping[str, str]) -> Identity:
    """Set annotations; they replace annotations with the same key."""
    return replace(meta, annotations={**meta.annotations, **annotations})


def class_label(node_class: NodeClassRef) -> str:
    """Return the key of the label that names the node class of a claim or node."""
    return f"{node_class.group}/{node_class.kind.lower()}"


def about_claim(claim: ClaimRecord) -> Subject:
    """Return the subject of an event about a NodeClaim."""
    return Subject(NODE_CLAIM, claim.name, uid=claim.meta.uid)


def about_node(node: NodeRecord) -> Subject:
    """Return the subject of an event about a Node."""
    return Subject(NODE_KIND, node.name, uid=node.meta.uid)


def about_pod(pod: Pod) -> Subject:
    """Return the subject of an event about a Pod."""
    return Subject(POD, pod.name, pod.namespace, pod.uid)


def listed(names: tuple[str, ...], most: int = _SHOWN_MAX) -> str:
    """List the first few names and count the rest: `a, b and 3 other(s)`."""
    hidden = len(names) - most
    text = ", ".join(names[:most])
    return f"{text} and {hidden} other(s)" if hidden > 0 else text


def hydrate_claim(claim: ClaimRecord) -> Changes:
    """Set the node class label on a claim that was created by a release without it."""
    return Changes(replace(claim, meta=with_labels(claim.meta, _labels(claim))))


def hydrate_node(node: NodeRecord, claim: ClaimRecord) -> Changes:
    """Set the node class label of its claim on a node."""
    return Changes(node=replace(node, meta=with_labels(node.meta, _labels(claim))))


def _labels(claim: ClaimRecord) -> dict[str, str]:
    ref = claim.node_class
    return {class_label(ref): ref.name} if ref.kind else {}
