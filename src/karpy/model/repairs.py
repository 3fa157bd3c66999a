"""When a cloud calls a node broken, and what is to be done about it."""

from datetime import timedelta
from enum import Enum

from msgspec import Struct


class RepairAction(Enum):
    """What mends a node; the later one disrupts more."""

    REBOOT = "RebootNode"
    REPLACE = "ReplaceNode"


class RepairPolicy(Struct, frozen=True, gc=False):
    """A condition of a node that is not put up with for ever."""

    condition: str
    """Type of the node's condition."""
    status: str
    toleration: timedelta
    """For how long it is put up with."""
    reason_pattern: str = ""
    """A regular expression that the condition's reason contains; empty matches any."""
    action: RepairAction = RepairAction.REPLACE
    priority: int = 0
    grace_period: timedelta | None = None
    """Bounds the drain; None leaves that to the claim."""
