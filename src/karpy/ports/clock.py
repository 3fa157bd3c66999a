"""The port of time; code waits by `asyncio.sleep`, which takes no time on a virtual loop."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The time of the machine, or of a simulated cluster on virtual time."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
