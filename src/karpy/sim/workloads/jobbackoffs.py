"""The backoff of Jobs after failed pods."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.times import span
from karpy.sim.workloads.pods import read_time

_FIRST_SECONDS: Final = 10.0
_LONGEST_SECONDS: Final = 600.0


class JobBackoff(Struct, frozen=True):
    """The failures of a Job since the last success."""

    failures: int = 0
    last: datetime | None = None

    def after(self, successes: list[JsonObject], failures: list[JsonObject]) -> "JobBackoff":
        """Return the backoff after further pods have ended."""
        times = sorted(map(finished_at, failures))
        if not successes:
            return JobBackoff(self.failures + len(times), times[-1]) if times else self
        latest = max(map(finished_at, successes))
        later = [each for each in times if each > latest]
        return JobBackoff(len(later), later[-1]) if later else JobBackoff()

    def seconds_left(self, now: datetime) -> float:
        """Return the seconds until the next pod may be created."""
        if not self.failures or self.last is None:
            return 0.0
        pause = min(_LONGEST_SECONDS, _FIRST_SECONDS * (1 << min(self.failures - 1, 30)))
        return max(0.0, pause - (now - self.last).total_seconds())


def finished_at(pod: JsonObject) -> datetime:
    """Return when a pod ended, estimated if its status does not say."""
    meta, status = pod["metadata"], pod.get("status") or {}
    ends = [
        read_time(((each.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for each in status.get("containerStatuses") or ()
    ]
    known = [each for each in ends if each is not None]
    if known and len(known) == len(ends):
        return max(known)
    for condition in status.get("conditions") or ():
        since = read_time(condition.get("lastTransitionTime"))
        if condition["type"] == "Ready" and condition.get("status") == "False" and since:
            return since
    if deleted := read_time(meta.get("deletionTimestamp")):
        return deleted - span(meta.get("deletionGracePeriodSeconds") or 0)
    created = read_time(meta["creationTimestamp"])
    assert created is not None
    return created
