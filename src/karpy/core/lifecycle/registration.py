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
from karpy.core.lifecycle.opening import is_closed, shut
from karpy.core.lifecycle.outcomes import Count, Outcome, Remark
from karpy.model.constraints import UNREGISTERED_TAINT, Taint
from karpy.model.kinds import NODE_CLAIM
from karpy.model.labels import REGISTERED as REGISTERED_LABEL
from karpy.model.labels import ZONE
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, Identity, NodeRecord, Owner

DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
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
        return Outcome(restated(claim, REGISTERED, now))
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
        node=_registered(synced(node, claim), now),
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
    if REGISTERED_LABEL in node.meta.labels or any(map(is_closed, node.taints)):
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


def _registered(node: NodeRecord, now: datetime) -> NodeRecord:
    labels = {**node.meta.labels, REGISTERED_LABEL: "true"}
    return shut(replace(node, meta=replace(node.meta, labels=labels)), now)


def _owners(meta: Identity, claim: ClaimRecord) -> tuple[Owner, ...]:
    if any(each.uid == claim.meta.uid for each in meta.owners):
        return meta.owners
    owner = Owner(NODE_CLAIM.api_version, NODE_CLAIM.name, claim.name, claim.meta.uid, True)
    return (*meta.owners, owner)


def _merged(present: tuple[Taint, ...], wanted: tuple[Taint, ...]) -> tuple[Taint, ...]:
    known = {(each.key, each.effect) for each in present}
    return (*present, *(each for each in wanted if (each.key, each.effect) not in known))
