"""
The reboot of a node: drain the node, request the reboot, wait until the node is ready again.

All state is written on the NodeClaim, so that another leader can continue: the boot ID before the
reboot, that the reboot was requested, and when.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import (
    Changes,
    Count,
    Remark,
    about_claim,
    joined,
    with_annotations,
)
from karpy.core.lifecycle.conditions import (
    INITIALIZED,
    changed,
    with_false,
    with_true_because,
    with_unknown,
)
from karpy.core.lifecycle.drain import first_tier
from karpy.core.lifecycle.eviction import Eviction, EvictionMode
from karpy.core.lifecycle.launch import shortened
from karpy.core.lifecycle.repair import with_termination_deadline
from karpy.model.conditions import REBOOTING
from karpy.model.constraints import NO_SCHEDULE, REBOOTING_TAINT, Taint
from karpy.model.labels import INITIALIZED as INITIALIZED_LABEL
from karpy.model.labels import REBOOT_BOOT_ID, REBOOT_GRACE_PERIOD
from karpy.model.notices import Notice
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.times import parse_duration

POLL: Final = timedelta(seconds=15)
ISSUANCE_TIMEOUT: Final = timedelta(minutes=5)
RECOVERY_TIMEOUT: Final = timedelta(minutes=20)
LEAST_DRAIN: Final = timedelta(seconds=5)
ISSUED: Final = "RebootIssued"
_FORCEFUL: Final = timedelta()
_WINDOW: Final = 30 * 60.0
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TAINT: Final = Taint(REBOOTING_TAINT, NO_SCHEDULE)


class RebootStep(Struct, frozen=True, gc=False):
    """The next step of a reboot: write the changes, evict the pods, request it from the cloud."""

    changes: Changes
    evictions: tuple[Eviction, ...] = ()
    operation: str = ""
    """The operation ID of the request to the cloud; empty if none is to be sent now."""


class RebootFailure(Struct, frozen=True, gc=False):
    """Why a reboot failed."""

    result: str
    """The value of the label `result` in metrics."""
    message: str


REJECTED: Final = RebootFailure("provider_error", "reboot rejected by the cloud provider: ")
UNSUPPORTED: Final = RebootFailure("provider_error", "reboot not implemented by the cloud provider")
_NOT_ISSUED: Final = RebootFailure(
    "provider_error", "reboot was not issued within the issuance timeout"
)
_NOT_RECOVERED: Final = RebootFailure(
    "recovery_timeout", "node did not recover within the observation window"
)


def is_rebooting(claim: ClaimRecord) -> bool:
    """Say whether a reboot of a claim's node is requested or in progress."""
    return claim.conditions.is_true(REBOOTING) and not claim.meta.is_deleting


def has_to_drain(claim: ClaimRecord) -> bool:
    """Say whether the drain of a claim's node before its reboot is not finished."""
    condition = claim.conditions.get(REBOOTING)
    is_issued = condition is not None and condition.reason == ISSUED
    return not is_issued and REBOOT_BOOT_ID not in claim.meta.annotations


def reboot(
    claim: ClaimRecord,
    node: NodeRecord | None,
    pods: tuple[Pod, ...],
    now: datetime,
    asked_since: datetime | None = None,
) -> RebootStep:
    """
    Take the next step of a reboot.

    `asked_since` is when this process first sent the request to the cloud; None if it did not.
    """
    condition = claim.conditions.get(REBOOTING)
    assert condition is not None
    if condition.reason == ISSUED:
        return _await_recovery(claim, node, now)
    text = claim.meta.annotations.get(REBOOT_GRACE_PERIOD)
    grace = None if text is None else parse_duration(text)
    if text is not None and (grace is None or grace < _FORCEFUL):
        return RebootStep(_invalid(claim, text, now))
    if node is None:
        since = asked_since or condition.changed
        late = now - since > ISSUANCE_TIMEOUT
        return RebootStep(
            fail(claim, None, _NOT_ISSUED, now) if late else Changes(requeue_after=POLL)
        )
    tainted = Changes(node=_tainted(node))
    before = claim.meta.annotations.get(REBOOT_BOOT_ID)
    if before is None:
        step = _drain(claim, node, pods, grace, now)
        return replace(step, changes=joined(tainted, step.changes))
    if node.boot_id != before:
        return RebootStep(joined(tainted, issued(claim, node, now)))
    if asked_since is not None and now - asked_since > ISSUANCE_TIMEOUT:
        return RebootStep(fail(claim, node, _NOT_ISSUED, now))
    return RebootStep(tainted, operation=_operation(claim, before))


