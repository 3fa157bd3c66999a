"""Whether the nodes of a NodePool manage to register: the last four attempts tell."""

from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from karpy.model.records import ClaimRecord, PoolRecord

NODE_REGISTRATION_HEALTHY: Final = "NodeRegistrationHealthy"
ATTEMPTS: Final = 4
FAILURES_MAX: Final = 2
"""With so many failures among the last attempts a pool is unhealthy."""


class RegistrationHealth(Struct, frozen=True, gc=False):
    """The last attempts of a pool's nodes to register, oldest first."""

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
    """The health of a pool to remember, and the pool with its condition."""

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
    """Record whether a claim's node registered, unless a former pool of that name owns it."""
    if not any(each.kind == "NodePool" and each.uid == pool.meta.uid for each in claim.meta.owners):
        return HealthUpdate(health, pool)
    after = health.with_attempt(is_success=is_success)
    status = pool.conditions.status(NODE_REGISTRATION_HEALTHY)
    if is_success and after.status == TRUE:
        pool = _with_condition(pool, TRUE, NODE_REGISTRATION_HEALTHY, "", now)
    elif not is_success and after.status == FALSE and status != FALSE:
        reason, message = _failure(claim)
        pool = _with_condition(pool, FALSE, reason, message, now)
    return HealthUpdate(after, pool)


def refresh_health(
    health: RegistrationHealth, pool: PoolRecord, class_generation: int | None, now: datetime
) -> HealthUpdate:
    """
    Reset the health of a pool if its specification or that of its node class has changed.

    After a restart the attempts are restored from the condition.
    """
    condition = pool.conditions.get(NODE_REGISTRATION_HEALTHY)
    is_stale = (
        condition is None
        or pool.class_generation != class_generation
        or condition.generation != pool.meta.generation
    )
    if condition is None or is_stale:
        reset = _with_condition(pool, UNKNOWN, "AwaitingReconciliation", _WAITS, now)
        return HealthUpdate(RegistrationHealth(), replace(reset, class_generation=class_generation))
    if not health.attempts:
        remembered = {TRUE: (True,), FALSE: (False,) * FAILURES_MAX}
        health = RegistrationHealth(remembered.get(condition.status, ()))
    return HealthUpdate(health, pool)


_WAITS: Final = "object is awaiting reconciliation"


def _failure(claim: ClaimRecord) -> tuple[str, str]:
    launched = claim.conditions.get("Launched")
    if launched is None or launched.is_true:
        return "RegistrationFailed", "Failed to register node"
    return launched.reason, launched.message


def _with_condition(
    pool: PoolRecord, status: str, reason: str, message: str, now: datetime
) -> PoolRecord:
    meta = pool.meta
    condition = Condition(NODE_REGISTRATION_HEALTHY, status, now, reason, message, meta.generation)
    updated = pool.conditions.with_condition(condition, now, is_deleting=meta.is_deleting)
    return replace(pool, conditions=updated)
