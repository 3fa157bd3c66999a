"""Where people are told about objects."""

from typing import Protocol

from karpy.model.notices import Notice


class Notices(Protocol):
    """Tells people; never waits and never fails."""

    def tell(self, notice: Notice) -> None:
        """Have a notice said, unless the same was said a moment ago."""
