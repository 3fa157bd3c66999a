"""Repair policies of KWOK's nodes."""

from datetime import timedelta
from typing import Final

from karpy.model.nodes import RepairAction, RepairPolicy

UNHEALTHY: Final = "KWOKUnhealthy"
"""A condition for tests: True on a node that must be replaced."""
REBOOT_REQUIRED: Final = "KWOKRebootRequired"
"""A condition for tests: True on a node that needs a reboot."""
_AT_ONCE: Final = timedelta()
_PATIENCE: Final = timedelta(minutes=10)
_LITTLE_PATIENCE: Final = timedelta(seconds=30)
_ANY_REASON: Final = ".*"

REPAIR_POLICIES: Final = (
    RepairPolicy("Ready", "False", _PATIENCE, grace_period=_AT_ONCE),
    RepairPolicy("Ready", "Unknown", _PATIENCE, _ANY_REASON, grace_period=_AT_ONCE),
    RepairPolicy(
        UNHEALTHY, "True", _LITTLE_PATIENCE, _ANY_REASON, grace_period=timedelta(seconds=45)
    ),
    RepairPolicy(
        REBOOT_REQUIRED,
        "True",
        _LITTLE_PATIENCE,
        _ANY_REASON,
        RepairAction.REBOOT,
        grace_period=timedelta(minutes=1),
    ),
)
