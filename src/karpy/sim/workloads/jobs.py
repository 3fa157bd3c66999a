"""The Job controller: runs pods until enough of them have succeeded."""

from typing import ClassVar, Final

from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError
from karpy.model.kinds import JOB, POD, Kind
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.paging import key_of
from karpy.sim.worker import Worker
from karpy.sim.workloads.conditions import find_condition
from karpy.sim.workloads.controller import WorkloadContext
from karpy.sim.workloads.jobbackoffs import JobBackoff, finished_at
from karpy.sim.workloads.jobindexes import index_of, is_indexed, numbered
from karpy.sim.workloads.jobstatuses import counted, now_running, to_release, with_text
from karpy.sim.workloads.jobtallies import (
    COMPLETE,
    SUCCESS_MET,
    TRACKED,
    JobOutcome,
    JobTally,
    completions_of,
    failures_of_index,
    has_failed,
    is_finished,
    is_suspended,
    is_tracked,
    outcome,
    parallelism_of,
    replaces_failed_only,
    seconds_until_deadline,
    tally,
)
from karpy.sim.workloads.owners import controller_of, is_deleting, without_finalizer
from karpy.sim.workloads.podcontroller import PodWriter
from karpy.sim.workloads.pods import first_to_go

_AT_ONCE_MAX: Final = 500
_OWN_NAME: Final = "kubernetes.io/job-controller"
_SUSPENDED: Final = "Suspended"


