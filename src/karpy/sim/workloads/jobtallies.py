"""The progress of a Job, from its status and its pods."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.times import span
from karpy.sim.workloads.conditions import find_condition
from karpy.sim.workloads.jobindexes import failures_before, index_of, is_indexed, read_indexes
from karpy.sim.workloads.jobpolicies import (
    FAIL_INDEX,
    FAIL_JOB,
    IGNORE,
    action_on,
    success_rule,
)
from karpy.sim.workloads.owners import is_deleting
from karpy.sim.workloads.pods import (
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    is_active,
    is_terminating,
    phase_of,
    read_time,
)

TRACKED: Final = "batch.kubernetes.io/job-tracking"
COMPLETE: Final = "Complete"
FAILURE: Final = "Failed"
SUCCESS_MET: Final = "SuccessCriteriaMet"
FAILURE_TARGET: Final = "FailureTarget"
_USUAL_BACKOFF: Final = 6
_UNLIMITED: Final = 2**31 - 1


class JobOutcome(Struct, frozen=True):
    """How a Job ends: its first condition, with reason and message."""

    type: str
    reason: str
    message: str

    @property
    def final(self) -> str:
        """The type of the condition that is written once all pods are gone."""
        return COMPLETE if self.type == SUCCESS_MET else FAILURE


class JobTally(Struct):
    """The pods of a Job by state."""

    job: JsonObject
    pods: list[JsonObject]
    active: list[JsonObject]
    terminating: int
    fresh_successes: list[JsonObject]
    """Pods that succeeded and are not in the status yet."""
    fresh_failures: list[JsonObject]
    succeeded: int
    failed: int
    succeeded_indexes: set[int]
    failed_indexes: set[int]


def is_finished(job: JsonObject) -> bool:
    """Say whether a Job is complete or failed."""
    return outcome_of(job) is not None


def outcome_of(job: JsonObject) -> JsonObject | None:
    """Return the condition by which a Job has ended."""
    for type_ in (COMPLETE, FAILURE):
        found = find_condition(job.get("status"), type_)
        if found is not None and found.get("status") == "True":
            return found
    return None


def is_suspended(job: JsonObject) -> bool:
    """Say whether `spec.suspend` of a Job is true."""
    return bool(job["spec"].get("suspend"))


def is_tracked(pod: JsonObject) -> bool:
    """Say whether a pod has the finalizer of pods not counted in the status."""
    return TRACKED in (pod["metadata"].get("finalizers") or ())


def replaces_failed_only(job: JsonObject) -> bool:
    """Say whether a pod is replaced only once it has failed, not while it is terminating."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == FAILED or bool(spec.get("podFailurePolicy"))


def has_failed(job: JsonObject, pod: JsonObject) -> bool:
    """Say whether a pod counts as failed; a deleting pod does unless its end must be awaited."""
    phase = phase_of(pod)
    if phase == FAILED:
        return True
    return not replaces_failed_only(job) and is_deleting(pod) and phase != SUCCEEDED


def completions_of(job: JsonObject) -> int | None:
    """Return `spec.completions`; None if one success completes the Job."""
    completions = job["spec"].get("completions")
    return None if completions is None else int(completions)


def parallelism_of(job: JsonObject) -> int:
    """Return `spec.parallelism`."""
    parallelism = job["spec"].get("parallelism")
    return 1 if parallelism is None else int(parallelism)


def tally(job: JsonObject, pods: list[JsonObject]) -> JobTally:
    """Sort the pods of a Job by state."""
    status, completions = job.get("status") or {}, completions_of(job)
    countable = [pod for pod in pods if is_tracked(pod) and _has_place(job, pod)]
    successes = [pod for pod in countable if phase_of(pod) == SUCCEEDED]
    failures = [pod for pod in countable if has_failed(job, pod)]
    counted = [pod for pod in failures if action_on(job, pod)[0] != IGNORE]
    indexes: set[int] = set()
    if is_indexed(job):
        indexes = read_indexes(status.get("completedIndexes"), completions or 0)
        indexes.update(index for pod in successes if (index := index_of(pod)) is not None)
    return JobTally(
        job=job,
        pods=pods,
        active=[pod for pod in pods if is_active(pod)],
        terminating=sum(map(is_terminating, pods)),
        fresh_successes=successes,
        fresh_failures=failures,
        succeeded=len(indexes) if is_indexed(job) else status.get("succeeded", 0) + len(successes),
        failed=status.get("failed", 0) + len(counted),
        succeeded_indexes=indexes,
        failed_indexes=_failed_indexes(job, pods),
    )


