"""A pod that nodes are launched for in vain gets the next one only after a growing pause."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.census import uncounted
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot, VainCause, VainLaunches

PAUSE_MIN: Final = timedelta(seconds=1)
PAUSE_MAX: Final = timedelta(minutes=5)
STAYING_TIME: Final = timedelta(seconds=60)
"""A pod that keeps its place for that long has been launched for with success."""
MEMORY: Final = timedelta(hours=1)
"""A group whose last vain launch is longer ago begins anew."""
GROUPS_MAX: Final = 10_000
_DOUBLINGS_MAX: Final = 16


def pause_after(count: int) -> timedelta:
    """Return how long nothing is launched after so many launches in vain."""
    return min(PAUSE_MIN * (1 << min(count - 1, _DOUBLINGS_MAX)), PAUSE_MAX)


def one_more(
    before: VainLaunches | None, group: str, why: VainCause, now: datetime
) -> VainLaunches:
    """Count one more launch in vain."""
    count = 1 if before is None else before.count + 1
    message = "" if before is None else before.message
    return VainLaunches(group, count, now, now + pause_after(count), why, message)


# Differs: a pod that kube-scheduler does not bind to the node launched for it: Karpenter launches
# another node at once, without end; Karpy pauses for the pod's group, longer after each attempt.
def withheld(snapshot: Snapshot) -> Mapping[str, VainLaunches]:
    """Return by group why nothing is launched for its pods now."""
    return {each.group: each for each in snapshot.vain_launches if snapshot.now < each.retry_at}


def what_was_vain(vain: VainLaunches) -> str:
    """Say what we did, what became of it, and when the next launch may be made."""
    times = "once" if vain.count == 1 else f"{vain.count} times"
    said = f": {vain.message}" if vain.message else ""
    return (
        f"launched for {times}, not again before {vain.retry_at:%H:%M:%S} UTC; {_how(vain)}{said}"
    )


def _how(vain: VainLaunches) -> str:
    how = vain.why.value
    return how if vain.message else how.partition(";")[0]


def waiting_pods(snapshot: Snapshot) -> dict[str, Pod]:
    """Return by key the pods that a decision is about to find a place for."""
    return {
        pod.key: pod
        for pod in uncounted(snapshot.pods)
        if pod.is_unschedulable and pod.is_provisionable
    }


def is_kept(bound: Iterable[datetime], now: datetime) -> bool:
    """Say whether a pod has had a place for long; `bound` is since when, the first pod first."""
    first = next(iter(bound), None)
    return first is not None and now >= first + STAYING_TIME


def why_vain(
    pods: Iterable[Pod],
    waiting: Collection[str],
    *,
    was_bound: bool = False,
    has_heirs: bool = False,
    has_claims: bool = True,
) -> VainCause | None:
    """
    Say how a launch was in vain; None if it was not, or not yet.

    `pods` are those that it was made for and that still are there, none of them with a node. One
    that is not among the `waiting` is on its way. `was_bound` says that one got to its node and
    was deleted there, `has_heirs` that another one of its owner waits.
    """
    is_waiting = False
    for pod in pods:
        if pod.is_active and pod.key not in waiting:
            return None
        is_waiting = is_waiting or pod.is_active
    if was_bound:
        return VainCause.PUSHED_OUT if is_waiting or has_heirs else None
    if not is_waiting:
        return None
    return VainCause.LEFT_OUT if has_claims else VainCause.NODE_GONE


def vain_remark(vain: VainLaunches) -> Remark:
    """Say in the log that nodes were launched in vain."""
    fields = {
        "group": vain.group,
        "launches": str(vain.count),
        "retry-at": vain.retry_at.isoformat(),
        "why": vain.why.value,
        "message": vain.message,
    }
    return Remark("launched nodes in vain", fields)


def vain_count(vain: VainLaunches) -> Count:
    """Count nodes that were launched in vain."""
    return Count("karpy_launches_in_vain_total", {"why": vain.why.name})