def issued(claim: ClaimRecord, node: NodeRecord | None, now: datetime) -> Changes:
    """Set the reason of Rebooting to RebootIssued, and Initialized to Unknown until it is ready."""
    condition = claim.conditions.get(REBOOTING)
    assert condition is not None
    claim = with_true_because(claim, REBOOTING, ISSUED, condition.message, now)
    return Changes(_uninitialized(claim, now), _unlabelled(node), requeue_after=POLL)


def fail(
    claim: ClaimRecord,
    node: NodeRecord | None,
    failure: RebootFailure,
    now: datetime,
    detail: str = "",
) -> Changes:
    """Delete the claim of a node whose reboot failed."""
    grace = parse_duration(claim.meta.annotations.get(REBOOT_GRACE_PERIOD, ""))
    fields = {"NodeClaim": claim.name, "result": failure.result}
    return Changes(
        claim if grace is None else with_termination_deadline(claim, now + grace),
        _untainted(node),
        deletes_claim=True,
        notices=(_notice(claim, "RebootFailed", failure.message + detail, is_warning=True),),
        counts=_counts(claim, failure.result, now),
        remarks=(Remark("reboot failed, replacing node", fields),),
    )


def _drain(
    claim: ClaimRecord,
    node: NodeRecord,
    pods: tuple[Pod, ...],
    grace: timedelta | None,
    now: datetime,
) -> RebootStep:
    """Evict the pods until the deadline; the pods that are left then stay through the reboot."""
    requested = changed(claim, REBOOTING)
    if grace == _FORCEFUL:
        return RebootStep(_with_boot_id(claim, node))
    deadline = None if grace is None else requested + max(grace, LEAST_DRAIN)
    waiting = [each for each in pods if each.is_waited_for(now)]
    if waiting and (deadline is None or now < deadline):
        entries = tuple(
            Eviction(each.namespace, each.name, each.uid, EvictionMode.TIMEOUT, deadline)
            for each in sorted(first_tier(waiting), key=lambda each: each.key)
        )
        left = POLL if deadline is None else min(POLL, deadline - now)
        return RebootStep(Changes(requeue_after=left), entries)
    # A pod that was bound a moment ago may not be in the cache yet.
    if now - requested < LEAST_DRAIN:
        return RebootStep(Changes(requeue_after=requested + LEAST_DRAIN - now))
    return RebootStep(_with_boot_id(claim, node))


def _await_recovery(claim: ClaimRecord, node: NodeRecord | None, now: datetime) -> RebootStep:
    claim = _uninitialized(claim, now)
    since = changed(claim, INITIALIZED)
    is_late = now - since > RECOVERY_TIMEOUT
    if node is None:
        changes = (
            fail(claim, None, _NOT_RECOVERED, now)
            if is_late
            else Changes(claim, requeue_after=POLL)
        )
        return RebootStep(changes)
    is_new = node.boot_id != claim.meta.annotations.get(REBOOT_BOOT_ID)
    if is_new and node.is_ready:
        return RebootStep(_succeeded(claim, node, now))
    if is_late:
        return RebootStep(fail(claim, node, _NOT_RECOVERED, now))
    note = "New boot observed (bootID changed); awaiting node readiness"
    seen = _unlabelled(node) or node
    return RebootStep(
        Changes(
            claim,
            (_untainted(seen) or seen) if is_new else seen,
            notices=(_notice(claim, "RebootObserved", note),) if is_new else (),
            requeue_after=POLL,
        )
    )


