"""Properties of pods that workload controllers read."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache, partial
from math import log2
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.times import parse_moment, span
from karpy.sim.store.sharing import remembered
from karpy.sim.workloads.owners import is_deleting

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
FINISHED: Final = frozenset({SUCCEEDED, FAILED})
_NOTHING: Final[JsonObject] = {}
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_BY_PHASE: Final = {PENDING: 0, "Unknown": 1, RUNNING: 2}


def phase_of(pod: JsonObject) -> str:
    """Return the phase of a pod, empty before the first status."""
    phase: str = (pod.get("status") or {}).get("phase") or ""
    return phase


def ready_condition(pod: JsonObject) -> JsonObject | None:
    """Return the Ready condition if its status is True."""
    conditions = (pod.get("status") or _NOTHING).get("conditions")
    return _ready_among(conditions) if conditions else None


def _find_ready(conditions: list[JsonObject]) -> JsonObject | None:
    for each in conditions:
        if each["type"] == "Ready":
            return each if each.get("status") == "True" else None
    return None


_ready_among: Final = remembered(_find_ready, most=1024)
"""Returns the true Ready condition; pods that started together share their conditions."""


def is_ready(pod: JsonObject) -> bool:
    """Say whether a pod is Ready."""
    return ready_condition(pod) is not None


def has_news(status: JsonObject, before: JsonObject) -> bool:
    """Say whether the phase or the readiness of a pod changed."""
    if status.get("phase") != before.get("phase"):
        return True
    conditions, had = status.get("conditions"), before.get("conditions")
    if conditions is had:
        return False
    was_ready = had is not None and _ready_among(had) is not None
    return was_ready != (conditions is not None and _ready_among(conditions) is not None)


def is_active(pod: JsonObject) -> bool:
    """Say whether a pod is neither finished nor being deleted."""
    return phase_of(pod) not in FINISHED and not is_deleting(pod)


def parted(pods: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return active pods and terminating pods; finished pods are in neither list."""
    active: list[JsonObject] = []
    terminating: list[JsonObject] = []
    for pod in pods:
        if (pod.get("status") or _NOTHING).get("phase") not in FINISHED:
            (terminating if "deletionTimestamp" in pod["metadata"] else active).append(pod)
    return active, terminating


def is_terminating(pod: JsonObject) -> bool:
    """Say whether a pod is deleting and not finished."""
    return is_deleting(pod) and phase_of(pod) not in FINISHED


def available_in(pod: JsonObject, min_ready_seconds: int, now: datetime) -> float | None:
    """Return in how many seconds a ready pod becomes available; None if it is not ready."""
    condition = ready_condition(pod)
    if condition is None:
        return None
    if not min_ready_seconds:
        return 0.0
    since = read_time(condition.get("lastTransitionTime"))
    if since is None:
        return None
    return max(0.0, (since + span(min_ready_seconds) - now).total_seconds())


def is_available(pod: JsonObject, min_ready_seconds: int, now: datetime) -> bool:
    """Say whether a pod has been ready for long enough."""
    return available_in(pod, min_ready_seconds, now) == 0.0


def next_available(
    pods: Iterable[JsonObject], min_ready_seconds: int, now: datetime
) -> float | None:
    """Return in how many seconds the next pod becomes available."""
    if not min_ready_seconds:
        return None
    waits = (available_in(pod, min_ready_seconds, now) for pod in pods)
    return min((wait for wait in waits if wait), default=None)


def read_time(text: str | None) -> datetime | None:
    """Read a time in the format of the API, None if there is none."""
    return parse_moment(text) if text else None


def _find_restarts(statuses: list[JsonObject]) -> int:
    most: int = max(each.get("restartCount", 0) for each in statuses)
    return most


_most_restarts: Final = remembered(_find_restarts, most=1024)
"""Returns the highest restart count of the containers."""


def first_to_go(
    pods: list[JsonObject], neighbours: Mapping[str, int], now: datetime
) -> list[JsonObject]:
    """
    Return pods in the order in which a ReplicaSet deletes them.

    Unassigned pods first, then by phase, unready pods, lower deletion cost, more pods of the same
    Deployment on the node, shorter readiness, more restarts, and younger pods. Times are compared
    by magnitude; among pods of about the same age the UID decides.
    """
    # Pods of one workload have few different times: cache their magnitudes.
    magnitude = cache(partial(_magnitude, now=now))

    def key(pod: JsonObject) -> tuple[bool, int, bool, int, int, int, int, int, str]:
        meta, status = pod["metadata"], pod.get("status") or _NOTHING
        node, annotations = pod["spec"].get("nodeName") or "", meta.get("annotations")
        condition = ready_condition(pod)
        containers = status.get("containerStatuses")
        return (
            bool(node),
            _BY_PHASE.get(status.get("phase") or "", 0),
            condition is not None,
            _deletion_cost(annotations) if annotations else 0,
            -neighbours.get(node, 0),
            magnitude(condition.get("lastTransitionTime")) if condition else 0,
            -_most_restarts(containers) if containers else 0,
            magnitude(meta.get("creationTimestamp")),
            meta["uid"],
        )

    return sorted(pods, key=key)


def _deletion_cost(annotations: JsonObject) -> int:
    text = annotations.get(_DELETION_COST)
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        return 0


def _magnitude(text: str | None, now: datetime) -> int:
    since = read_time(text)
    seconds = (now - since).total_seconds() if since else 0.0
    return int(log2(seconds * 1e9)) if seconds > 0 else -1
