from datetime import UTC, datetime

from karpy.adapters.clock import WallClock


def test_the_wall_clock_tells_the_time_in_utc() -> None:
    before = datetime.now(UTC)

    now = WallClock().now()

    assert before <= now <= datetime.now(UTC)
    assert now.tzinfo is UTC