def _succeeded(claim: ClaimRecord, node: NodeRecord, now: datetime) -> Changes:
    annotations = {
        key: value for key, value in claim.meta.annotations.items() if key != REBOOT_BOOT_ID
    }
    done = replace(claim, meta=replace(claim.meta, annotations=annotations))
    message = "node rebooted and rejoined the cluster"
    recovery = Count(
        "nodes_reboot_recovery_duration_seconds",
        value=(now - changed(claim, INITIALIZED)).total_seconds(),
    )
    seen = _unlabelled(node) or node
    return Changes(
        with_false(done, REBOOTING, "RebootSucceeded", message, now),
        _untainted(seen) or seen,
        counts=(*_counts(claim, "succeeded", now), recovery),
        remarks=(_outcome_remark(claim, "succeeded"),),
    )


def _invalid(claim: ClaimRecord, text: str, now: datetime) -> Changes:
    message = shortened(f"invalid reboot request: `{text}` is no grace period, such as `5m0s`")
    return Changes(
        with_false(claim, REBOOTING, "RebootFailed", message, now),
        notices=(_notice(claim, "RebootFailed", message, is_warning=True),),
        counts=_counts(claim, "invalid_request", now),
        remarks=(_outcome_remark(claim, "invalid_request"),),
    )


def _with_boot_id(claim: ClaimRecord, node: NodeRecord) -> Changes:
    """Annotate the claim with the boot ID; once that is written, the reboot is requested."""
    meta = with_annotations(claim.meta, {REBOOT_BOOT_ID: node.boot_id})
    return Changes(replace(claim, meta=meta), requeue_after=timedelta(seconds=1))


def _operation(claim: ClaimRecord, boot_id: str) -> str:
    nanoseconds = (changed(claim, REBOOTING) - _EPOCH) // timedelta(microseconds=1) * 1000
    return f"{claim.meta.uid}-{nanoseconds}-{boot_id}"


def _uninitialized(claim: ClaimRecord, now: datetime) -> ClaimRecord:
    return with_unknown(claim, INITIALIZED, "Rebooting", "node is rebooting", now)


def _tainted(node: NodeRecord) -> NodeRecord | None:
    if any((each.key, each.effect) == (_TAINT.key, _TAINT.effect) for each in node.taints):
        return None
    return replace(node, taints=(*node.taints, _TAINT))


def _untainted(node: NodeRecord | None) -> NodeRecord | None:
    if node is None:
        return None
    kept = tuple(each for each in node.taints if each.key != REBOOTING_TAINT)
    return None if kept == node.taints else replace(node, taints=kept)


def _unlabelled(node: NodeRecord | None) -> NodeRecord | None:
    if node is None or INITIALIZED_LABEL not in node.meta.labels:
        return None
    labels = {key: value for key, value in node.meta.labels.items() if key != INITIALIZED_LABEL}
    return replace(node, meta=replace(node.meta, labels=labels))


def _notice(claim: ClaimRecord, reason: str, note: str, *, is_warning: bool = False) -> Notice:
    requested = str(changed(claim, REBOOTING))
    return Notice(
        about_claim(claim),
        reason,
        note,
        is_warning=is_warning,
        same_as=(claim.meta.uid, requested),
        window_seconds=_WINDOW,
    )


def _counts(claim: ClaimRecord, result: str, now: datetime) -> tuple[Count, Count]:
    labels = {"result": result}
    took = (now - changed(claim, REBOOTING)).total_seconds()
    return (
        Count("nodes_reboots_total", labels),
        Count("nodes_reboot_duration_seconds", labels, took),
    )


def _outcome_remark(claim: ClaimRecord, result: str) -> Remark:
    fields = {"NodeClaim": claim.name, "result": result}
    return Remark("reboot reached terminal outcome", fields)
