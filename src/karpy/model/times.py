"""Timestamps in the format of Kubernetes, and durations in the format of Go, within safe bounds."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

DURATION_LENGTH_MAX: Final = 64
"""The longest text that is read as a duration; Go writes its longest one in 26 characters."""
MOMENT_LENGTH_MAX: Final = 64
_NANOSECONDS_MAX: Final = 2**63 - 1
LONGEST: Final = timedelta(microseconds=_NANOSECONDS_MAX // 1000)
"""An `int64` of nanoseconds, 292 years: the longest duration that an object can hold."""
_FIRST_YEAR: Final = 1000
_LAST_YEAR: Final = 9000
"""Moments of objects are moved into these years, so that three durations can be added to any."""
_FIRST: Final = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)
# Possessive quantifiers: without backtracking, a text is read in one pass.
_PART: Final = re.compile(
    r"(?=\.?[0-9])([0-9]*+)(?:\.([0-9]*+))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII
)
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_MILLI: Final = 1000
_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE


def parse_duration(text: str, *, saturates: bool = False) -> timedelta | None:
    """
    Read a duration such as `1h30m`, `-5s` or `0`; None if the text is not a duration.

    A duration longer than `LONGEST` is invalid, as in Go; with `saturates` it becomes `LONGEST`.
    """
    nanoseconds = _nanoseconds(text) if len(text) <= DURATION_LENGTH_MAX else None
    if nanoseconds is None or (abs(nanoseconds) > _NANOSECONDS_MAX and not saturates):
        return None
    # Go rounds towards zero.
    duration = timedelta(microseconds=min(abs(nanoseconds), _NANOSECONDS_MAX) // 1000)
    return -duration if nanoseconds < 0 else duration


def span(seconds: float) -> timedelta:
    """Turn an object's number of seconds into a duration, limited to plus or minus `LONGEST`."""
    if abs(seconds) >= LONGEST.total_seconds():
        return LONGEST if seconds > 0 else -LONGEST
    return timedelta(seconds=seconds)


def clamp_moment(moment: datetime) -> datetime:
    """Return a moment, or the nearest one to which durations can be added without overflow."""
    if _FIRST_YEAR <= moment.year < _LAST_YEAR:
        return moment
    return max(_FIRST, min(moment, _LAST))


def write_duration(duration: timedelta) -> str:
    """Write a duration the way Go does: `5m0s`, `720h0m0s`, `1.5s`, `500ms`."""
    sign = "-" if duration < timedelta() else ""
    micros = abs(duration) // timedelta(microseconds=1)
    if not micros:
        return "0s"
    if micros < _SECOND:
        unit, scale = ("ms", _MILLI) if micros >= _MILLI else ("\u00b5s", 1)
        return f"{sign}{_decimal(micros, scale)}{unit}"
    hours, rest = divmod(micros, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    text = f"{_decimal(rest, _SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def parse_moment(text: str) -> datetime | None:
    """Read a moment in the format of RFC 3339; None if the text is not one."""
    try:
        moment = datetime.fromisoformat(text) if len(text) <= MOMENT_LENGTH_MAX else None
    except ValueError:
        return None
    return None if moment is None or moment.tzinfo is None else clamp_moment(moment)


def write_moment(moment: datetime) -> str:
    """Write a moment as Kubernetes does: whole seconds, UTC."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _nanoseconds(text: str) -> int | None:
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    if unsigned == "0":
        return 0
    total = at = 0
    while at < len(unsigned):
        part = _PART.match(unsigned, at)
        if part is None:
            return None
        whole, fraction, unit = part[1], part[2] or "", _NANOSECONDS[part[3]]
        total += int(f"0{whole}{fraction}") * unit // 10 ** len(fraction)
        at = part.end()
    if not at:
        return None
    return -total if text.startswith("-") else total


def _decimal(amount: int, scale: int) -> str:
    whole, part = divmod(amount, scale)
    digits = f"{part:0{len(str(scale)) - 1}d}".rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)
