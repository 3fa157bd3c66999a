"""Termination of Nodes and NodeClaims: taint, drain, detach, end the machine, drop finalizers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import (
    FINALIZER,
    Changes,
    Count,
    Remark,
    about_claim,
    about_node,
    joined,
    with_annotations,
    with_labels,
    without_finalizer,
)
from karpy.core.lifecycle.conditions import REGISTERED, changed, with_true
from karpy.core.lifecycle.drain import DrainingNode, await_detachment, drain
from karpy.core.lifecycle.eviction import Eviction
from karpy.model.conditions import INSTANCE_TERMINATING
from karpy.model.constraints import DISRUPTED_TAINT, NO_SCHEDULE, Taint
from karpy.model.labels import CAPACITY_TYPE, NODE_POOL, TERMINATION_TIME, ZONE
from karpy.model.labels import REGISTERED as REGISTERED_LABEL
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.times import parse_moment, write_moment

EXCLUDE_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
MACHINE_PERIOD: Final = timedelta(seconds=5)
_DISRUPTED: Final = Taint(DISRUPTED_TAINT, NO_SCHEDULE)


class NodeTermination(Struct, frozen=True, gc=False):
    """How far the termination of a node is; write the changes first, then evict the pods."""

    changes: Changes
    evictions: tuple[Eviction, ...] = ()
    ends_machine: bool = False
    """Whether to terminate the machine now, as the last step."""


def is_terminating(node: NodeRecord) -> bool:
    """Say whether a node is deleting and has the finalizer of Karpenter."""
    return node.meta.is_deleting and FINALIZER in node.meta.finalizers


def claim_of(claims: Sequence[ClaimRecord]) -> ClaimRecord | None:
    """Return the only claim with the provider ID of a node; None if there are none or several."""
    return claims[0] if len(claims) == 1 else None


def may_lack_machine(node: NodeRecord) -> bool:
    """Say whether to ask the cloud, before a drain, if the machine still exists."""
    return not node.is_ready


def termination_time(claim: ClaimRecord | None) -> datetime | None:
    """Return the time by which all pods of a claim's node must be gone; None is no deadline."""
    if claim is None:
        return None
    # Differs: a termination timestamp annotation that cannot be parsed: Karpenter never terminates
    # the node; Karpy drains it without a deadline.
    return parse_moment(claim.meta.annotations.get(TERMINATION_TIME, ""))


def terminate_node(
    draining: DrainingNode, attachments: Sequence[str], now: datetime
) -> NodeTermination:
    """Take the next step of a terminating node; `attachments` names VolumeAttachments to await."""
    draining, changes = _tainted_and_warned(draining)
    drained = drain(draining, now)
    changes = joined(changes, drained.changes)
    if not drained.is_done:
        return NodeTermination(changes, drained.evictions)
    draining = replace(draining, claim=changes.claim)
    detachment = await_detachment(draining, attachments, now)
    return NodeTermination(joined(changes, detachment.changes), ends_machine=detachment.is_done)


def after_machine_deletion(
    node: NodeRecord, claim: ClaimRecord | None, now: datetime, *, is_gone: bool
) -> Changes:
    """Set InstanceTerminating; once the machine is gone, remove the finalizer of the node."""
    if claim is None:
        return release_node(node, now)
    updated = with_true(claim, INSTANCE_TERMINATING, now)
    if not is_gone:
        return Changes(updated, requeue_after=MACHINE_PERIOD)
    return joined(Changes(updated), release_node(node, now))


def release_node(node: NodeRecord, now: datetime) -> Changes:
    """Remove the finalizer of a node whose machine is gone."""
    pool = {"nodepool": node.meta.labels.get(NODE_POOL, "")}
    counts = [
        Count("nodes_terminated_total", {**pool, "zone": node.meta.labels.get(ZONE, "")}),
    ]
    if node.meta.deleted is not None:
        seconds = (now - node.meta.deleted).total_seconds()
        counts.append(Count("nodes_termination_duration_seconds", pool, seconds))
    if node.meta.created is not None:
        seconds = (now - node.meta.created).total_seconds()
        counts.append(Count("nodes_lifetime_duration_seconds", pool, seconds))
    return Changes(
        node=replace(node, meta=without_finalizer(node.meta)),
        counts=tuple(counts),
        remarks=(Remark("deleted node", {"Node": node.name}),),
    )


def tainted(node: NodeRecord) -> NodeRecord:
    """Add the disrupted taint, and exclude the node from load balancers."""
    taints = node.taints
    if _DISRUPTED not in taints:
        kept = (each for each in taints if each.key != DISRUPTED_TAINT)
        taints = (*kept, _DISRUPTED)
    meta = with_labels(node.meta, {EXCLUDE_BALANCERS: "karpenter"})
    return replace(node, meta=meta, taints=taints)


