"""The port that emits events about objects."""

from typing import Protocol

from karpy.model.notices import Notice


class Notices(Protocol):
    """Emits events; never blocks and never fails."""

    def emit(self, notice: Notice) -> None:
        """Emit an event, unless an equal one was emitted a moment ago."""
