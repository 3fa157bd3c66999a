"""What a NodePool says about the disruption of its nodes."""

from datetime import timedelta
from enum import Enum

from msgspec import Struct


class DisruptionReason(Enum):
    """Why a node is disrupted; the values are what users write and events say."""

    UNDERUTILIZED = "Underutilized"
    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNHEALTHY = "Unhealthy"


class ConsolidationPolicy(Enum):
    """Which nodes may go for the sake of cost."""

    WHEN_EMPTY = "WhenEmpty"
    WHEN_EMPTY_OR_UNDERUTILIZED = "WhenEmptyOrUnderutilized"
    BALANCED = "Balanced"


class Budget(Struct, frozen=True, gc=False):
    """How many nodes may go at once, for some reasons, in some hours."""

    nodes: str = "10%"
    """A number, or a share of the nodes."""
    reasons: tuple[str, ...] | None = None
    """None stands for all; an empty list for none."""
    schedule: str | None = None
    """When the budget begins to hold, in UTC; None is always."""
    duration: timedelta | None = None
    """For how long it then holds."""


class DisruptionPolicy(Struct, frozen=True, gc=False):
    """When and how many nodes of a pool may be disrupted; defaults are those of the API."""

    consolidate_after: timedelta | None = timedelta()
    """How long a node's pods must have been quiet; None is never."""
    consolidation: ConsolidationPolicy = ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED
    budgets: tuple[Budget, ...] = (Budget(),)
