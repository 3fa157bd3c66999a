"""The conditions of a NodePool: ValidationSucceeded, NodeClassReady, registration health."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes
from karpy.model.conditions import AWAITING, FALSE, TRUE, UNKNOWN, Condition
from karpy.model.kinds import NODE_POOL
from karpy.model.notices import Notice, Subject
from karpy.model.records import ClaimRecord, ClassState, PoolRecord

VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"
NODE_CLASS_READY: Final = "NodeClassReady"
NOT_SERVED: Final = "NodeClassNotServed"
CLASS_MISSING: Final = "FailedResolvingNodeClass"
NODE_REGISTRATION_HEALTHY: Final = "NodeRegistrationHealthy"
ATTEMPTS: Final = 4
FAILURES_MAX: Final = 2
"""Failures among the last `ATTEMPTS` attempts that make a pool unhealthy."""
_WAITS: Final = "object is awaiting reconciliation"


def with_true(pool: PoolRecord, type_: str, now: datetime) -> PoolRecord:
    """Set a condition of a pool to True, with its type as the reason."""
    return _with_condition(pool, Condition(type_, TRUE, now, type_), now)


def with_false(
    pool: PoolRecord, type_: str, reason: str, message: str, now: datetime
) -> PoolRecord:
    """Set a condition of a pool to False, with a reason and a message."""
    return _with_condition(pool, Condition(type_, FALSE, now, reason, message), now)


def _with_condition(pool: PoolRecord, condition: Condition, now: datetime) -> PoolRecord:
    meta = pool.meta
    # With its first condition, a pool gets all conditions that Ready depends on, as Unknown.
    begun = pool.conditions.with_unknown(meta.created or now, now, meta.generation)
    updated = begun.with_condition(
        replace(condition, generation=meta.generation), now, is_deleting=meta.is_deleting
    )
    return pool if updated is pool.conditions else replace(pool, conditions=updated)


def judge_readiness(pool: PoolRecord, node_class: ClassState | None, now: datetime) -> Changes:
    """Set NodeClassReady on a pool; `node_class` is None if it does not exist."""
    why = _why_not_ready(node_class)
    if why is None:
        return Changes(pool=with_true(pool, NODE_CLASS_READY, now))
    reason, message = why
    marked = with_false(pool, NODE_CLASS_READY, reason, message, now)
    if node_class is not None and not node_class.is_deleting:
        return Changes(pool=marked)
    subject = Subject(NODE_POOL, pool.name, uid=pool.meta.uid)
    return Changes(pool=marked, notices=(class_missing(subject, pool.node_class.name),))


def class_missing(subject: Subject, name: str) -> Notice:
    """Return the event about a node class that does not exist."""
    # Differs: the event about a node class that does not exist: Karpenter's has no reason and does
    # not name the node class; Karpy's has both, because events.k8s.io rejects an event without a
    # reason.
    return Notice(
        subject,
        CLASS_MISSING,
        f"Failed resolving NodeClass `{name}`",
        is_warning=True,
        same_as=(subject.uid, name),
    )


def judge_unserved(pool: PoolRecord, served: Sequence[str], now: datetime) -> Changes:
    """
    Set NodeClassReady to False on a pool whose kind of node class the provider does not serve.

    A pool stays as it is if another autoscaler has set this condition on it.
    """
    # Differs: a NodePool whose kind of node class no provider serves: Karpenter reports nothing;
    # Karpy writes a condition and an event, because such a NodePool never launches a node.
    known = pool.conditions.get(NODE_CLASS_READY)
    is_foreign = known is not None and known.reason not in {NOT_SERVED, AWAITING}
    if is_foreign or not pool.node_class.kind:
        return Changes()
    kind = f"{pool.node_class.kind}.{pool.node_class.group}"
    message = f"The provider serves {' and '.join(served)}, not {kind}: nothing is launched"
    marked = with_false(pool, NODE_CLASS_READY, NOT_SERVED, message, now)
    notice = Notice(
        Subject(NODE_POOL, pool.name, uid=pool.meta.uid),
        NOT_SERVED,
        message,
        is_warning=True,
        same_as=(pool.meta.uid, kind),
    )
    return Changes(pool=marked, notices=(notice,))


def _why_not_ready(node_class: ClassState | None) -> tuple[str, str] | None:
    if node_class is None:
        return "NodeClassNotFound", "NodeClass not found on cluster"
    if node_class.is_deleting:
        return "NodeClassTerminating", "NodeClass is Terminating"
    ready = node_class.ready
    if ready is None or ready.status == UNKNOWN:
        return "NodeClassReadinessUnknown", "Node Class Readiness Unknown"
    return None if ready.is_true else (ready.reason, ready.message)


def judge_validity(pool: PoolRecord, faults: Sequence[str], now: datetime) -> Changes:
    """
    Set ValidationSucceeded on a pool.

    `codec.poolrules` finds the faults, in manifests and in objects of the API server alike.
    """
    if not faults:
        return Changes(pool=with_true(pool, VALIDATION_SUCCEEDED, now))
    message = "; ".join(faults)
    failed = with_false(pool, VALIDATION_SUCCEEDED, "NodePoolValidationFailed", message, now)
    return Changes(pool=failed)


class RegistrationHealth(Struct, frozen=True, gc=False):
    """Whether the last nodes of a pool registered, oldest first."""

    attempts: tuple[bool, ...] = ()

    @property
    def status(self) -> str:
        """True, False, or Unknown without an attempt."""
        if not self.attempts:
            return UNKNOWN
        return FALSE if self.attempts.count(False) >= FAILURES_MAX else TRUE

    def with_attempt(self, *, is_success: bool) -> "RegistrationHealth":
        return RegistrationHealth((*self.attempts, is_success)[-ATTEMPTS:])


class HealthUpdate(Struct, frozen=True, gc=False):
    """The registration health of a pool, and the pool with its condition."""

    health: RegistrationHealth
    pool: PoolRecord


def record_attempt(
    health: RegistrationHealth,
    pool: PoolRecord,
    claim: ClaimRecord,
    now: datetime,
    *,
    is_success: bool,
) -> HealthUpdate:
    """Record whether the node of a claim registered, if this pool owns the claim (by UID)."""
    if not any(each.kind == "NodePool" and each.uid == pool.meta.uid for each in claim.meta.owners):
        return HealthUpdate(health, pool)
    after = health.with_attempt(is_success=is_success)
    status = pool.conditions.status(NODE_REGISTRATION_HEALTHY)
    if is_success and after.status == TRUE:
        pool = _with_health(pool, TRUE, NODE_REGISTRATION_HEALTHY, "", now)
    elif not is_success and after.status == FALSE and status != FALSE:
        reason, message = _failure(claim)
        pool = _with_health(pool, FALSE, reason, message, now)
    return HealthUpdate(after, pool)


def refresh_health(
    health: RegistrationHealth, pool: PoolRecord, class_generation: int | None, now: datetime
) -> HealthUpdate:
    """
    Reset the registration health of a pool if its spec, or the spec of its node class, has changed.

    After a restart, attempts are restored from the condition.
    """
    condition = pool.conditions.get(NODE_REGISTRATION_HEALTHY)
    is_stale = (
        condition is None
        or pool.class_generation != class_generation
        or condition.generation != pool.meta.generation
    )
    if condition is None or is_stale:
        reset = _with_health(pool, UNKNOWN, "AwaitingReconciliation", _WAITS, now)
        return HealthUpdate(RegistrationHealth(), replace(reset, class_generation=class_generation))
    if not health.attempts:
        remembered = {TRUE: (True,), FALSE: (False,) * FAILURES_MAX}
        health = RegistrationHealth(remembered.get(condition.status, ()))
    return HealthUpdate(health, pool)


def _failure(claim: ClaimRecord) -> tuple[str, str]:
    launched = claim.conditions.get("Launched")
    if launched is None or launched.is_true:
        return "RegistrationFailed", "Failed to register node"
    return launched.reason, launched.message


def _with_health(
    pool: PoolRecord, status: str, reason: str, message: str, now: datetime
) -> PoolRecord:
    meta = pool.meta
    condition = Condition(NODE_REGISTRATION_HEALTHY, status, now, reason, message, meta.generation)
    updated = pool.conditions.with_condition(condition, now, is_deleting=meta.is_deleting)
    return replace(pool, conditions=updated)
