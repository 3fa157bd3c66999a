"""The status of a Deployment: counts, progress and failures of its rollout."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.times import span
from karpy.sim.store.names import time_text
from karpy.sim.workloads.conditions import drop_condition, find_condition, put_condition
from karpy.sim.workloads.pods import read_time
from karpy.sim.workloads.replicas import available, counted, is_retired, total_size
from karpy.sim.workloads.statuses import without_zeros
from karpy.sim.workloads.strategies import deadline, unavailable, wanted

PROGRESSING: Final = "Progressing"
AVAILABLE: Final = "Available"
FAILURE: Final = "ReplicaFailure"
DONE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
RESUMED: Final = "DeploymentResumed"


class RolloutReplicaSets(Struct):
    """The ReplicaSets of a Deployment during a reconcile, oldest first."""

    new: JsonObject | None
    """The ReplicaSet with the current template of the Deployment."""
    old: list[JsonObject]
    live_old: list[JsonObject] = []
    """The old ReplicaSets that are not retired: most are kept only for rollbacks."""

    def __post_init__(self) -> None:
        self._set_old(self.old)

    @property
    def all(self) -> list[JsonObject]:
        return self.old if self.new is None else [*self.old, self.new]

    @property
    def live(self) -> list[JsonObject]:
        """All ReplicaSets that are not retired."""
        return self.live_old if self.new is None else [*self.live_old, self.new]

    def replace(self, was: JsonObject, now: JsonObject) -> None:
        """Replace a ReplicaSet by its changed state."""
        if was is self.new:
            self.new = now
        else:
            self._set_old([now if each is was else each for each in self.old])

    def drop(self, gone: JsonObject) -> None:
        """Remove an old ReplicaSet."""
        self._set_old([each for each in self.old if each is not gone])

    def _set_old(self, old: list[JsonObject]) -> None:
        self.old = old
        self.live_old = [each for each in old if not is_retired(each)]


def condition(type_: str, status: str, reason: str, message: str) -> JsonObject:
    """Return a condition of a Deployment without times: `put_condition` fills them in."""
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": "",
    }


def counts(deployment: JsonObject, fleet: RolloutReplicaSets, now: str) -> JsonObject:
    """Return a status with the counts of the ReplicaSets and the condition Available."""
    before = deployment.get("status") or {}
    sets = fleet.live
    is_available = sum(map(available, sets))
    status = without_zeros(
        {
            "observedGeneration": deployment["metadata"].get("generation", 0),
            "replicas": counted(sets, "replicas"),
            "updatedReplicas": counted((fleet.new,), "replicas") if fleet.new else 0,
            "readyReplicas": counted(sets, "readyReplicas"),
            "availableReplicas": is_available,
            "unavailableReplicas": max(0, total_size(sets) - is_available),
            "conditions": before.get("conditions"),
        }
    )
    status["terminatingReplicas"] = counted(sets, "terminatingReplicas")
    if "collisionCount" in before:
        status["collisionCount"] = before["collisionCount"]
    if is_available >= wanted(deployment) - unavailable(deployment):
        enough = condition(
            AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
        )
    else:
        enough = condition(
            AVAILABLE,
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    return put_condition(status, enough, now)


def judged(
    deployment: JsonObject, fleet: RolloutReplicaSets, status: JsonObject, now: datetime
) -> JsonObject:
    """Return a status with the conditions Progressing and ReplicaFailure."""
    text = time_text(now)
    current = find_condition(deployment.get("status"), PROGRESSING)
    if deadline(deployment) is None:
        status = drop_condition(status, PROGRESSING)
    elif not _was_done(status, current):
        status = _with_progress(deployment, fleet, status, now)
    failure = _failure(fleet)
    if failure is None:
        return drop_condition(status, FAILURE)
    since = failure["lastTransitionTime"]
    promoted = {**failure, "lastUpdateTime": since}
    present = find_condition(status, FAILURE)
    if present is not None and present.get("reason") == failure.get("reason"):
        return status
    return put_condition(drop_condition(status, FAILURE), promoted, text)


def is_complete(deployment: JsonObject, status: JsonObject) -> bool:
    """Say whether all pods are updated and available, and no old pod runs."""
    total = wanted(deployment)
    return all(
        status.get(field, 0) == total
        for field in ("updatedReplicas", "replicas", "availableReplicas")
    ) and status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)


def seconds_until_timeout(
    deployment: JsonObject, status: JsonObject, now: datetime
) -> float | None:
    """Return the seconds until the progress deadline, None if it does not apply."""
    limit = deadline(deployment)
    current = find_condition(status, PROGRESSING)
    if limit is None or current is None or current.get("reason") in {TIMED_OUT, PAUSED}:
        return None
    if is_complete(deployment, status) or (deployment["spec"].get("paused")):
        return None
    since = read_time(current.get("lastUpdateTime"))
    if since is None:
        return None
    left = (since + span(limit) - now).total_seconds()
    # One second more, since conditions carry whole seconds.
    return max(0.0, left) + 1


def _was_done(status: JsonObject, current: JsonObject | None) -> bool:
    is_all_new = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return is_all_new and current is not None and current.get("reason") == DONE


def _with_progress(
    deployment: JsonObject, fleet: RolloutReplicaSets, status: JsonObject, now: datetime
) -> JsonObject:
    text = time_text(now)
    subject = (
        f'ReplicaSet "{fleet.new["metadata"]["name"]}"'
        if fleet.new
        else f'Deployment "{deployment["metadata"]["name"]}"'
    )
    if is_complete(deployment, status):
        what = condition(PROGRESSING, "True", DONE, f"{subject} has successfully progressed.")
        return put_condition(status, what, text)
    if _has_moved(deployment.get("status") or {}, status):
        what = condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.")
        return _renewed(status, what, text)
    if _is_overdue(deployment, status, now):
        what = condition(PROGRESSING, "False", TIMED_OUT, f"{subject} has timed out progressing.")
        return put_condition(status, what, text)
    return status


def _renewed(status: JsonObject, what: JsonObject, now: str) -> JsonObject:
    """Write a condition even if its reason is the same, for the time of the update."""
    current = find_condition(status, PROGRESSING)
    changed = {**what, "lastUpdateTime": now, "lastTransitionTime": now}
    if current is not None and current["status"] == "True":
        changed["lastTransitionTime"] = current["lastTransitionTime"]
    others = [each for each in status.get("conditions") or () if each is not current]
    return {**status, "conditions": [*others, changed]}


def _has_moved(before: JsonObject, after: JsonObject) -> bool:
    def old_ones(status: JsonObject) -> int:
        return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))

    return old_ones(after) < old_ones(before) or any(
        after.get(field, 0) > before.get(field, 0)
        for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _is_overdue(deployment: JsonObject, status: JsonObject, now: datetime) -> bool:
    current = find_condition(status, PROGRESSING)
    if current is None or current.get("reason") == DONE:
        return False
    if current.get("reason") == TIMED_OUT:
        return True
    since = read_time(current.get("lastUpdateTime"))
    limit = deadline(deployment)
    assert limit is not None
    return since is not None and since + span(limit) < now


def _failure(fleet: RolloutReplicaSets) -> JsonObject | None:
    sets = fleet.live_old if fleet.new is None else [fleet.new, *fleet.live_old]
    for each in sets:
        found = find_condition(each.get("status"), FAILURE)
        if found is not None:
            return found
    return None
