"""Pauses launches for pods that were not bound to the nodes launched for them."""

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
"""A launch is a success once one of its pods has been bound for so long."""
MEMORY: Final = timedelta(hours=1)
"""A group whose last launch in vain is longer ago starts with the shortest pause again."""
GROUPS_MAX: Final = 10_000
"""The most groups whose launches in vain are remembered."""
_DOUBLINGS_MAX: Final = 16


def pause_after(count: int) -> timedelta:
    """Return the pause after some launches in vain in a row."""
    return min(PAUSE_MIN * (1 << min(count - 1, _DOUBLINGS_MAX)), PAUSE_MAX)


def with_one_more(
    before: VainLaunches | None, group: str, why: VainCause, now: datetime
) -> VainLaunches:
    """Return the launches in vain of a group with one more, and the time of the next attempt."""
    count = 1 if before is None else before.count + 1
    message = "" if before is None else before.message
    return VainLaunches(group, count, now, now + pause_after(count), why, message)


# Differs: a pod that kube-scheduler does not bind to the node launched for it: Karpenter launches
# another node at once, without end; Karpy pauses for the pod's group, longer after each attempt.
def withheld(snapshot: Snapshot) -> Mapping[str, VainLaunches]:
    """Return by group the launches in vain whose pause is not over."""
    return {each.group: each for each in snapshot.vain_launches if snapshot.now < each.retry_at}


def explain_pause(vain: VainLaunches) -> str:
    """Say how often nodes were launched in vain, why, and when the next launch is allowed."""
    launches = "1 launch" if vain.count == 1 else f"{vain.count} launches"
    said = f": {vain.message}" if vain.message else ""
    return (
        f"{launches} in vain, the next not before {vain.retry_at:%H:%M:%S} UTC; {_how(vain)}{said}"
    )


def _how(vain: VainLaunches) -> str:
    how = vain.why.value
    return how if vain.message else how.partition(";")[0]


def waiting_pods(snapshot: Snapshot) -> dict[str, Pod]:
    """Return by key the pending pods that a decision would place."""
    return {
        pod.key: pod
        for pod in uncounted(snapshot.pods)
        if pod.is_unschedulable and pod.is_provisionable
    }


def has_kept_place(bound: Iterable[datetime], now: datetime) -> bool:
    """Say whether a pod has been bound for long; `bound` are binding times, earliest first."""
    first = next(iter(bound), None)
    return first is not None and now >= first + STAYING_TIME


def why_vain(
    pods: Iterable[Pod],
    waiting: Collection[str],
    *,
    was_bound: bool = False,
    has_waiting_siblings: bool = False,
    has_claims: bool = True,
) -> VainCause | None:
    """
    Return how a launch was in vain; None if it was not, or not yet.

    `pods` are the unbound pods that the launch was made for and that still exist. A pod that is not
    among the `waiting` is about to be bound. `was_bound`: a pod of the launch was bound to the node
    and deleted. `has_waiting_siblings`: another pod of the same owner waits.
    """
    is_waiting = False
    for pod in pods:
        if pod.is_active and pod.key not in waiting:
            return None
        is_waiting = is_waiting or pod.is_active
    if was_bound:
        return VainCause.PUSHED_OUT if is_waiting or has_waiting_siblings else None
    if not is_waiting:
        return None
    return VainCause.LEFT_OUT if has_claims else VainCause.NODE_GONE


def vain_remark(vain: VainLaunches) -> Remark:
    """Return the log line about a launch in vain."""
    fields = {
        "group": vain.group,
        "launches": str(vain.count),
        "retry-at": vain.retry_at.isoformat(),
        "why": vain.why.value,
        "message": vain.message,
    }
    return Remark("launched nodes in vain", fields)


def vain_count(vain: VainLaunches) -> Count:
    """Return the metric that counts a launch in vain."""
    return Count("karpy_launches_in_vain_total", {"why": vain.why.name})
