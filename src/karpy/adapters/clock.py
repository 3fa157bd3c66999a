"""The clock on the wall."""

from datetime import UTC, datetime


class WallClock:
    """Says what time the machine thinks it is."""

    def now(self) -> datetime:
        return datetime.now(UTC)
