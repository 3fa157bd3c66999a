"""Whether a registered node is initialized, and whether it has the capacity of its NodeClaim."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Remark, about_claim, with_labels
from karpy.core.lifecycle.conditions import (
    CONSISTENT,
    INITIALIZED,
    REGISTERED,
    is_decided,
    restated,
    with_false,
    with_true,
    with_unknown,
)
from karpy.core.lifecycle.launch import resource_text
from karpy.model.conditions import REBOOTING
from karpy.model.constraints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY_TAINT,
    UNREGISTERED_TAINT,
    Taint,
    is_gate,
)
from karpy.model.labels import INITIALIZED as INITIALIZED_LABEL
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.resources import format_quantity

_EPHEMERAL: Final = (
    (NOT_READY_TAINT, NO_SCHEDULE),
    (NOT_READY_TAINT, NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_SCHEDULE),
    ("node.cloudprovider.kubernetes.io/uninitialized", NO_SCHEDULE),
    (UNREGISTERED_TAINT, NO_EXECUTE),
)
_EPHEMERAL_PREFIX: Final = "readiness.k8s.io/"
PERIOD: Final = timedelta(minutes=10)
_LEAST_SHARE: Final = 0.9


class UnmetCondition(Struct, frozen=True, gc=False):
    """A precondition of Initialized that a node does not meet."""

    reason: str
    message: str


def initialize(
    claim: ClaimRecord,
    nodes: Sequence[NodeRecord],
    now: datetime,
    unpublished_drivers: Sequence[str] = (),
) -> Changes:
    """
    Set Initialized on the claim of a registered node to True, or to Unknown with the reason.

    `nodes` are the nodes with the claim's provider ID. `unpublished_drivers` are the device
    drivers that pods of the claim need and that have not published all their devices.
    """
    if is_decided(claim, INITIALIZED):
        return Changes(restated(claim, INITIALIZED, now))
    if claim.conditions.is_true(REBOOTING) or not claim.conditions.is_true(REGISTERED):
        return Changes()
    node = nodes[0] if len(nodes) == 1 else None
    unmet = find_unmet_condition(claim, node, unpublished_drivers)
    if node is None or unmet is not None:
        assert unmet is not None
        return Changes(with_unknown(claim, INITIALIZED, unmet.reason, unmet.message, now))
    fields = {
        "NodeClaim": claim.name,
        "provider-id": claim.provider_id,
        "Node": node.name,
        "allocatable": resource_text(node.allocatable),
    }
    return Changes(
        with_true(claim, INITIALIZED, now),
        replace(node, meta=with_labels(node.meta, {INITIALIZED_LABEL: "true"})),
        remarks=(Remark("initialized nodeclaim", fields),),
    )


def find_unmet_condition(
    claim: ClaimRecord, node: NodeRecord | None, unpublished_drivers: Sequence[str] = ()
) -> UnmetCondition | None:
    """Return the first precondition of Initialized that a node does not meet, or None."""
    if node is None:
        return UnmetCondition("NodeNotFound", "Node not registered with cluster")
    if not node.is_ready:
        return UnmetCondition("NodeNotReady", "Node status is NotReady")
    if taint := _startup_taint(claim, node):
        return UnmetCondition("StartupTaintsExist", f"StartupTaint {_quoted(taint)} still exists")
    if taint := _ephemeral_taint(node):
        return UnmetCondition(
            "KnownEphemeralTaintsExist", f"KnownEphemeralTaint {_quoted(taint)} still exists"
        )
    for name in sorted(claim.requests):
        if claim.requests[name] and not node.allocatable.get(name):
            message = f"Resource {_quoted(name)} was requested but not registered"
            return UnmetCondition("ResourceNotRegistered", message)
    if unpublished_drivers:
        drivers = ", ".join(sorted(unpublished_drivers))
        return UnmetCondition(
            "DRADriverPoolsNotPublished", f"Drivers without published pools: {drivers}"
        )
    return None


def _startup_taint(claim: ClaimRecord, node: NodeRecord) -> Taint | None:
    for wanted in claim.startup_taints:
        for taint in node.taints:
            if (taint.key, taint.effect) == (wanted.key, wanted.effect):
                return taint
    return None


def _ephemeral_taint(node: NodeRecord) -> Taint | None:
    for taint in node.taints:
        if (taint.key, taint.effect) in _EPHEMERAL or is_gate(taint):
            return taint
        if taint.key.startswith(_EPHEMERAL_PREFIX):
            return taint
    return None


def _quoted(what: object) -> str:
    return json.dumps(str(what), ensure_ascii=False)


def check_consistency(claim: ClaimRecord, node: NodeRecord, now: datetime) -> Changes:
    """Set ConsistentStateFound, to False if a node has much less of a resource than its claim."""
    if claim.meta.is_deleting:
        return Changes()
    issues = find_issues(claim, node)
    if not issues:
        return Changes(with_true(claim, CONSISTENT, now), requeue_after=PERIOD)
    notices = tuple(
        Notice(
            about_claim(claim),
            "FailedConsistencyCheck",
            issue,
            is_warning=True,
            same_as=(claim.meta.uid, issue),
        )
        for issue in issues
    )
    remarks = tuple(Remark("consistency error", {"error": each}, True) for each in issues)
    message = "Consistency Check Failed"
    updated = with_false(claim, CONSISTENT, "ConsistencyCheckFailed", message, now)
    return Changes(updated, notices=notices, remarks=remarks, requeue_after=PERIOD)


def find_issues(claim: ClaimRecord, node: NodeRecord) -> tuple[str, ...]:
    """List the resources of which an initialized node has less than 90% of its claim's capacity."""
    if not claim.conditions.is_true(INITIALIZED):
        return ()
    issues = []
    for name in sorted(claim.requests):
        expected, found = claim.capacity.get(name, 0), node.capacity.get(name, 0)
        if not claim.requests[name] or not expected:
            continue
        share = found / expected
        if share < _LEAST_SHARE:
            issues.append(
                f"expected {format_quantity(expected, name)} of resource {name}, but found "
                f"{format_quantity(found, name)} ({share * 100:.1f}% of expected)"
            )
    return tuple(issues)
