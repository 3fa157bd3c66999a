"""
Repair as Karpenter did it before v1.15: delete the NodeClaim of an unhealthy node at once.

`--legacy-node-repair` switches it on.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import (
    Changes,
    Count,
    Remark,
    about_claim,
    about_node,
    disruption_counts,
    termination_mode,
    with_annotations,
)
from karpy.model.conditions import Condition
from karpy.model.kinds import NODE_POOL
from karpy.model.labels import CAPACITY_TYPE, TERMINATION_TIME
from karpy.model.nodes import RepairAction, RepairPolicy
from karpy.model.notices import Notice, Subject
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.times import parse_moment, write_moment
from karpy.model.verdicts import NodeReason, NodeRefusal

BLOCKED_PERIOD: Final = timedelta(minutes=5)
UNHEALTHY_SHARE: Final = 20
"""Percentage of unhealthy nodes above which no node is repaired."""
_BLOCKED_WINDOW: Final = 15 * 60.0
_WORD_END: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class UnhealthyCondition(Struct, frozen=True, gc=False):
    """A node condition that a repair policy matches, and until when the policy tolerates it."""

    condition: Condition
    tolerated_until: datetime


class NodeRepair(Struct, frozen=True, gc=False):
    """The changes that repair a node, or why an unhealthy node is not repaired."""

    changes: Changes = Changes()
    refusal: NodeRefusal | None = None


def repair(
    claim: ClaimRecord,
    node: NodeRecord,
    policies: Sequence[RepairPolicy],
    peers: Sequence[NodeRecord],
    now: datetime,
    pods: int = 0,
) -> NodeRepair:
    """
    Delete the claim of an unhealthy node; its pods get no time to terminate.

    `peers` are the nodes of its pool, or all nodes if the claim has no pool. `pods` is the number
    of pods to reschedule. The termination annotation must be written before the claim is deleted.
    """
    fault = find_unhealthy_condition(node, policies)
    if fault is None:
        return NodeRepair()
    if now < fault.tolerated_until:
        return NodeRepair(Changes(requeue_after=fault.tolerated_until - now))
    if not are_mostly_healthy(peers, policies):
        blocked = Changes(notices=_blocked(claim, node), requeue_after=BLOCKED_PERIOD)
        return NodeRepair(blocked, NodeRefusal(NodeReason.MOSTLY_UNHEALTHY, node.name, claim.pool))
    annotated = with_termination_deadline(claim, now)
    if claim.meta.is_deleting:
        return NodeRepair(Changes(annotated), NodeRefusal(NodeReason.DELETING, node.name))
    count = unhealthy_count(claim, fault.condition.type, claim.grace_period)
    changes = Changes(
        annotated,
        deletes_claim=True,
        counts=(*disruption_counts(claim, "unhealthy", pods), count),
        remarks=(Remark("deleting unhealthy node", {"Node": node.name}),),
    )
    return NodeRepair(changes)


def find_unhealthy_condition(
    node: NodeRecord, policies: Iterable[RepairPolicy]
) -> UnhealthyCondition | None:
    """Return the unhealthy condition of a node that is tolerated for the shortest time, or None."""
    faults = [
        UnhealthyCondition(condition, condition.changed + policy.toleration)
        for policy in policies
        for condition in node.conditions
        if _matches(policy, condition)
    ]
    return min(faults, key=lambda each: each.tolerated_until, default=None)


def are_mostly_healthy(nodes: Sequence[NodeRecord], policies: Sequence[RepairPolicy]) -> bool:
    """Say whether at most a fifth of the nodes, rounded up, has an unhealthy condition."""
    unhealthy = sum(find_unhealthy_condition(each, policies) is not None for each in nodes)
    return unhealthy <= -(-len(nodes) * UNHEALTHY_SHARE // 100)


def snake_case(name: str) -> str:
    """Convert a condition type to snake case: `KWOKUnhealthy` to `kwok_unhealthy`."""
    return _WORD_END.sub("_", name).lower()


def with_termination_deadline(claim: ClaimRecord, due: datetime) -> ClaimRecord:
    """Annotate a claim with the deadline of its pods, unless it has an earlier deadline."""
    written = parse_moment(claim.meta.annotations.get(TERMINATION_TIME, ""))
    if written is not None and written <= due:
        return claim
    return replace(claim, meta=with_annotations(claim.meta, {TERMINATION_TIME: write_moment(due)}))


def unhealthy_count(claim: ClaimRecord, fault: str, grace_period: timedelta | None) -> Count:
    """Count a claim that is disrupted because of a condition of its node."""
    return Count(
        "nodeclaims_unhealthy_disrupted_total",
        {
            "condition": snake_case(fault),
            "nodepool": claim.pool,
            "capacity_type": claim.meta.labels.get(CAPACITY_TYPE, ""),
            "image_id": claim.image_id,
            "termination_mode": termination_mode(grace_period),
        },
    )


def _matches(policy: RepairPolicy, condition: Condition) -> bool:
    return (
        policy.action is RepairAction.REPLACE
        and (policy.condition, policy.status) == (condition.type, condition.status)
        and re.search(policy.reason_pattern, condition.reason) is not None
    )


def _blocked(claim: ClaimRecord, node: NodeRecord) -> tuple[Notice, ...]:
    note = "more than 20% nodes are unhealthy in the nodepool"
    if not claim.pool:
        note = "more then 20% nodes are unhealthy in the cluster"
    # Differs: the event about a blocked repair: Karpenter emits it three times on the node;
    # Karpy emits it once each on the node, its NodeClaim and its NodePool.
    subjects = [about_node(node), about_claim(claim)]
    subjects += [
        Subject(NODE_POOL, each.name, uid=each.uid)
        for each in claim.meta.owners
        if each.kind == NODE_POOL.name
    ]
    return tuple(
        Notice(
            subject,
            "NodeRepairBlocked",
            note,
            is_warning=True,
            same_as=(subject.uid,),
            window_seconds=_BLOCKED_WINDOW,
        )
        for subject in subjects
    )
