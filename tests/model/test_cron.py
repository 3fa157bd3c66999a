from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.model.cron import Interval, ScheduleInvalid, read_schedule

NEW_YORK = ZoneInfo("America/New_York")
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
THURSDAY = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)


def _next(text: str, after: datetime = THURSDAY) -> str:
    found = read_schedule(text).next_after(after)
    return "never" if found is None else found.isoformat(timespec="minutes")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-01-01T12:31+00:00"),
        ("30 12 * * *", "2026-01-02T12:30+00:00"),
        ("31 12 * * *", "2026-01-01T12:31+00:00"),
        ("*/15 * * * *", "2026-01-01T12:45+00:00"),
        ("10/15 * * * *", "2026-01-01T12:40+00:00"),
        ("5,50 * * * *", "2026-01-01T12:50+00:00"),
        ("0 9-17/4 * * *", "2026-01-01T13:00+00:00"),
        ("0 9 * * mon-fri", "2026-01-02T09:00+00:00"),
        ("0 9 * * SUN", "2026-01-04T09:00+00:00"),
        ("0 0 1 mar *", "2026-03-01T00:00+00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00+00:00"),
        ("0 0 ? * 1", "2026-01-05T00:00+00:00"),
        ("? ? ? ? ?", "2026-01-01T12:31+00:00"),
        ("+5 013 * * *", "2026-01-01T13:05+00:00"),
        ("0 0 15 * *", "2026-01-15T00:00+00:00"),
        ("0 0 1 1 *", "2027-01-01T00:00+00:00"),
    ],
)
def test_five_fields_say_when_it_is_next(text: str, expected: str) -> None:
    assert _next(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@yearly", "2027-01-01T00:00+00:00"),
        ("@annually", "2027-01-01T00:00+00:00"),
        ("@monthly", "2026-02-01T00:00+00:00"),
        ("@weekly", "2026-01-04T00:00+00:00"),
        ("@daily", "2026-01-02T00:00+00:00"),
        ("@midnight", "2026-01-02T00:00+00:00"),
        ("@hourly", "2026-01-01T13:00+00:00"),
    ],
)
def test_nicknames_stand_for_fields(text: str, expected: str) -> None:
    assert _next(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 13 * fri", "2026-01-02T00:00+00:00"),  # either
        ("0 0 */2 * fri", "2026-01-02T00:00+00:00"),  # a star with a step is no star
        ("0 0 * * fri", "2026-01-02T00:00+00:00"),  # both
        ("0 0 13 * *", "2026-01-13T00:00+00:00"),
        ("0 0 13 * */1", "2026-01-13T00:00+00:00"),
    ],
)
def test_either_day_counts_unless_one_is_left_open(text: str, expected: str) -> None:
    assert _next(text) == expected


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30 feb ?", ", * * * *"])
def test_a_day_that_never_comes_is_none(text: str) -> None:
    assert _next(text) == "never"


def test_seconds_do_not_hide_the_coming_minute() -> None:
    after = THURSDAY + timedelta(seconds=59, microseconds=5)

    assert _next("* * * * *", after) == "2026-01-01T12:31+00:00"


def test_an_hour_that_the_clock_skips_does_not_happen() -> None:
    before = datetime(2026, 3, 8, 0, 0, tzinfo=NEW_YORK)

    assert _next("30 2 * * *", before) == "2026-03-09T02:30-04:00"


def test_an_hour_that_the_clock_shows_twice_happens_twice() -> None:
    before = datetime(2026, 11, 1, 0, 0, tzinfo=NEW_YORK)
    schedule = read_schedule("30 1 * * *")

    first = schedule.next_after(before)
    assert first is not None
    second = schedule.next_after(first)

    assert first.isoformat() == "2026-11-01T01:30:00-04:00"
    assert second is not None
    assert second.isoformat() == "2026-11-01T01:30:00-05:00"


def test_a_day_without_midnight_is_not_lost() -> None:
    before = datetime(2018, 11, 2, 12, 0, tzinfo=SAO_PAULO)

    assert _next("0 12 4 11 *", before) == "2018-11-04T12:00-02:00"


@pytest.mark.parametrize(
    ("text", "pause"),
    [
        ("@every 1h30m", timedelta(minutes=90)),
        ("@every 90.5s", timedelta(seconds=90)),
        ("@every 10ms", timedelta(seconds=1)),
        ("@every 0", timedelta(seconds=1)),
        ("@every -1h", timedelta(seconds=1)),
    ],
)
def test_an_interval_is_whole_seconds(text: str, pause: timedelta) -> None:
    assert read_schedule(text) == Interval(pause)


def test_an_interval_counts_from_the_last_time() -> None:
    after = THURSDAY + timedelta(microseconds=700)

    assert _next("@every 1h", after) == "2026-01-01T13:30+00:00"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("0 * * * * *", "expected exactly 5 fields, found 6: [0 * * * * *]"),
        ("TZ=UTC 0 9 * * *", "expected exactly 5 fields, found 6: [TZ=UTC 0 9 * * *]"),
        ("@never", "unrecognized descriptor: @never"),
        ("@every", "unrecognized descriptor: @every"),
        ("@every soon", 'failed to parse duration @every soon: "soon" is no duration'),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* 24 * * *", "end of range (24) above maximum (23): 24"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("* * * * tue-mon", "beginning of range (2) beyond end of range (1): tue-mon"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("soon * * * *", 'failed to parse int from soon: "soon" is no whole number'),
        ("* * * * mon-x", 'failed to parse int from x: "x" is no whole number'),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_part_that_is_wrong(
    text: str, problem: str
) -> None:
    with pytest.raises(ScheduleInvalid) as caught:
        read_schedule(text)

    assert str(caught.value) == problem


@given(
    st.sampled_from(["*/7 3-5 * * *", "0 0 1 * *", "5 4 * * sun", "0 12 31 * 1-5", "@hourly"]),
    st.timedeltas(timedelta(0), timedelta(days=3650)),
)
def test_nothing_is_due_between_a_moment_and_the_next_time(text: str, later: timedelta) -> None:
    schedule = read_schedule(text)
    moment = THURSDAY + later

    found = schedule.next_after(moment)

    assert found is not None
    assert found > moment
    assert schedule.next_after(found - timedelta(microseconds=1)) == found
