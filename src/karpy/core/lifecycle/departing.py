"""The end of a Node: marked, emptied, detached, its machine gone, then let go."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.conditions import with_true
from karpy.core.lifecycle.detaching import await_detachment
from karpy.core.lifecycle.draining import Departing, drain
from karpy.core.lifecycle.evicting import Entry
from karpy.core.lifecycle.identities import (
    FINALIZER,
    about_node,
    with_labels,
    without_finalizer,
)
from karpy.core.lifecycle.outcomes import Count, Outcome, Remark, joined
from karpy.model.annotations import TERMINATION_TIME
from karpy.model.conditions import INSTANCE_TERMINATING
from karpy.model.constraints import DISRUPTED_TAINT, NO_SCHEDULE, Taint
from karpy.model.labels import NODE_POOL, ZONE
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.times import parse_moment

EXCLUDE_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
MACHINE_PERIOD: Final = timedelta(seconds=5)
_DISRUPTED: Final = Taint(DISRUPTED_TAINT, NO_SCHEDULE)


class Departure(Struct, frozen=True, gc=False):
    """How far a node is on its way out; write the outcome first, then send off the pods."""

    outcome: Outcome
    leaving: tuple[Entry, ...] = ()
    is_cleared: bool = False
    """Whether all that is left to do is to end the machine."""


def is_leaving(node: NodeRecord) -> bool:
    """Say whether a node is going and waits for us."""
    return node.meta.is_deleting and FINALIZER in node.meta.finalizers


def claim_of(claims: Sequence[ClaimRecord]) -> ClaimRecord | None:
    """Return the claim of a node, given all with its provider ID; several are as good as none."""
    return claims[0] if len(claims) == 1 else None


def asks_for_machine(node: NodeRecord) -> bool:
    """Say whether to ask the cloud first: if the machine is gone, nobody can be drained."""
    return not node.is_ready


def termination_time(claim: ClaimRecord | None) -> datetime | None:
    """Return by when all pods of a claim's node are gone; None is never."""
    if claim is None:
        return None
    # Differs: Karpenter never gets rid of a node whose annotation cannot be read.
    return parse_moment(claim.meta.annotations.get(TERMINATION_TIME, ""))


def depart(departing: Departing, attachments: Sequence[str], now: datetime) -> Departure:
    """Bring a node that is going a step further; `attachments` are those to wait for."""
    departing, outcome = _marked(departing)
    drained = drain(departing, now)
    outcome = joined(outcome, drained.outcome)
    if not drained.is_done:
        return Departure(outcome, drained.leaving)
    departing = replace(departing, claim=outcome.claim)
    detachment = await_detachment(departing, attachments, now)
    return Departure(joined(outcome, detachment.outcome), is_cleared=detachment.is_done)


def machine_answered(
    node: NodeRecord, claim: ClaimRecord | None, now: datetime, *, is_gone: bool
) -> Outcome:
    """Note that the machine was asked to end; once it is gone, so is the node."""
    if claim is None:
        return node_gone(node, now)
    said = with_true(claim, INSTANCE_TERMINATING, now)
    if not is_gone:
        return Outcome(said, look_again=MACHINE_PERIOD)
    return joined(Outcome(said), node_gone(node, now))


def node_gone(node: NodeRecord, now: datetime) -> Outcome:
    """Let a node go whose machine is gone."""
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
    return Outcome(
        node=replace(node, meta=without_finalizer(node.meta)),
        counts=tuple(counts),
        remarks=(Remark("deleted node", {"Node": node.name}),),
    )


def marked(node: NodeRecord) -> NodeRecord:
    """Keep new pods and load balancers away from a node."""
    taints = node.taints
    if _DISRUPTED not in taints:
        others = (each for each in taints if each.key != DISRUPTED_TAINT)
        taints = (*others, _DISRUPTED)
    meta = with_labels(node.meta, {EXCLUDE_BALANCERS: "karpenter"})
    return replace(node, meta=meta, taints=taints)


def _marked(departing: Departing) -> tuple[Departing, Outcome]:
    before, claim = departing.node, departing.claim
    node = marked(before)
    remarks = []
    if node != before:
        fields = {"Node": node.name, "taint.Key": _DISRUPTED.key, "taint.Effect": _DISRUPTED.effect}
        remarks.append(Remark("tainted node", fields))
    outcome = Outcome(
        node=node,
        deletes_claim=claim is not None and not claim.meta.is_deleting,
        notices=_warning(node, claim),
        remarks=tuple(remarks),
    )
    departing = replace(departing, node=node, deadline=termination_time(claim))
    return departing, outcome


def _warning(node: NodeRecord, claim: ClaimRecord | None) -> tuple[Notice, ...]:
    moment = claim.meta.annotations.get(TERMINATION_TIME) if claim is not None else None
    if moment is None:
        return ()
    told = Notice(
        about_node(node),
        "TerminationGracePeriodExpiring",
        f"All pods will be deleted by {moment}",
        is_warning=True,
        same_as=(node.name,),
    )
    return (told,)
