"""Which pods of a DaemonSet to create and to delete, by node."""

from datetime import datetime

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.eligibility import DENIED, Permission
from karpy.sim.workloads.owners import is_deleting
from karpy.sim.workloads.pods import FAILED, SUCCEEDED, is_available, is_ready, phase_of
from karpy.sim.workloads.revisions import REVISION_HASH
from karpy.sim.workloads.shares import share

Pods = dict[str, list[JsonObject]]
"""Pods by the node they run on, or were created for."""


class DaemonPlan(Struct):
    """Nodes that need a pod, and pods to delete."""

    make: list[str] = []
    drop: list[JsonObject] = []
    failed: list[JsonObject] = []
    succeeded: list[JsonObject] = []


class _Pair(Struct, frozen=True):
    """The old and the new pod of a node."""

    old: JsonObject | None = None
    new: JsonObject | None = None
    is_clear: bool = True


def plan(
    daemon_set: JsonObject,
    permissions: dict[str, Permission],
    pods: Pods,
    current: str,
    now: datetime,
) -> DaemonPlan:
    """Return the nodes without a pod, and the misplaced pods."""
    todo = DaemonPlan()
    for name, permission in permissions.items():
        present = pods.get(name)
        if present is None:
            if permission.may_start:
                todo.make.append(name)
        elif permission.may_stay:
            running = _sorted_out(present, todo)
            if not _may_surge(daemon_set):
                todo.drop.extend(sorted(running, key=age_of)[1:])
            elif not running and permission.may_start:
                todo.make.append(name)
            else:
                todo.drop.extend(_beyond_surge(daemon_set, running, current, now))
        else:
            todo.drop.extend(pod for pod in present if not is_deleting(pod))
    for name, present in pods.items():
        if name not in permissions:
            # Pods bound to the missing node are left to the pod garbage collector.
            todo.drop.extend(pod for pod in present if not pod["spec"].get("nodeName"))
    return todo


def rollout(
    daemon_set: JsonObject,
    permissions: dict[str, Permission],
    pods: Pods,
    current: str,
    now: datetime,
) -> DaemonPlan:
    """Return which outdated pods may be replaced now."""
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return DaemonPlan()
    wanted = [name for name, permission in permissions.items() if permission.may_start]
    rolling = strategy.get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge"), len(wanted), is_rounded_up=True)
    unavailable = share(rolling.get("maxUnavailable", 1), len(wanted), is_rounded_up=True)
    if wanted and not surge and not unavailable:
        unavailable = 1
    names = dict.fromkeys([*pods, *wanted])
    pairs = {name: _pair(pods.get(name) or [], current) for name in names}
    seconds = daemon_set["spec"].get("minReadySeconds", 0)
    if not surge:
        return _in_place(pairs, unavailable, seconds, now)
    return _surging(pairs, permissions, surge, seconds, now)


def _in_place(pairs: dict[str, _Pair], unavailable: int, seconds: int, now: datetime) -> DaemonPlan:
    """Delete old pods: all that are unavailable, others while enough stay available."""
    broken, candidates = [], []
    down = 0
    for pair in pairs.values():
        old, new = pair.old, pair.new
        if not pair.is_clear or (old is None) == (new is None):
            down += 1
        elif new is not None:
            down += not is_available(new, seconds, now)
        elif old is not None and not is_available(old, seconds, now):
            down += 1
            broken.append(old)
        elif old is not None:
            candidates.append(old)
    return DaemonPlan(drop=[*broken, *candidates[: max(0, unavailable - down)]])


def _surging(
    pairs: dict[str, _Pair],
    permissions: dict[str, Permission],
    surge: int,
    seconds: int,
    now: datetime,
) -> DaemonPlan:
    """Create new pods beside old ones, and delete the old ones once the new are available."""
    todo = DaemonPlan()
    candidates: list[str] = []
    astray: list[JsonObject] = []
    extra = working = 0
    for name, pair in pairs.items():
        old, new = pair.old, pair.new
        if not pair.is_clear:
            extra += 1
            continue
        eldest = old or new
        is_working = eldest is not None and is_available(eldest, seconds, now)
        working += is_working
        if old is None:
            continue
        if new is not None:
            if is_available(new, seconds, now):
                todo.drop.append(old)
            else:
                extra += 1
        elif permissions.get(name, DENIED).may_start:
            (candidates if is_working else todo.make).append(name)
        else:
            (astray if is_working else todo.drop).append(old)
    wanted = sum(permission.may_start for permission in permissions.values())
    todo.drop.extend(astray[: max(0, working - wanted)])
    todo.make.extend(candidates[: max(0, surge - extra)])
    return todo


def _sorted_out(present: list[JsonObject], todo: DaemonPlan) -> list[JsonObject]:
    """Return the pods that run or will run; add the ended ones to the plan."""
    running = []
    for pod in present:
        phase = phase_of(pod)
        if is_deleting(pod):
            continue
        if phase == FAILED:
            todo.failed.append(pod)
        elif phase == SUCCEEDED:
            todo.succeeded.append(pod)
        else:
            running.append(pod)
    return running


def _beyond_surge(
    daemon_set: JsonObject, running: list[JsonObject], current: str, now: datetime
) -> list[JsonObject]:
    """Return the pods of a node to delete beyond one old and one new pod."""
    seconds = daemon_set["spec"].get("minReadySeconds", 0)
    ordered = sorted(running, key=age_of)
    new = [pod for pod in ordered if _is_new(pod, current)]
    old = [pod for pod in ordered if not _is_new(pod, current)]
    gone = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(new[0], seconds, now)):
        gone.append(old[0])
    return gone


def _pair(present: list[JsonObject], current: str) -> _Pair:
    staying = [pod for pod in present if not is_deleting(pod)]
    new = [pod for pod in staying if _is_new(pod, current)]
    old = [pod for pod in staying if not _is_new(pod, current)]
    return _Pair(old[0] if old else None, new[0] if new else None, len(old) <= 1 and len(new) <= 1)


def _is_new(pod: JsonObject, current: str) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(REVISION_HASH) == current)


def _may_surge(daemon_set: JsonObject) -> bool:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return False
    value = (strategy.get("rollingUpdate") or {}).get("maxSurge")
    return share(value, 1, is_rounded_up=True) > 0


def age_of(pod: JsonObject) -> tuple[bool, str, str]:
    """Return the sort key of a pod: bound pods first, then by age."""
    meta = pod["metadata"]
    return not pod["spec"].get("nodeName"), meta["creationTimestamp"], meta["name"]
