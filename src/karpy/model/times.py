"""Moments as Kubernetes writes them, durations as Go does."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_MICROSECONDS: Final = {
    "ns": 0.001,
    "us": 1.0,
    "\u00b5s": 1.0,
    "\u03bcs": 1.0,
    "ms": 1e3,
    "s": 1e6,
    "m": 60e6,
    "h": 3600e6,
}
_MILLI: Final = 1000
_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE


def parse_duration(text: str) -> timedelta | None:
    """Read a duration such as `1h30m`, `-5s` or `0`; None if it is none, or too long."""
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    if unsigned == "0":
        return timedelta()
    parts = _PART.findall(unsigned)
    if not parts or "".join(number + unit for number, unit in parts) != unsigned:
        return None
    total = sum(float(number) * _MICROSECONDS[unit] for number, unit in parts)
    try:
        return timedelta(microseconds=-total if text.startswith("-") else total)
    except OverflowError:
        return None


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
    """Read a moment as RFC 3339 has it; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def write_moment(moment: datetime) -> str:
    """Write a moment as Kubernetes does: whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _decimal(amount: int, scale: int) -> str:
    whole, part = divmod(amount, scale)
    digits = f"{part:0{len(str(scale)) - 1}d}".rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)
