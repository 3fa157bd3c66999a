"""Cron schedules as Kubernetes reads them: for CronJobs and the windows of disruption budgets."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.model.times import parse_duration

SCHEDULE_LENGTH_MAX: Final = 1024
"""The longest schedule that is read; five fields that list all their values have half of it."""
_YEARS_AHEAD: Final = 5
"""A schedule that does not fire for this many years never fires: `0 0 31 2 *`."""
_MINUTE: Final = timedelta(minutes=1)
_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)
_EVERY: Final = "@every "
_INTEGER: Final = re.compile(r"\+?[0-9]+", re.ASCII)


class ScheduleInvalid(ValueError):
    """A text is no schedule; the message says which part of it."""


class Cron(Struct, frozen=True, gc=False):
    """The minutes at which a schedule fires; each field is a set of bits."""

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    """Sunday is bit 0."""
    is_any_day: bool
    """Day of month or day of week is `*`: both must match; otherwise one of them is enough."""

    def next_after(self, moment: datetime) -> datetime | None:
        """
        Return the first minute after a moment at which the schedule fires; None if it never does.

        Fields are local time in the time zone of the moment: a time that a change to summer time
        skips does not fire, a time that comes twice fires twice.
        """
        zone = moment.tzinfo
        assert zone is not None
        instant = moment.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        last_year = moment.year + _YEARS_AHEAD
        while True:
            local = instant.astimezone(zone)
            if local.year > last_year:
                return None
            if not self.months >> local.month & 1:
                first = local.replace(day=1) + 31 * _DAY
                instant = _midnight(first.replace(day=1))
            elif not self._has_day(local):
                instant = _midnight(local + _DAY)
            elif not self.hours >> local.hour & 1:
                instant += (60 - local.minute) * _MINUTE
            elif not self.minutes >> local.minute & 1:
                instant += _MINUTE
            else:
                return local

    def _has_day(self, local: datetime) -> bool:
        is_day = bool(self.days >> local.day & 1)
        is_weekday = bool(self.weekdays >> local.isoweekday() % 7 & 1)
        return is_day and is_weekday if self.is_any_day else is_day or is_weekday


class Interval(Struct, frozen=True, gc=False):
    """The schedule `@every`: fires one pause after it fired last."""

    pause: timedelta

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the moment one pause later, on a whole second."""
        return moment.replace(microsecond=0) + self.pause


Schedule = Cron | Interval


class _Field(Struct, frozen=True):
    low: int
    high: int
    names: Mapping[str, int] = {}


def _named(first: int, names: str) -> dict[str, int]:
    return {name: first + index for index, name in enumerate(names.split())}


_MINUTES: Final = _Field(0, 59)
_HOURS: Final = _Field(0, 23)
_DAYS: Final = _Field(1, 31)
_MONTHS: Final = _Field(1, 12, _named(1, "jan feb mar apr may jun jul aug sep oct nov dec"))
_WEEKDAYS: Final = _Field(0, 6, _named(0, "sun mon tue wed thu fri sat"))
_FIELDS: Final = (_MINUTES, _HOURS, _DAYS, _MONTHS, _WEEKDAYS)
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def read_schedule(text: str) -> Schedule:
    """Read five fields, a nickname such as `@daily`, or `@every 1h30m`; raise ScheduleInvalid."""
    # Parity: schedules of budgets: they have the syntax of robfig/cron v3, which Kubernetes and
    # Karpenter use.
    if not text:
        raise ScheduleInvalid("empty spec string")
    if len(text) > SCHEDULE_LENGTH_MAX:
        raise ScheduleInvalid(f"{len(text)} characters are more than {SCHEDULE_LENGTH_MAX}")
    if text.startswith(_EVERY):
        return Interval(_pause(text))
    if text.startswith("@") and text not in _NICKNAMES:
        raise ScheduleInvalid(f"unrecognized descriptor: {text}")
    parts = _NICKNAMES.get(text, text).split()
    if len(parts) != len(_FIELDS):
        raise ScheduleInvalid(
            f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
        )
    minutes, hours, days, months, weekdays = map(_bits, parts, _FIELDS)
    is_any_day = _is_open(parts[2]) or _is_open(parts[4])
    return Cron(minutes, hours, days, months, weekdays, is_any_day)


def _midnight(local: datetime) -> datetime:
    start = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return start.astimezone(UTC)


def _bits(text: str, field: _Field) -> int:
    bits = 0
    for expression in filter(None, text.split(",")):
        for value in _range(expression, field):
            bits |= 1 << value
    return bits


def _range(expression: str, field: _Field) -> range:
    span, *steps = expression.split("/")
    low, *highs = span.split("-")
    if len(steps) > 1:
        raise ScheduleInvalid(f"too many slashes: {expression}")
    if low in {"*", "?"}:
        first, last = field.low, field.high
    elif len(highs) > 1:
        raise ScheduleInvalid(f"too many hyphens: {expression}")
    else:
        first = _value(low, field)
        last = _value(highs[0], field) if highs else first
    step = _number(steps[0]) if steps else 1
    if steps and not highs:
        # `10/15` is `10-59/15`.
        last = field.high
    _check(first, last, step, field, expression)
    return range(first, last + 1, step)


def _check(first: int, last: int, step: int, field: _Field, expression: str) -> None:
    if first < field.low:
        why = f"beginning of range ({first}) below minimum ({field.low})"
    elif last > field.high:
        why = f"end of range ({last}) above maximum ({field.high})"
    elif first > last:
        why = f"beginning of range ({first}) beyond end of range ({last})"
    elif step == 0:
        why = "step of range should be a positive number"
    else:
        return
    raise ScheduleInvalid(f"{why}: {expression}")


def _value(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ScheduleInvalid(f'failed to parse int from {text}: "{text}" is no whole number')
    return int(text)


def _is_open(text: str) -> bool:
    """Say whether a field has a star without a step, which matches every value."""
    return any(_is_star(*each.partition("/")) for each in text.split(","))


def _is_star(span: str, _: str, step: str) -> bool:
    return span.partition("-")[0] in {"*", "?"} and (not step or _number(step) <= 1)


def _pause(text: str) -> timedelta:
    duration = text[len(_EVERY) :]
    pause = parse_duration(duration)
    if pause is None:
        raise ScheduleInvalid(f'failed to parse duration {text}: "{duration}" is no duration')
    return max(_SECOND, pause // _SECOND * _SECOND)
