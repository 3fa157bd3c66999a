"""NodePools and NodeOverlays: templates of nodes, limits, and policies of disruption."""

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum

from msgspec import Struct

from karpy.model.conditions import Conditions
from karpy.model.constraints import Taint
from karpy.model.records import Identity, NodeClassRef, PoolRecord
from karpy.model.requirements import Requirement
from karpy.model.resources import Resources


class DisruptionReason(Enum):
    """Why a node is disrupted; the values appear in budgets of NodePools and in events."""

    UNDERUTILIZED = "Underutilized"
    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNHEALTHY = "Unhealthy"


class ConsolidationPolicy(Enum):
    """Which nodes consolidation may disrupt."""

    WHEN_EMPTY = "WhenEmpty"
    WHEN_EMPTY_OR_UNDERUTILIZED = "WhenEmptyOrUnderutilized"
    BALANCED = "Balanced"


class Budget(Struct, frozen=True, gc=False):
    """A disruption budget: how many nodes may be disrupted at once, by reason and time."""

    nodes: str = "10%"
    """A number, or a percentage of the nodes."""
    reasons: tuple[str, ...] | None = None
    """None stands for all reasons; an empty list for none."""
    schedule: str | None = None
    """The cron schedule, in UTC, at which the budget becomes active; None is always active."""
    duration: timedelta | None = None
    """How long the budget stays active after its schedule fires."""


class DisruptionPolicy(Struct, frozen=True, gc=False):
    """When and how many nodes of a pool may be disrupted; defaults are those of the API."""

    consolidate_after: timedelta | None = timedelta()
    """How long no pod may have been added to a node or removed from it; None is never."""
    consolidation: ConsolidationPolicy = ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED
    budgets: tuple[Budget, ...] = (Budget(),)


class PoolTemplate(Struct, frozen=True, gc=False):
    """
    The fields of a NodePool that are hashed: a change makes its NodeClaims drift.

    None stands for an absent field. An empty list has another hash than an absent one.
    """

    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    taints: tuple[Taint, ...] | None = None
    startup_taints: tuple[Taint, ...] | None = None
    node_class: NodeClassRef | None = None
    grace_period: timedelta | None = None
    expire_after: timedelta | None = None
    """None never expires."""


class NodePool(Struct, frozen=True, gc=False):
    """A NodePool as decisions see it; `requirements` have the order of the manifest."""

    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    requirements: tuple[Requirement, ...] = ()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    node_class: NodeClassRef = NodeClassRef()
    limits: Resources = {}
    weight: int = 0
    is_static: bool = False
    is_ready: bool = True
    is_deleting: bool = False
    policy: DisruptionPolicy = DisruptionPolicy()
    """When and how many of its nodes may be disrupted."""
    record: PoolRecord | None = None
    """The NodePool object."""
    unreadable: str = ""
    """Why the NodePool cannot be read; none of its nodes is then disrupted."""


class Headcount(Struct, frozen=True, gc=False):
    """The number of NodeClaims of a NodePool, by state."""

    active: int = 0
    disrupting: int = 0
    """NodeClaims that are being replaced; their replacements count as active."""
    deleting: int = 0

    @property
    def total(self) -> int:
        return self.active + self.disrupting + self.deleting


class NodeOverlay(Struct, frozen=True, gc=False):
    """A NodeOverlay: corrects the price of some offerings, or adds capacity to them."""

    name: str
    requirements: tuple[Requirement, ...] = ()
    price: str | None = None
    """An absolute price as text, or None."""
    price_adjustment: str | None = None
    """`+0.5`, `-10%` and the like, or None."""
    capacity: Resources = {}
    weight: int = 0


class OverlayRecord(Struct, frozen=True, gc=False):
    """A NodeOverlay in full."""

    meta: Identity
    overlay: NodeOverlay | None = None
    """The correction; None if the NodeOverlay is invalid."""
    faults: tuple[str, ...] = ()
    """Why the NodeOverlay is invalid."""
    conditions: Conditions = Conditions()

    @property
    def name(self) -> str:
        return self.meta.name
