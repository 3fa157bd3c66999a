"""Node classes, as far as every provider's are alike."""

from msgspec import Struct

from karpy.model.conditions import Condition


class ClassState(Struct, frozen=True, gc=False):
    """What a node class says of itself."""

    ready: Condition | None = None
    is_deleting: bool = False
    generation: int = 0
