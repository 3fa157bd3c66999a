from datetime import timedelta

import pytest

from karpy.core.scheduling.overlays import judge_overlay
from karpy.model.conditions import FALSE, READY, TRUE, Condition, Conditions
from karpy.model.pools import NodeOverlay, OverlayRecord
from karpy.model.records import Identity
from tests.builders.pods import NOON

LATER = NOON + timedelta(hours=1)


def record(*faults: str) -> OverlayRecord:
    conditions = Conditions((), ("ValidationSucceeded",))
    overlay = None if faults else NodeOverlay("o")
    return OverlayRecord(Identity("o", generation=2), overlay, faults, conditions)


@pytest.mark.parametrize(
    ("overlay", "is_conflicting", "reason", "message"),
    [
        (record("a is wrong", "b is wrong"), False, "RuntimeValidation", "a is wrong; b is wrong"),
        (record("a is wrong"), True, "RuntimeValidation", "a is wrong"),
        (record(), True, "Conflict", "conflict with another overlay"),
    ],
)
def test_an_overlay_that_is_not_applied_says_why(
    overlay: OverlayRecord, *, is_conflicting: bool, reason: str, message: str
) -> None:
    judged = judge_overlay(overlay, NOON, is_conflicting=is_conflicting)

    told = Condition("ValidationSucceeded", FALSE, NOON, reason, message, 2)
    assert judged.conditions.get("ValidationSucceeded") == told
    assert judged.conditions.status(READY) == FALSE


def test_an_overlay_that_is_applied_is_ready() -> None:
    judged = judge_overlay(record(), NOON)

    told = Condition("ValidationSucceeded", TRUE, NOON, "ValidationSucceeded", "", 2)
    assert judged.conditions.get("ValidationSucceeded") == told
    assert judged.conditions.is_true(READY)


def test_what_was_said_before_is_not_said_again() -> None:
    judged = judge_overlay(record(), NOON, is_conflicting=True)

    assert judge_overlay(judged, LATER, is_conflicting=True) is judged
