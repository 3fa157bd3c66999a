"""What is written on nodes that are about to be disrupted, and taken back if they are not."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from karpy.core.disruption.rollout import Rollout, Target
from karpy.core.lifecycle.changes import Changes, Count, termination_mode
from karpy.core.lifecycle.conditions import DISRUPTION_REASON, with_true_because, without
from karpy.core.lifecycle.records import about_claim, about_node
from karpy.core.lifecycle.repair import snake_case, unhealthy_count, with_termination_deadline
from karpy.model.constraints import DISRUPTED_TAINT, NO_SCHEDULE, Taint, is_disrupted, is_gate
from karpy.model.disruption import DisruptionReason
from karpy.model.labels import CAPACITY_TYPE
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.surroundings import NodeState, Surroundings

_DISRUPTED: Final = Taint(DISRUPTED_TAINT, NO_SCHEDULE)


def marked(state: NodeState, reason: DisruptionReason, now: datetime) -> Changes | None:
    """Keep new pods off a node and say why it goes; None if that is written there already."""
    if state.claim is None or state.is_deleting:
        return None
    node = None if state.node is None or _is_tainted(state.node) else _tainted(state.node)
    claim = with_true_because(state.claim, DISRUPTION_REASON, reason.value, reason.value, now)
    return _outcome(state, claim, node)


def unmarked(state: NodeState) -> Changes | None:
    """Take back what `marked` wrote; None if nothing is written there."""
    if state.claim is None:
        return None
    node = None
    # The taint of a node that is going belongs to whoever drains it.
    if state.node is not None and _is_tainted(state.node) and not state.node.meta.is_deleting:
        node = _untainted(state.node)
    claim = without(state.claim, DISRUPTION_REASON) if state.is_initialized else state.claim
    return _outcome(state, claim, node)


def find_strays(surroundings: Surroundings) -> Iterator[tuple[NodeState, Changes]]:
    """Find marks that no rollout stands behind: left by one that failed, or by a restart."""
    for state in sorted(surroundings.nodes, key=lambda each: each.name):
        is_busy = state.claim is not None and state.claim.name in surroundings.busy
        if not (is_busy or state.is_leaving or state.is_rebooting):
            outcome = unmarked(state)
            if outcome is not None:
                yield state, outcome


def removal(
    state: NodeState, target: Target, rollout: Rollout, surroundings: Surroundings
) -> Changes:
    """Delete the claim of a node; its termination does the rest."""
    assert state.claim is not None
    reason = rollout.reason.value
    subjects = [("Node", about_node(state.node))] if state.node is not None else []
    subjects.append(("NodeClaim", about_claim(state.claim)))
    notices = tuple(
        Notice(
            subject,
            "DisruptionTerminating",
            f"Disrupting {kind}: {reason}",
            same_as=(subject.uid, reason),
        )
        for kind, subject in subjects
    )
    policy = surroundings.policy_of(state.claim.pool).consolidation.value
    labels = {
        "reason": reason.lower(),
        "nodepool": state.claim.pool,
        "capacity_type": state.claim.meta.labels.get(CAPACITY_TYPE, ""),
        "consolidation_policy": snake_case(policy) if rollout.consolidation_type else "",
        "termination_mode": termination_mode(state.claim.grace_period),
    }
    counts = [
        Count("nodeclaims_disrupted_total", labels),
        Count("pods_disruption_initiated_total", labels, float(target.pods)),
    ]
    if target.fault:
        grace = state.claim.grace_period if target.bound is None else target.bound
        counts.append(unhealthy_count(state.claim, target.fault, grace))
    claim = None
    if target.bound is not None:
        # Whatever time it took to get here was not the pods' fault.
        claim = with_termination_deadline(state.claim, surroundings.now + target.bound)
    return Changes(claim, deletes_claim=True, notices=notices, counts=tuple(counts))


def _outcome(state: NodeState, claim: ClaimRecord, node: NodeRecord | None) -> Changes | None:
    if node is None and claim is state.claim:
        return None
    return Changes(claim=None if claim is state.claim else claim, node=node)


def _is_tainted(node: NodeRecord) -> bool:
    return any(map(is_disrupted, node.taints))


def _tainted(node: NodeRecord) -> NodeRecord:
    others = (each for each in node.taints if not is_gate(each))
    return replace(node, taints=(*others, _DISRUPTED))


def _untainted(node: NodeRecord) -> NodeRecord:
    kept = (each for each in node.taints if not is_disrupted(each))
    return replace(node, taints=tuple(kept))
