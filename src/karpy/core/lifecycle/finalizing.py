"""The end of a NodeClaim: its nodes, its machine, then itself."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.conditions import REGISTERED, changed, with_true
from karpy.core.lifecycle.identities import (
    FINALIZER,
    about_claim,
    with_annotations,
    without_finalizer,
)
from karpy.core.lifecycle.outcomes import Count, Outcome, Remark, joined
from karpy.model.annotations import TERMINATION_TIME
from karpy.model.conditions import INSTANCE_TERMINATING
from karpy.model.labels import CAPACITY_TYPE, ZONE
from karpy.model.labels import REGISTERED as REGISTERED_LABEL
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.times import write_moment

MACHINE_PERIOD: Final = timedelta(seconds=5)


class Finalizing(Struct, frozen=True, gc=False):
    """How far a claim is on its way out."""

    outcome: Outcome
    doomed: tuple[str, ...] = ()
    """Names of nodes to delete."""
    is_cleared: bool = False
    """Whether its machine is to be ended now."""


def finalize(
    claim: ClaimRecord, nodes: Sequence[NodeRecord], now: datetime, *, is_blind: bool = False
) -> Finalizing:
    """
    Bring a claim that is going a step further; `nodes` are those with its provider ID.

    A claim that never registered leaves its node alone: whoever made it cleans it up. `is_blind`
    means that its Node is there and cannot be read: then its machine stays, for it may have pods.
    """
    if not claim.meta.is_deleting or FINALIZER not in claim.meta.finalizers:
        return Finalizing(Outcome())
    outcome = _hurried(claim)
    # Differs: Karpenter goes by the claim alone. It may have been deleted between the write that
    # lets pods onto the node and the one that says so on the claim.
    if nodes and (claim.conditions.is_true(REGISTERED) or any(_has_joined(each) for each in nodes)):
        doomed = tuple(each.name for each in nodes if not each.meta.is_deleting)
        return Finalizing(outcome, doomed)
    if is_blind:
        return Finalizing(joined(outcome, Outcome(look_again=MACHINE_PERIOD)))
    if claim.provider_id:
        return Finalizing(outcome, is_cleared=True)
    return Finalizing(joined(outcome, _released(outcome.claim or claim, now)))


def claim_machine_answered(claim: ClaimRecord, now: datetime, *, is_gone: bool) -> Outcome:
    """Note that the machine was asked to end; once it is gone, so is the claim."""
    said = with_true(claim, INSTANCE_TERMINATING, now)
    if not is_gone:
        return Outcome(said, look_again=MACHINE_PERIOD)
    took = (now - changed(said, INSTANCE_TERMINATING)).total_seconds()
    counted = Count(
        "nodeclaims_instance_termination_duration_seconds", {"nodepool": claim.pool}, took
    )
    return joined(Outcome(said, counts=(counted,)), _released(said, now))


def _has_joined(node: NodeRecord) -> bool:
    return node.meta.labels.get(REGISTERED_LABEL) == "true"


def _hurried(claim: ClaimRecord) -> Outcome:
    """Write down by when all pods are gone, unless that is written already."""
    deleted = claim.meta.deleted
    if claim.grace_period is None or deleted is None or TERMINATION_TIME in claim.meta.annotations:
        return Outcome()
    moment = write_moment(deleted + claim.grace_period)
    told = Notice(
        about_claim(claim),
        "TerminationGracePeriodExpiring",
        f"All pods will be deleted by {moment}",
        is_warning=True,
        same_as=(claim.name,),
    )
    return Outcome(
        replace(claim, meta=with_annotations(claim.meta, {TERMINATION_TIME: moment})),
        notices=(told,),
        remarks=(Remark("annotated nodeclaim", {TERMINATION_TIME: moment}),),
    )


def _released(claim: ClaimRecord, now: datetime) -> Outcome:
    deleted = claim.meta.deleted or now
    pool = {"nodepool": claim.pool}
    labels = {
        **pool,
        "capacity_type": claim.meta.labels.get(CAPACITY_TYPE, ""),
        "zone": claim.meta.labels.get(ZONE, ""),
    }
    took = (now - deleted).total_seconds()
    return Outcome(
        replace(claim, meta=without_finalizer(claim.meta)),
        counts=(
            Count("nodeclaims_termination_duration_seconds", pool, took),
            Count("nodeclaims_terminated_total", labels),
        ),
        remarks=(Remark("deleted nodeclaim", {"NodeClaim": claim.name}),),
    )
