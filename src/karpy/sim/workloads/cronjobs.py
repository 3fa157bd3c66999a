"""The CronJob controller: a Job at every time of a schedule."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import ClassVar, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from karpy.codec.fields import JsonObject
from karpy.errors import AlreadyExists, ClusterError, NotFound
from karpy.model.cron import Schedule, ScheduleInvalid, read_schedule
from karpy.model.kinds import CRON_JOB, JOB, Kind
from karpy.model.times import span
from karpy.ports.objects import Removal
from karpy.sim.store.names import time_text
from karpy.sim.workloads.controller import Controller, WorkloadContext
from karpy.sim.workloads.crontimes import Due, due, next_time
from karpy.sim.workloads.jobtallies import COMPLETE, is_finished, outcome_of
from karpy.sim.workloads.owners import control_reference, is_controlled_by, is_deleting
from karpy.sim.workloads.pods import read_time

SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_LATE: Final = timedelta(milliseconds=100)
"""Added to the delay until the next start, so that the start time has surely passed."""
_SUCCESSES_KEPT: Final = 3
_FAILURES_KEPT: Final = 1


class CronJobs(Controller):
    """Creates the Jobs of CronJobs."""

    kind: ClassVar[Kind] = CRON_JOB
    component: ClassVar[str] = "cronjob-controller"

    def __init__(self, context: WorkloadContext) -> None:
        super().__init__(context)
        self.follow(context.jobs)

    def _on_orphan(self, orphan: JsonObject) -> None:
        """Adopt nothing: a CronJob controls only the Jobs that it created."""

    def reconcile(self, obj: JsonObject) -> float | None:
        """Delete old Jobs, update the list of active Jobs, and start a Job if one is due."""
        status = dict(obj.get("status") or {})
        jobs = self.context.jobs.of(obj)
        self._clean_up(obj, status, jobs)
        self._follow_up(obj, status, self.context.jobs.of(obj))
        wait = None
        try:
            if not is_deleting(obj):
                wait = self._start_when_due(obj, status)
        finally:
            if not status.get("active"):
                status.pop("active", None)
            self.write_status(obj, status)
        return wait

    def _clean_up(self, obj: JsonObject, status: JsonObject, jobs: list[JsonObject]) -> None:
        spec = obj["spec"]
        ended = [(end["type"], job) for job in jobs if (end := outcome_of(job)) is not None]
        for is_success, field, usual in (
            (True, "successfulJobsHistoryLimit", _SUCCESSES_KEPT),
            (False, "failedJobsHistoryLimit", _FAILURES_KEPT),
        ):
            limit = spec.get(field)
            past = [job for type_, job in ended if (type_ == COMPLETE) == is_success]
            past.sort(key=_start_order)
            for job in past[: max(0, len(past) - (usual if limit is None else limit))]:
                self._drop(obj, status, job)

    def _follow_up(self, obj: JsonObject, status: JsonObject, jobs: list[JsonObject]) -> None:
        """Update the list of active Jobs."""
        known = {each["uid"] for each in status.get("active") or ()}
        for job in jobs:
            meta, is_known = job["metadata"], job["metadata"]["uid"] in known
            end = outcome_of(job)
            if end is None:
                if not is_known:
                    self.record_warning(
                        obj,
                        "UnexpectedJob",
                        f"Saw a job that the controller did not create or forgot: {meta['name']}",
                    )
                continue
            if is_known:
                _strike(status, meta["uid"])
                self.record_normal(
                    obj,
                    "SawCompletedJob",
                    f"Saw completed job: {meta['name']}, condition: {end['type']}",
                )
            ended = (job.get("status") or {}).get("completionTime")
            if ended and ended > status.get("lastSuccessfulTime", ""):
                status["lastSuccessfulTime"] = ended
        present = {job["metadata"]["uid"] for job in jobs}
        for each in list(status.get("active") or ()):
            if each["uid"] not in present:
                self.record_normal(obj, "MissingJob", f"Active job went missing: {each['name']}")
                _strike(status, each["uid"])

    def _start_when_due(self, obj: JsonObject, status: JsonObject) -> float | None:
        """Start a Job if one is due; return the seconds until the next start."""
        spec = obj["spec"]
        zone = self._zone(obj)
        schedule = self._schedule(obj)
        if zone is None or schedule is None or spec.get("suspend"):
            return None
        now = self.now().astimezone(zone)
        found = due(obj, status, schedule, now)
        if found.problem:
            self.record_warning(
                obj, "InvalidSchedule", f"invalid schedule: {spec['schedule']} : {found.problem}"
            )
            return None
        if found.is_long_overdue:
            self.record_warning(
                obj,
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
                "check clock skew",
            )
        if found.time is not None and self._may_start(obj, status, found, now):
            self._start(obj, status, found.time)
        following = next_time(obj, status, schedule, now)
        return None if following is None else (following + _LATE - now).total_seconds()

    def _may_start(self, obj: JsonObject, status: JsonObject, found: Due, now: datetime) -> bool:
        spec = obj["spec"]
        assert found.time is not None
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and found.time + span(deadline) < now:
            when = found.time.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            self.record_warning(
                obj, "MissSchedule", f"Missed scheduled time to start a job: {when}"
            )
            return False
        active = status.get("active") or ()
        name = _job_name(obj, found.time)
        if any(each["name"] == name for each in active):
            return False
        if status.get("lastScheduleTime") == time_text(found.time.astimezone(UTC)):
            return False
        if active and spec.get("concurrencyPolicy") == "Forbid":
            self.record_normal(
                obj,
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is "
                "Forbid",
            )
            return False
        return True

    def _start(self, obj: JsonObject, status: JsonObject, moment: datetime) -> None:
        if obj["spec"].get("concurrencyPolicy") == "Replace":
            for each in list(status.get("active") or ()):
                job = self.store.find(JOB, each["name"], each["namespace"])
                if job is not None:
                    self._drop(obj, status, job)
        draft = _job(obj, moment, control_reference(self.kind, obj))
        meta = draft["metadata"]
        try:
            made = self.store.create(JOB, draft)
            self.record_normal(obj, "SuccessfulCreate", f"Created job {meta['name']}")
        except AlreadyExists:
            made = self.store.get(JOB, meta["name"], meta["namespace"])
            if not is_controlled_by(made, obj["metadata"]["uid"]):
                return
        except ClusterError as error:
            self.record_warning(obj, "FailedCreate", f"Error creating job: {error.message}")
            raise
        if not is_finished(made):
            status["active"] = [*(status.get("active") or ()), _reference(made)]
        status["lastScheduleTime"] = time_text(moment.astimezone(UTC))

    def _drop(self, obj: JsonObject, status: JsonObject, job: JsonObject) -> None:
        meta = job["metadata"]
        removal = Removal(propagation="Background")
        try:
            self.store.delete(JOB, meta["name"], namespace=meta["namespace"], removal=removal)
        except NotFound:
            return
        _strike(status, meta["uid"])
        self.record_normal(obj, "SuccessfulDelete", f"Deleted job {meta['name']}")

    def _zone(self, obj: JsonObject) -> tzinfo | None:
        name = obj["spec"].get("timeZone")
        if not name:
            return UTC
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            message = f'invalid timeZone: "{name}": unknown time zone {name}'
            self.record_warning(obj, "UnknownTimeZone", message)
            return None

    def _schedule(self, obj: JsonObject) -> Schedule | None:
        text = obj["spec"]["schedule"]
        try:
            return read_schedule(text)
        except ScheduleInvalid as error:
            self.record_warning(
                obj, "UnparseableSchedule", f'unparseable schedule: "{text}" : {error}'
            )
            return None


def _strike(status: JsonObject, uid: str) -> None:
    status["active"] = [each for each in status.get("active") or () if each["uid"] != uid]


def _job_name(obj: JsonObject, moment: datetime) -> str:
    return f"{obj['metadata']['name']}-{int(moment.timestamp()) // 60}"


def _job(obj: JsonObject, moment: datetime, reference: JsonObject) -> JsonObject:
    template = obj["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    when = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
    meta: JsonObject = {
        "name": _job_name(obj, moment),
        "namespace": obj["metadata"]["namespace"],
        "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: when},
        "ownerReferences": [reference],
    }
    if labels := given.get("labels"):
        meta["labels"] = labels
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.name,
        "metadata": meta,
        "spec": template["spec"],
    }


def _reference(job: JsonObject) -> JsonObject:
    meta = job["metadata"]
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.name,
        "name": meta["name"],
        "namespace": meta["namespace"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }


def _start_order(job: JsonObject) -> tuple[bool, str, str]:
    started = (job.get("status") or {}).get("startTime")
    return read_time(started) is None, started or "", job["metadata"]["name"]
