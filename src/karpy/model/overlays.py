"""NodeOverlays as controllers keep them."""

from msgspec import Struct

from karpy.model.conditions import Conditions
from karpy.model.pools import NodeOverlay
from karpy.model.records import Identity


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
