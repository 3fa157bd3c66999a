from datetime import UTC, datetime, timedelta, timezone

import pytest

from karpy.model.times import parse_duration, parse_moment, write_duration, write_moment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4h", timedelta(hours=4)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        (".5s", timedelta(milliseconds=500)),
        ("1.s", timedelta(seconds=1)),
        ("300ms", timedelta(milliseconds=300)),
        ("7us", timedelta(microseconds=7)),
        ("7\u00b5s", timedelta(microseconds=7)),
        ("-5m", timedelta(minutes=-5)),
        ("+5m", timedelta(minutes=5)),
        ("0", timedelta()),
        ("", None),
        ("5", None),
        ("true", None),
        ("1d", None),
        ("1h 5m", None),
        ("-", None),
        ("1h-5m", None),
        ("\u0661h", None),
        ("9" * 30 + "h", None),
        ("9" * 400 + "h", None),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, expected: timedelta | None) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(), "0s"),
        (timedelta(minutes=5), "5m0s"),
        (timedelta(hours=720), "720h0m0s"),
        (timedelta(minutes=90, seconds=1), "1h30m1s"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(milliseconds=500), "500ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7\u00b5s"),
        (timedelta(minutes=-5), "-5m0s"),
    ],
)
def test_durations_are_written_as_go_writes_them(duration: timedelta, expected: str) -> None:
    assert write_duration(duration) == expected
    assert parse_duration(expected) == duration


def test_a_moment_is_written_in_whole_seconds_of_utc() -> None:
    moment = datetime(2026, 1, 1, 13, 0, 0, 999, tzinfo=timezone(timedelta(hours=1)))

    assert write_moment(moment) == "2026-01-01T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01T12:00:00Z", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("2026-01-01T13:00:00+01:00", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("2026-01-01T12:00:00", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_moment_is_read_with_its_zone_or_not_at_all(text: str, expected: datetime | None) -> None:
    assert parse_moment(text) == expected
