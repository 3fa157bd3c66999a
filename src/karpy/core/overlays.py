"""Whether NodeOverlays make sense, each by itself and next to the others."""

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpy.model.conditions import FALSE, TRUE, Condition
from karpy.model.overlays import OverlayRecord

PERIOD: Final = timedelta(hours=6)
"""After how long overlays are looked at again if nothing has changed: the cloud's offers may."""
VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"


def judge_overlay(
    record: OverlayRecord, now: datetime, *, is_conflicting: bool = False
) -> OverlayRecord:
    """Write on an overlay whether it is applied; one that contradicts another is not."""
    meta = record.meta
    status, reason, message = _judgement(record, is_conflicting=is_conflicting)
    condition = Condition(VALIDATION_SUCCEEDED, status, now, reason, message, meta.generation)
    said = record.conditions.with_condition(condition, now, is_deleting=meta.is_deleting)
    return record if said is record.conditions else replace(record, conditions=said)


def _judgement(record: OverlayRecord, *, is_conflicting: bool) -> tuple[str, str, str]:
    if record.faults:
        return FALSE, "RuntimeValidation", "; ".join(record.faults)
    if is_conflicting:
        return FALSE, "Conflict", "conflict with another overlay"
    return TRUE, VALIDATION_SUCCEEDED, ""
