"""What is said of a NodePool: the names of its conditions, and how each is said."""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from karpy.model.conditions import FALSE, TRUE, Condition
from karpy.model.records import PoolRecord

VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"
NODE_CLASS_READY: Final = "NodeClassReady"


def with_true(pool: PoolRecord, type_: str, now: datetime) -> PoolRecord:
    """Say that it is so; nothing needs to be explained."""
    return _said(pool, Condition(type_, TRUE, now, type_), now)


def with_false(
    pool: PoolRecord, type_: str, reason: str, message: str, now: datetime
) -> PoolRecord:
    """Say that it is not so, and why."""
    return _said(pool, Condition(type_, FALSE, now, reason, message), now)


def _said(pool: PoolRecord, condition: Condition, now: datetime) -> PoolRecord:
    meta = pool.meta
    # Whatever readiness depends on is there from the first word on, if only as unknown.
    begun = pool.conditions.begun(meta.created or now, now, meta.generation)
    said = begun.with_condition(
        replace(condition, generation=meta.generation), now, is_deleting=meta.is_deleting
    )
    return pool if said is pool.conditions else replace(pool, conditions=said)
