"""Time. Waiting is `asyncio.sleep`, which takes no time on a virtual loop."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Says what time it is: of the machine, or of a world on virtual time."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
