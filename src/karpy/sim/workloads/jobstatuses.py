"""The status of Jobs."""

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.jobindexes import index_text
from karpy.sim.workloads.jobtallies import SUCCESS_MET, JobOutcome, JobTally, has_failed, is_tracked
from karpy.sim.workloads.owners import is_deleting
from karpy.sim.workloads.pods import SUCCEEDED, is_active, is_ready, is_terminating, phase_of
from karpy.sim.workloads.statuses import without_zeros

_Text = tuple[str, str, str]
"""Status, reason and message of a condition."""


def with_text(status: JsonObject, type_: str, text: _Text, now: str) -> JsonObject:
    """Return a status with a condition, replaced in place if it exists."""
    state, reason, message = text
    condition = {
        "type": type_,
        "status": state,
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    present = status.get("conditions") or []
    if any(each["type"] == type_ for each in present):
        conditions = [condition if each["type"] == type_ else each for each in present]
    else:
        conditions = [*present, condition]
    return {**status, "conditions": conditions}


def to_release(count: JobTally, end: JobOutcome | None) -> list[JsonObject]:
    """Return the pods whose finalizer can go: their end is counted, or does not matter."""
    job = count.job
    is_all = end is not None or is_deleting(job)
    return [
        pod
        for pod in count.pods
        if is_tracked(pod) and (is_all or phase_of(pod) == SUCCEEDED or has_failed(job, pod))
    ]


def counted(count: JobTally, end: JobOutcome | None, releases: list[JsonObject]) -> JsonObject:
    """Return a status with the counts of ended pods."""
    job = count.job
    failed = count.failed
    if end is not None and end.type != SUCCESS_MET:
        # Pods that still ran when the Job failed count as failed.
        failed += sum(phase_of(pod) != SUCCEEDED and not has_failed(job, pod) for pod in releases)
    status = {
        **(job.get("status") or {}),
        "succeeded": count.succeeded,
        "failed": failed,
        "completedIndexes": index_text(count.succeeded_indexes),
    }
    if "backoffLimitPerIndex" in job["spec"]:
        status["failedIndexes"] = index_text(count.failed_indexes)
    kept = {key: status.get(key) for key in ("failedIndexes",) if key in status}
    return {**without_zeros(status), **kept, "uncountedTerminatedPods": {}}


def now_running(status: JsonObject, pods: list[JsonObject]) -> JsonObject:
    """Return a status with the counts of active, ready and terminating pods."""
    active = [pod for pod in pods if is_active(pod)]
    changed = {
        **status,
        "active": len(active),
        "ready": sum(map(is_ready, active)),
        "terminating": sum(map(is_terminating, pods)),
    }
    if not active:
        del changed["active"]
    return changed
