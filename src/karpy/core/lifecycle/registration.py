"""A Node appears for a NodeClaim: it gets what the claim promises, and becomes the claim's."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.conditions import (
    REGISTERED,
    is_decided,
    restated,
    with_false,
    with_true,
    with_unknown,
)
from karpy.core.lifecycle.identities import about_claim, with_finalizer
from karpy.core.lifecycle.outcomes import Count, Outcome, Remark
from karpy.model.constraints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY_TAINT,
    UNREGISTERED_TAINT,
    Taint,
)
from karpy.model.kinds import NODE_CLAIM
from karpy.model.labels import REGISTERED as REGISTERED_LABEL
from karpy.model.labels import ZONE
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, Identity, NodeRecord, Owner

DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
GATE: Final = Taint(NOT_READY_TAINT, NO_SCHEDULE, "registering")
"""Keeps pods away for the moment after registration; kube-controller-manager takes it off, too."""
_MISSING: Final = (
    f"Missing {UNREGISTERED_TAINT} taint which prevents registration related race conditions on "
    "Karpenter-managed nodes"
)


def register(
    claim: ClaimRecord, nodes: Sequence[NodeRecord], now: datetime, pending: Sequence[str] = ()
) -> Outcome:
    """
    Join a claim with the Node of its machine.

    `nodes` are those with the claim's provider ID. `pending` names what the provider still waits
    for; until then the node keeps the taint that keeps pods away.
    """
    if is_decided(claim, REGISTERED):
        gated = nodes[0] if len(nodes) == 1 and GATE in nodes[0].taints else None
        return Outcome(restated(claim, REGISTERED, now), gated and _opened(gated))
    if not nodes or not claim.provider_id:
        waits = "Node not registered with cluster"
        return Outcome(with_unknown(claim, REGISTERED, "NodeNotFound", waits, now))
    if len(nodes) > 1:
        clash = "Invariant violated, matched multiple nodes"
        return Outcome(with_false(claim, REGISTERED, "MultipleNodesFound", clash, now))
    node = nodes[0]
    outcome = _alarm(claim, node)
    if pending:
        hooks = ", ".join(pending)
        said = with_unknown(claim, REGISTERED, "RegistrationHookPending", hooks, now)
        return replace(outcome, claim=said, node=synced(node, claim))
    return replace(
        outcome,
        claim=with_true(replace(claim, node_name=node.name), REGISTERED, now),
        node=_opened(synced(node, claim)),
        counts=(
            Count(
                "nodes_created_total",
                {"nodepool": claim.pool, "zone": claim.meta.labels.get(ZONE, "")},
            ),
        ),
        remarks=(
            *outcome.remarks,
            Remark("registered nodeclaim", {"provider-id": claim.provider_id, "Node": node.name}),
        ),
        has_registered=True,
    )


def synced(node: NodeRecord, claim: ClaimRecord) -> NodeRecord:
    """Give a node the finalizer, owner, labels, annotations and taints of its claim."""
    meta = with_finalizer(node.meta)
    meta = replace(
        meta,
        owners=_owners(meta, claim),
        labels={**meta.labels, **claim.meta.labels},
        annotations={**meta.annotations, **claim.meta.annotations},
    )
    taints = node.taints
    if node.meta.labels.get(DO_NOT_SYNC_TAINTS) != "true":
        taints = _merged(_merged(taints, claim.taints), claim.startup_taints)
    return replace(node, meta=meta, taints=taints)


def _alarm(claim: ClaimRecord, node: NodeRecord) -> Outcome:
    """Tell if pods may have come to the node before it was ready for them."""
    if REGISTERED_LABEL in node.meta.labels or any(_is_closed(each) for each in node.taints):
        return Outcome()
    told = Notice(
        about_claim(claim),
        "UnregisteredTaintMissing",
        _MISSING,
        is_warning=True,
        same_as=(claim.meta.uid,),
    )
    fields = {"taint": UNREGISTERED_TAINT, "Node": node.name}
    remark = Remark("node has no taint that keeps pods away until registration", fields, True)
    return Outcome(notices=(told,), remarks=(remark,))


# Differs: Karpenter opens a node by taking off a taint that ends pods. Where pods come at once,
# kube-controller-manager may hear of them before it hears of that, and ends them.
def _opened(node: NodeRecord) -> NodeRecord:
    """Take off the taint that ends pods; if no other keeps them away, one does for a moment."""
    meta = replace(node.meta, labels={**node.meta.labels, REGISTERED_LABEL: "true"})
    taints = tuple(each for each in node.taints if not _is_closed(each) and each != GATE)
    is_kept_shut = any((each.key, each.effect) == (GATE.key, GATE.effect) for each in taints)
    if any(map(_is_closed, node.taints)) and not is_kept_shut:
        taints = (*taints, GATE)
    return replace(node, meta=meta, taints=taints)


def _is_closed(taint: Taint) -> bool:
    return taint.key == UNREGISTERED_TAINT and taint.effect == NO_EXECUTE


def _owners(meta: Identity, claim: ClaimRecord) -> tuple[Owner, ...]:
    if any(each.uid == claim.meta.uid for each in meta.owners):
        return meta.owners
    owner = Owner(NODE_CLAIM.api_version, NODE_CLAIM.name, claim.name, claim.meta.uid, True)
    return (*meta.owners, owner)


def _merged(present: tuple[Taint, ...], wanted: tuple[Taint, ...]) -> tuple[Taint, ...]:
    known = {(each.key, each.effect) for each in present}
    return (*present, *(each for each in wanted if (each.key, each.effect) not in known))
