"""NodePools: what nodes they make, up to which limits, and how these may be disrupted."""

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


class PoolTemplate(Struct, frozen=True, gc=False):
    """
    The part of a NodePool that a claim drifts from when it changes.

    None is a field that is not written. An empty list that is written differs from it: hashes tell
    the two apart.
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
    """A template for nodes; `requirements` as written, in order."""

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
    """Why the NodePool cannot be read as it is now; nothing of it is disrupted then."""


class Headcount(Struct, frozen=True, gc=False):
    """The claims of a pool, by what becomes of them."""

    active: int = 0
    disrupting: int = 0
    """Being replaced; their replacements are active already."""
    deleting: int = 0

    @property
    def total(self) -> int:
        return self.active + self.disrupting + self.deleting


class NodeOverlay(Struct, frozen=True, gc=False):
    """A correction of what the catalog says about some offerings: their price, extra capacity."""

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
    """What it corrects; None if that makes no sense."""
    faults: tuple[str, ...] = ()
    """Why it makes none."""
    conditions: Conditions = Conditions()

    @property
    def name(self) -> str:
        return self.meta.name
