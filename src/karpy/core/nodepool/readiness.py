"""Whether a NodePool can be used: its template is valid and its node class is ready."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes
from karpy.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from karpy.model.records import ClassState, PoolRecord

VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"
NODE_CLASS_READY: Final = "NodeClassReady"


def with_true(pool: PoolRecord, type_: str, now: datetime) -> PoolRecord:
    """Set a condition of a pool to True; its type is the reason."""
    return _with_condition(pool, Condition(type_, TRUE, now, type_), now)


def with_false(
    pool: PoolRecord, type_: str, reason: str, message: str, now: datetime
) -> PoolRecord:
    """Set a condition of a pool to False, with a reason and a message."""
    return _with_condition(pool, Condition(type_, FALSE, now, reason, message), now)


def _with_condition(pool: PoolRecord, condition: Condition, now: datetime) -> PoolRecord:
    meta = pool.meta
    # All conditions that Ready depends on are set with the first one, as Unknown.
    begun = pool.conditions.begun(meta.created or now, now, meta.generation)
    updated = begun.with_condition(
        replace(condition, generation=meta.generation), now, is_deleting=meta.is_deleting
    )
    return pool if updated is pool.conditions else replace(pool, conditions=updated)


def judge_readiness(pool: PoolRecord, node_class: ClassState | None, now: datetime) -> Changes:
    """Set NodeClassReady on a pool; None is a node class that does not exist."""
    why = _why_not_ready(node_class)
    if why is None:
        return Changes(pool=with_true(pool, NODE_CLASS_READY, now))
    reason, message = why
    return Changes(pool=with_false(pool, NODE_CLASS_READY, reason, message, now))


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

    The faults are those of `codec.poolrules`, which checks manifests and objects alike.
    """
    if not faults:
        return Changes(pool=with_true(pool, VALIDATION_SUCCEEDED, now))
    message = "; ".join(faults)
    failed = with_false(pool, VALIDATION_SUCCEEDED, "NodePoolValidationFailed", message, now)
    return Changes(pool=failed)