def _tainted_and_warned(draining: DrainingNode) -> tuple[DrainingNode, Changes]:
    before, claim = draining.node, draining.claim
    node = tainted(before)
    remarks = []
    if node != before:
        fields = {"Node": node.name, "taint.Key": _DISRUPTED.key, "taint.Effect": _DISRUPTED.effect}
        remarks.append(Remark("tainted node", fields))
    changes = Changes(
        node=node,
        deletes_claim=claim is not None and not claim.meta.is_deleting,
        notices=_warning(node, claim),
        remarks=tuple(remarks),
    )
    draining = replace(draining, node=node, deadline=termination_time(claim))
    return draining, changes


def _warning(node: NodeRecord, claim: ClaimRecord | None) -> tuple[Notice, ...]:
    moment = claim.meta.annotations.get(TERMINATION_TIME) if claim is not None else None
    if moment is None:
        return ()
    notice = Notice(
        about_node(node),
        "TerminationGracePeriodExpiring",
        f"All pods will be deleted by {moment}",
        is_warning=True,
        same_as=(node.name,),
    )
    return (notice,)


class ClaimTermination(Struct, frozen=True, gc=False):
    """How far the termination of a claim is."""

    changes: Changes
    nodes_to_delete: tuple[str, ...] = ()
    """Names of nodes to delete."""
    ends_machine: bool = False
    """Whether to terminate the machine now."""


def terminate_claim(
    claim: ClaimRecord, nodes: Sequence[NodeRecord], now: datetime, *, is_blind: bool = False
) -> ClaimTermination:
    """
    Take the next step of a deleting claim; `nodes` are the nodes with its provider ID.

    A node that never registered is not deleted: the cloud's node lifecycle controller removes it.
    `is_blind` says that the Node exists and cannot be read: the machine is kept, because it may
    run pods.
    """
    if not claim.meta.is_deleting or FINALIZER not in claim.meta.finalizers:
        return ClaimTermination(Changes())
    changes = _with_deadline(claim)
    # Differs: a NodeClaim that is deleted just after its Node was registered: Karpenter reads the
    # condition Registered of the NodeClaim alone and does not drain; Karpy also reads the Node,
    # because the condition may not be written yet.
    if nodes and (
        claim.conditions.is_true(REGISTERED) or any(_is_registered(each) for each in nodes)
    ):
        nodes_to_delete = tuple(each.name for each in nodes if not each.meta.is_deleting)
        return ClaimTermination(changes, nodes_to_delete)
    if is_blind:
        return ClaimTermination(joined(changes, Changes(requeue_after=MACHINE_PERIOD)))
    if claim.provider_id:
        return ClaimTermination(changes, ends_machine=True)
    return ClaimTermination(joined(changes, _release_claim(changes.claim or claim, now)))


def after_claim_machine_deletion(claim: ClaimRecord, now: datetime, *, is_gone: bool) -> Changes:
    """Set InstanceTerminating; once the machine is gone, remove the finalizer of the claim."""
    updated = with_true(claim, INSTANCE_TERMINATING, now)
    if not is_gone:
        return Changes(updated, requeue_after=MACHINE_PERIOD)
    took = (now - changed(updated, INSTANCE_TERMINATING)).total_seconds()
    counted = Count(
        "nodeclaims_instance_termination_duration_seconds", {"nodepool": claim.pool}, took
    )
    return joined(Changes(updated, counts=(counted,)), _release_claim(updated, now))


def _is_registered(node: NodeRecord) -> bool:
    return node.meta.labels.get(REGISTERED_LABEL) == "true"


def _with_deadline(claim: ClaimRecord) -> Changes:
    """Annotate the claim with the end of its terminationGracePeriod, unless it is annotated."""
    deleted = claim.meta.deleted
    if claim.grace_period is None or deleted is None or TERMINATION_TIME in claim.meta.annotations:
        return Changes()
    moment = write_moment(deleted + claim.grace_period)
    notice = Notice(
        about_claim(claim),
        "TerminationGracePeriodExpiring",
        f"All pods will be deleted by {moment}",
        is_warning=True,
        same_as=(claim.name,),
    )
    return Changes(
        replace(claim, meta=with_annotations(claim.meta, {TERMINATION_TIME: moment})),
        notices=(notice,),
        remarks=(Remark("annotated nodeclaim", {TERMINATION_TIME: moment}),),
    )


def _release_claim(claim: ClaimRecord, now: datetime) -> Changes:
    deleted = claim.meta.deleted or now
    pool = {"nodepool": claim.pool}
    labels = {
        **pool,
        "capacity_type": claim.meta.labels.get(CAPACITY_TYPE, ""),
        "zone": claim.meta.labels.get(ZONE, ""),
    }
    took = (now - deleted).total_seconds()
    return Changes(
        replace(claim, meta=without_finalizer(claim.meta)),
        counts=(
            Count("nodeclaims_termination_duration_seconds", pool, took),
            Count("nodeclaims_terminated_total", labels),
        ),
        remarks=(Remark("deleted nodeclaim", {"NodeClaim": claim.name}),),
    )
