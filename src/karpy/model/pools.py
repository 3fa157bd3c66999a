"""NodePools: what nodes they make, up to which limits, before which others."""

from collections.abc import Mapping

from msgspec import Struct

from karpy.model.constraints import Taint
from karpy.model.requirement import Requirement
from karpy.model.resources import Resources


class NodeClassRef(Struct, frozen=True, gc=False):
    """The provider's object with the details of a machine."""

    group: str = ""
    kind: str = ""
    name: str = ""


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
