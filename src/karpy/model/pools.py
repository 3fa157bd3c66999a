"""NodePools: what nodes they make, up to which limits, before which others."""

from collections.abc import Mapping

from msgspec import Struct

from karpy.model.constraints import Taint
from karpy.model.disruption import DisruptionPolicy
from karpy.model.records import NodeClassRef, PoolRecord
from karpy.model.requirement import Requirement
from karpy.model.resources import Resources


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