def failures_of_index(job: JsonObject, pods: list[JsonObject], index: int) -> int:
    """Return how many pods of a completion index have failed so far."""
    counts = [
        failures_before(pod) + (has_failed(job, pod) and action_on(job, pod)[0] != IGNORE)
        for pod in pods
        if index_of(pod) == index
    ]
    return max(counts, default=0)


def outcome(count: JobTally, now: datetime) -> JobOutcome | None:
    """Return the outcome of a Job that ends by a failure or a policy, None if it goes on."""
    job = count.job
    met = find_condition(job.get("status"), SUCCESS_MET)
    if met is not None:
        return JobOutcome(SUCCESS_MET, met["reason"], met["message"])
    target = find_condition(job.get("status"), FAILURE_TARGET)
    if target is not None:
        return JobOutcome(FAILURE_TARGET, target["reason"], target["message"])
    why = _why_failed(count, now)
    if why is not None:
        return JobOutcome(FAILURE_TARGET, *why)
    rule = success_rule(job, count.succeeded_indexes, completions_of(job) or 0)
    return JobOutcome(SUCCESS_MET, "SuccessPolicy", rule) if rule else None


def seconds_until_deadline(job: JsonObject, now: datetime) -> float | None:
    """Return the seconds until the active deadline of a Job, None if it has none."""
    seconds = job["spec"].get("activeDeadlineSeconds")
    started = read_time((job.get("status") or {}).get("startTime"))
    if seconds is None or started is None or is_suspended(job):
        return None
    return (started + span(seconds) - now).total_seconds()


def _why_failed(count: JobTally, now: datetime) -> tuple[str, str] | None:
    job = count.job
    for pod in count.pods:
        if has_failed(job, pod):
            action, message = action_on(job, pod)
            if action == FAIL_JOB:
                return "PodFailurePolicy", message
    if count.failed > _backoff_limit(job) or _has_restarted_too_often(job, count.pods):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = seconds_until_deadline(job, now)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return _why_indexes_failed(count)


def _why_indexes_failed(count: JobTally) -> tuple[str, str] | None:
    spec, failed = count.job["spec"], len(count.failed_indexes)
    most = spec.get("maxFailedIndexes")
    if most is not None and failed > most:
        return (
            "MaxFailedIndexesExceeded",
            "Job has exceeded the specified maximal number of failed indexes",
        )
    if failed and failed + len(count.succeeded_indexes) >= (completions_of(count.job) or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def _backoff_limit(job: JsonObject) -> int:
    limit = job["spec"].get("backoffLimit")
    if limit is None:
        return _UNLIMITED if "backoffLimitPerIndex" in job["spec"] else _USUAL_BACKOFF
    return int(limit)


def _has_restarted_too_often(job: JsonObject, pods: list[JsonObject]) -> bool:
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        each.get("restartCount", 0)
        for pod in pods
        if phase_of(pod) in {RUNNING, PENDING}
        for field in ("initContainerStatuses", "containerStatuses")
        for each in (pod.get("status") or {}).get(field) or ()
    )
    limit = _backoff_limit(job)
    return bool(restarts >= limit if limit else restarts > 0)


def _failed_indexes(job: JsonObject, pods: list[JsonObject]) -> set[int]:
    limit = job["spec"].get("backoffLimitPerIndex")
    if limit is None:
        return set()
    completions = completions_of(job) or 0
    found = read_indexes((job.get("status") or {}).get("failedIndexes"), completions)
    for pod in pods:
        index = index_of(pod)
        if index is None or index >= completions or not has_failed(job, pod):
            continue
        action = action_on(job, pod)[0]
        is_beyond = action != IGNORE and failures_before(pod) + 1 > limit
        if action == FAIL_INDEX or is_beyond:
            found.add(index)
    return found


def _has_place(job: JsonObject, pod: JsonObject) -> bool:
    if not is_indexed(job):
        return True
    index = index_of(pod)
    return index is not None and index < (completions_of(job) or 0)