class Jobs(PodWriter):
    """Runs the pods of Jobs to completion."""

    kind: ClassVar[Kind] = JOB
    component: ClassVar[str] = "job-controller"

    def __init__(self, context: WorkloadContext) -> None:
        super().__init__(context)
        self._backoffs: dict[str, JobBackoff] = {}
        self._releases = Worker(self._release)
        """Pods with the tracking finalizer and without a Job: the finalizer is to be removed."""

    def start(self) -> None:
        """Reconcile every Job, and remove the finalizer from pods whose Job is gone."""
        self._ends.append(self.store.subscribe(JOB, self._on_job))
        super().start()

    def stop(self) -> None:
        """Stop reconciling."""
        super().stop()
        self._releases.stop()

    def forget(self, key: str) -> None:
        """Drop the state of a Job that was deleted."""
        self._backoffs.pop(key, None)

    def reconcile(self, obj: JsonObject) -> float | None:
        """Count ended pods, create and delete pods, and write the status of the Job."""
        if obj["spec"].get("managedBy") not in {None, "", _OWN_NAME}:
            return None
        if is_finished(obj):
            self.forget(key_of(obj))
            self._let_go(self.context.pods.of(obj))
            return None
        pods = self.context.pods.claimed(self.kind, obj, self.selector(obj))
        obj = self._begun(obj)
        count = tally(obj, pods)
        key = key_of(obj)
        backoff = self._backoffs.get(key, JobBackoff())
        backoff = backoff.after(count.fresh_successes, count.fresh_failures)
        self._backoffs[key] = backoff
        end = outcome(count, self.now())
        wait, failure = None, None
        try:
            if end is not None:
                self._stop_pods(count)
            elif not is_deleting(obj):
                wait = self._manage(count, backoff)
        except ClusterError as error:
            failure = error
        end = end or _success(count)
        obj = self._settle(count, end)
        if failure is not None:
            raise failure
        if end is not None:
            # The deletion of the last pod queues the Job again.
            return None
        left = seconds_until_deadline(obj, self.now())
        return min((each for each in (wait, left) if each is not None), default=None)

    def _begun(self, obj: JsonObject) -> JsonObject:
        """Write the start time of a Job, and whether it is suspended."""
        status = obj.get("status") or {}
        now = self.now_text()
        condition = find_condition(status, _SUSPENDED)
        was_suspended = condition is not None and condition["status"] == "True"
        if is_suspended(obj):
            if not was_suspended:
                self.record_normal(obj, "Suspended", "Job suspended")
                status = with_text(
                    status, _SUSPENDED, ("True", "JobSuspended", "Job suspended"), now
                )
        elif was_suspended:
            self.record_normal(obj, "Resumed", "Job resumed")
            status = with_text(status, _SUSPENDED, ("False", "JobResumed", "Job resumed"), now)
            status["startTime"] = now
        elif "startTime" not in status:
            status = {**status, "startTime": now}
        return obj if status is (obj.get("status") or {}) else {**obj, "status": status}

    def _stop_pods(self, count: JobTally) -> None:
        for pod in count.active:
            self.drop_pod(count.job, pod)
        count.terminating += len(count.active)
        count.active = []

    def _manage(self, count: JobTally, backoff: JobBackoff) -> float | None:
        """Create and delete pods to match the Job; return the seconds of its backoff, or None."""
        job = count.job
        surplus = self._surplus(count)
        if surplus:
            for pod in surplus[:_AT_ONCE_MAX]:
                # Remove the finalizer, so that the pod does not count as failed.
                self._let_go([pod])
                self._drop_active(count, pod)
            return 0.0 if len(surplus) > _AT_ONCE_MAX else None
        missing = _wanted(count) - len(count.active)
        if replaces_failed_only(job):
            missing -= count.terminating
        if missing <= 0 or is_suspended(job):
            return None
        has_own_pace = "backoffLimitPerIndex" in job["spec"]
        wait = 0.0 if has_own_pace else backoff.seconds_left(self.now())
        if wait:
            return wait
        if is_indexed(job):
            return self._make_indexed(count, missing)
        template = _tracked(job["spec"]["template"])
        count.active.extend(self.make_pods(job, template, min(missing, _AT_ONCE_MAX)))
        return 0.0 if missing > _AT_ONCE_MAX else None

    def _drop_active(self, count: JobTally, pod: JsonObject) -> None:
        name = pod["metadata"]["name"]
        left = self.drop_pod(count.job, pod)
        count.active = [each for each in count.active if each["metadata"]["name"] != name]
        count.terminating += left is not None

    def _surplus(self, count: JobTally) -> list[JsonObject]:
        """Return the active pods to delete."""
        job, active = count.job, first_to_go(count.active, {}, self.now())
        if is_suspended(job):
            return active
        doubles: list[JsonObject] = []
        if is_indexed(job):
            limit = completions_of(job) or 0
            last = {index_of(pod): pod for pod in active}
            doubles = [
                pod
                for pod in active
                if (index := index_of(pod)) is None or index >= limit or last[index] is not pod
            ]
        excess = len(active) - _wanted(count)
        names = {pod["metadata"]["name"] for pod in doubles}
        others = [pod for pod in active if pod["metadata"]["name"] not in names]
        return doubles + others[: max(0, excess - len(doubles))]

    def _make_indexed(self, count: JobTally, missing: int) -> float | None:
        job = count.job
        done = count.succeeded_indexes | count.failed_indexes
        taken = done | {index for pod in count.active if (index := index_of(pod)) is not None}
        free = [each for each in range(completions_of(job) or 0) if each not in taken]
        template = _tracked(job["spec"]["template"])
        waits = []
        for index in free[: min(missing, _AT_ONCE_MAX)]:
            failures = None
            if "backoffLimitPerIndex" in job["spec"]:
                failures = failures_of_index(job, count.pods, index)
                last = [p for p in count.pods if index_of(p) == index and has_failed(job, p)]
                pace = JobBackoff(failures, max(map(finished_at, last), default=None))
                if wait := pace.seconds_left(self.now()):
                    waits.append(wait)
                    continue
            named, start = numbered(template, job["metadata"]["name"], index, failures)
            count.active.append(self.make_pod(job, named, generate_name=start))
        return min(waits, default=None)

    def _settle(self, count: JobTally, end: JobOutcome | None) -> JsonObject:
        """Count ended pods, write the status, and remove the finalizer from the counted pods."""
        job, releases = count.job, to_release(count, end)
        status = counted(count, end, releases)
        if end is not None and find_condition(status, end.type) is None:
            # The condition is written before pods are deleted, so that watches see it first.
            text = ("True", end.reason, end.message)
            status = with_text(status, end.type, text, self.now_text())
            job = self.write_status(job, now_running(status, self.context.pods.of(job)))
        self._let_go(releases)
        pods = self.context.pods.of(job)
        status = now_running(status, pods)
        is_over = end is not None and not status["terminating"] and not any(map(is_tracked, pods))
        if end is not None and is_over:
            status = self._ended(status, end)
        written = self.write_status(job, status)
        if end is not None and is_over:
            self._record_end(written, end)
        return written

    def _ended(self, status: JsonObject, end: JobOutcome) -> JsonObject:
        now = self.now_text()
        ended = with_text(status, end.final, ("True", end.reason, end.message), now)
        return {**ended, "completionTime": now} if end.final == COMPLETE else ended

    def _record_end(self, job: JsonObject, end: JobOutcome) -> None:
        if end.final != COMPLETE:
            self.record_warning(job, end.reason, end.message)
            return
        completions = completions_of(job)
        if completions is not None and job["status"].get("succeeded", 0) > completions:
            self.record_warning(
                job,
                "TooManySucceededPods",
                "Too many succeeded pods running after completion count reached",
            )
        self.record_normal(job, "Completed", "Job completed")

    def _let_go(self, pods: list[JsonObject]) -> None:
        for pod in pods:
            meta = pod["metadata"]
            current = self.store.find(POD, meta["name"], meta["namespace"])
            if current is not None and is_tracked(current):
                self.store.replace(POD, without_finalizer(current, TRACKED))

    def _on_job(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        if event.type is EventType.DELETED:
            for pod in self.context.pods.of(event.object):
                self._releases.add(key_of(pod))

    def _on_orphan(self, orphan: JsonObject) -> None:
        if is_tracked(orphan):
            self._releases.add(key_of(orphan))
        super()._on_orphan(orphan)

    def _release(self, key: str) -> None:
        """Remove the tracking finalizer of a pod without a Job."""
        namespace, _, name = key.partition("/")
        pod = self.store.find(POD, name, namespace)
        if pod is None or not is_tracked(pod):
            return
        reference = controller_of(pod)
        if reference is not None:
            job = self.store.find(JOB, reference["name"], namespace)
            if reference["kind"] != JOB.name:
                return
            if job is not None and job["metadata"]["uid"] == reference["uid"]:
                return
        self._let_go([pod])


def _wanted(count: JobTally) -> int:
    """Return how many pods should be active now."""
    completions, parallelism = completions_of(count.job), parallelism_of(count.job)
    if completions is None:
        return len(count.active) if count.succeeded else parallelism
    left = completions - count.succeeded - len(count.failed_indexes)
    return max(0, min(parallelism, left))


def _success(count: JobTally) -> JobOutcome | None:
    completions = completions_of(count.job)
    is_enough = count.succeeded > 0 if completions is None else count.succeeded >= completions
    if count.active or not is_enough:
        return None
    return JobOutcome(
        SUCCESS_MET, "CompletionsReached", "Reached expected number of succeeded pods"
    )


def _tracked(template: JsonObject) -> JsonObject:
    """Return a template with the tracking finalizer."""
    meta = template.get("metadata") or {}
    finalizers = [*(meta.get("finalizers") or ()), TRACKED]
    return {**template, "metadata": {**meta, "finalizers": finalizers}}
