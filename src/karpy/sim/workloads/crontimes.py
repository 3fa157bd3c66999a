"""The due times of CronJobs."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.cron import Schedule
from karpy.model.times import span
from karpy.sim.workloads.pods import read_time

_MANY: Final = 100
_SECOND: Final = timedelta(seconds=1)


class Due(Struct, frozen=True):
    """The latest missed start time of a CronJob."""

    time: datetime | None = None
    since: datetime | None = None
    """The beginning of the interval that was searched."""
    missed: int = 0
    problem: str = ""

    @property
    def is_long_overdue(self) -> bool:
        return self.time is not None and self.missed > _MANY


def due(obj: JsonObject, status: JsonObject, schedule: Schedule, now: datetime) -> Due:
    """Return the latest missed start within the starting deadline."""
    return _latest(obj, status, schedule, now, has_deadline=True)


def next_time(
    obj: JsonObject, status: JsonObject, schedule: Schedule, now: datetime
) -> datetime | None:
    """Return when to reconcile next."""
    found = _latest(obj, status, schedule, now, has_deadline=False)
    if found.time is not None:
        return schedule.next_after(found.time)
    return schedule.next_after(
        now if found.problem or found.missed or not found.since else found.since
    )


def _latest(
    obj: JsonObject, status: JsonObject, schedule: Schedule, now: datetime, *, has_deadline: bool
) -> Due:
    text = status.get("lastScheduleTime") or obj["metadata"]["creationTimestamp"]
    since = read_time(text)
    assert since is not None
    since = since.astimezone(now.tzinfo)
    seconds = obj["spec"].get("startingDeadlineSeconds")
    if has_deadline and seconds is not None:
        since = max(since, now - span(seconds))
    first = schedule.next_after(since)
    if first is None:
        return Due(
            since=since, problem="time difference between two schedules is less than 1 second"
        )
    if now < first:
        return Due(since=since)
    second = schedule.next_after(first)
    if second is None or now < second:
        return Due(first, since)
    # The intervals of a schedule may differ: start one interval early and step.
    step = max(_SECOND, second - first)
    missed = (now - first) // step + 1
    moment: datetime | None = first + (missed - 2) * step
    latest = None
    while moment is not None and (moment := schedule.next_after(moment)) is not None:
        if moment > now:
            break
        latest = moment
    return Due(latest, since, missed)
