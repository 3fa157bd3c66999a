"""When a cloud calls a node broken, and what is to be done about it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
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


class RepairRules(Struct, frozen=True, gc=False):
    """When nodes are broken, and which were rebooted lately; without policies none is repaired."""

    policies: tuple[RepairPolicy, ...] = ()
    reboots: Mapping[str, tuple[datetime, ...]] = {}
    """When nodes were rebooted, by the UID of their NodeClaim."""
