"""The conditions of a NodeClaim: their names, and how to set and read them."""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from karpy.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from karpy.model.records import ClaimRecord

LAUNCHED: Final = "Launched"
REGISTERED: Final = "Registered"
INITIALIZED: Final = "Initialized"
CONSOLIDATABLE: Final = "Consolidatable"
DRIFTED: Final = "Drifted"
DRAINED: Final = "Drained"
VOLUMES_DETACHED: Final = "VolumesDetached"
CONSISTENT: Final = "ConsistentStateFound"
DISRUPTION_REASON: Final = "DisruptionReason"


def with_initial_conditions(claim: ClaimRecord, now: datetime) -> ClaimRecord:
    """Set the conditions that Ready depends on to Unknown, unless they are set."""
    created = claim.meta.created or now
    return replace(
        claim, conditions=claim.conditions.with_unknown(created, now, claim.meta.generation)
    )


def with_true(claim: ClaimRecord, type_: str, now: datetime) -> ClaimRecord:
    """Set a condition to True, with its type as the reason."""
    return _with_condition(claim, Condition(type_, TRUE, now, type_), now)


def with_true_because(
    claim: ClaimRecord, type_: str, reason: str, message: str, now: datetime
) -> ClaimRecord:
    """Set a condition to True, with a reason and a message."""
    return _with_condition(claim, Condition(type_, TRUE, now, reason, message), now)


def with_unknown(
    claim: ClaimRecord, type_: str, reason: str, message: str, now: datetime
) -> ClaimRecord:
    """Set a condition to Unknown, with a reason and a message."""
    return _with_condition(claim, Condition(type_, UNKNOWN, now, reason, message), now)


def with_false(
    claim: ClaimRecord, type_: str, reason: str, message: str, now: datetime
) -> ClaimRecord:
    """Set a condition to False, with a reason and a message."""
    return _with_condition(claim, Condition(type_, FALSE, now, reason, message), now)


def without(claim: ClaimRecord, type_: str) -> ClaimRecord:
    """Remove a condition."""
    if claim.conditions.get(type_) is None:
        return claim
    return replace(claim, conditions=claim.conditions.without(type_))


def restated(claim: ClaimRecord, type_: str, now: datetime) -> ClaimRecord:
    """Set the observedGeneration of a condition to the present generation of the claim."""
    condition = claim.conditions.get(type_)
    return claim if condition is None else _with_condition(claim, condition, now)


def is_decided(claim: ClaimRecord, type_: str) -> bool:
    """Say whether a condition is True or False."""
    return claim.conditions.status(type_) != UNKNOWN


def changed(claim: ClaimRecord, type_: str) -> datetime:
    """Return when a condition got its status; for an unset one, when the claim was created."""
    condition = claim.conditions.get(type_)
    if condition is not None:
        return condition.changed
    assert claim.meta.created is not None
    return claim.meta.created


def _with_condition(claim: ClaimRecord, condition: Condition, now: datetime) -> ClaimRecord:
    meta = claim.meta
    condition = replace(condition, generation=meta.generation)
    updated = claim.conditions.with_condition(condition, now, is_deleting=meta.is_deleting)
    return claim if updated is claim.conditions else replace(claim, conditions=updated)
