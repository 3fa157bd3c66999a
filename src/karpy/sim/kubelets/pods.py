"""The status of pods as kubelets write it."""

from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.sim.store.conditions import condition_of
from karpy.sim.store.sharing import remembered, remembered_with

CREATING: Final = {"waiting": {"reason": "ContainerCreating"}}
INITIALIZING: Final = {"waiting": {"reason": "PodInitializing"}}
COMPLETED: Final = "Completed"
FINISHED: Final = frozenset({"Succeeded", "Failed"})
KILLED: Final = 137
"""Exit code of containers that were killed."""
TERMINATED: Final = 143
"""Exit code of containers that were stopped."""
_NOTHING: Final[JsonObject] = {}
_ConditionText: TypeAlias = tuple[str, str, str]
"""The status of a condition, its reason and its message."""
_Changes: TypeAlias = tuple[tuple[str, _ConditionText], ...]
"""New conditions by their type."""
_Start: TypeAlias = tuple[str, bool]
"""When containers start, and whether they are ready at once."""
_YES: Final = ("True", "", "")
_NO: Final = ("False", "", "")
_ALL_READY: Final[_Changes] = (
    ("PodReadyToStartContainers", _YES),
    ("Initialized", _YES),
    ("Ready", _YES),
    ("ContainersReady", _YES),
)
_NOT_READY: Final = "ContainersNotReady"
_GATED: Final = "ReadinessGatesNotReady"


class Host(Struct, frozen=True):
    """The addresses of a pod and of its node."""

    node_ip: str
    pod_ip: str


def arrived(pod: JsonObject, host: Host, now: str, problem: str = "") -> JsonObject:
    """Return the status of a pod whose containers are being created."""
    spec, old = pod["spec"], pod.get("status") or _NOTHING
    has_init = bool(spec.get("initContainers"))
    waiting = INITIALIZING if has_init else CREATING
    if problem:
        waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": problem}}
    status = {
        **old,
        "phase": "Pending",
        "conditions": _changed(old.get("conditions"), (now, _on_arrival(spec))),
        "hostIP": host.node_ip,
        "hostIPs": _addresses(host.node_ip),
        "startTime": now,
        "containerStatuses": _made(spec["containers"])
        if waiting is CREATING
        else [_container(each, waiting) for each in spec["containers"]],
    }
    if has_init:
        status["initContainerStatuses"] = [
            _container(each, CREATING) for each in spec["initContainers"]
        ]
    return status


def running(pod: JsonObject, host: Host, now: str, *, is_ready: bool) -> JsonObject:
    """Return the status of a pod whose containers run."""
    spec, old = pod["spec"], pod.get("status") or _NOTHING
    changed = _ALL_READY
    if not is_ready or spec.get("readinessGates"):
        ready = _YES if is_ready else _unready(spec)
        changed = (*_ALL_READY[:2], ("Ready", _gated(pod, ready)), ("ContainersReady", ready))
    address = host.node_ip if spec.get("hostNetwork") else host.pod_ip
    status = {
        **old,
        "phase": "Running",
        "conditions": _changed(old.get("conditions"), (now, changed)),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": _started_ones(spec, old.get("containerStatuses"), (now, is_ready)),
    }
    if spec.get("initContainers"):
        state = _running(now)
        ended = _terminated(0, COMPLETED, old.get("startTime", now), now)
        status["initContainerStatuses"] = [
            _container(each, state if _is_sidecar(each) else ended, is_ready=True)
            for each in spec["initContainers"]
        ]
    return status


def with_readiness(pod: JsonObject, now: str, *, is_ready: bool) -> JsonObject:
    """Return the status of a running pod with another readiness."""
    old = pod["status"]
    ready = _YES if is_ready else _unready(pod["spec"])
    changed = ("Ready", _gated(pod, ready)), ("ContainersReady", ready)
    return {
        **old,
        "conditions": _changed(old.get("conditions"), (now, changed)),
        "containerStatuses": [
            {**each, "ready": is_ready} for each in old.get("containerStatuses") or ()
        ],
    }


def exited(pod: JsonObject, exit_code: int, now: str) -> JsonObject:
    """Return the status of a pod whose containers exited and are not restarted."""
    old = pod.get("status") or {}
    phase = "Succeeded" if exit_code == 0 else "Failed"
    unready = ("False", "PodCompleted" if exit_code == 0 else "PodFailed", "")
    changed = (
        ("PodReadyToStartContainers", _NO),
        ("Ready", unready),
        ("ContainersReady", unready),
    )
    reason = COMPLETED if exit_code == 0 else "Error"
    return {
        **old,
        "phase": phase,
        "conditions": _changed(old.get("conditions"), (now, changed)),
        "containerStatuses": [
            {
                **each,
                "ready": False,
                "started": False,
                "state": _terminated(exit_code, reason, _started(each, now), now),
            }
            for each in old.get("containerStatuses") or ()
        ],
    }


def failed(pod: JsonObject, reason: str, message: str, now: str) -> JsonObject:
    """Return the status of a pod that its kubelet failed."""
    return {**exited(pod, KILLED, now), "reason": reason, "message": message}


def crashed(pod: JsonObject, exit_code: int, wait_seconds: float, now: str) -> JsonObject:
    """Return the status of a pod whose containers exited and will be restarted."""
    old = pod["status"]
    reason = COMPLETED if exit_code == 0 else "Error"
    message = f"back-off {wait_seconds:g}s restarting failed container"
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    unready = _unready(pod["spec"])
    changed = ("Ready", unready), ("ContainersReady", unready)
    return {
        **old,
        "conditions": _changed(old.get("conditions"), (now, changed)),
        "containerStatuses": [
            {
                **each,
                "ready": False,
                "started": False,
                "restartCount": each.get("restartCount", 0) + 1,
                "lastState": _terminated(exit_code, reason, _started(each, now), now),
                "state": waiting,
            }
            for each in old.get("containerStatuses") or ()
        ],
    }


def is_ready(pod: JsonObject) -> bool:
    """Say whether a pod is Ready."""
    condition = condition_of(pod, "Ready")
    return condition is not None and condition["status"] == "True"


def _gated(pod: JsonObject, ready: _ConditionText) -> _ConditionText:
    for gate in pod["spec"].get("readinessGates") or ():
        type_ = gate["conditionType"]
        condition = condition_of(pod, type_)
        if condition is None or condition["status"] != "True":
            what = (
                "does not exist" if condition is None else f'has status of "{condition["status"]}"'
            )
            message = f'corresponding condition of pod readiness gate "{type_}" {what}.'
            return ready if ready[0] == "False" else ("False", _GATED, message)
    return ready


def _unready(spec: JsonObject) -> _ConditionText:
    names = " ".join(each["name"] for each in spec["containers"])
    return "False", _NOT_READY, f"containers with unready status: [{names}]"


def _arriving(spec: JsonObject) -> _Changes:
    unready = _unready(spec)
    return (
        ("PodReadyToStartContainers", _NO),
        ("Initialized", _initializing(spec) if spec.get("initContainers") else _YES),
        ("Ready", unready),
        ("ContainersReady", unready),
    )


_on_arrival: Final = remembered(_arriving)


def _initializing(spec: JsonObject) -> _ConditionText:
    names = " ".join(each["name"] for each in spec["initContainers"])
    return "False", "ContainersNotInitialized", f"containers with incomplete status: [{names}]"


def _is_sidecar(container: JsonObject) -> bool:
    return container.get("restartPolicy") == "Always"


def _started(status: JsonObject, now: str) -> str:
    started: str = (status.get("state") or {}).get("running", {}).get("startedAt", now)
    return started


def _terminated(exit_code: int, reason: str, started: str, now: str) -> JsonObject:
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": started,
            "finishedAt": now,
        }
    }


def _container(
    container: JsonObject,
    state: JsonObject,
    old: JsonObject | None = None,
    *,
    is_ready: bool = False,
) -> JsonObject:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "state": state,
        "lastState": old["lastState"] if old else _NOTHING,
        "ready": is_ready,
        "restartCount": old["restartCount"] if old else 0,
        "image": image,
        "imageID": image if "running" in state else "",
        "started": "running" in state,
    }


def _making(containers: list[JsonObject]) -> list[JsonObject]:
    return [_container(each, CREATING) for each in containers]


_made: Final = remembered(_making)
"""Returns the statuses of containers that are being created; pods of one workload share them."""


def _started_ones(
    spec: JsonObject, before: list[JsonObject] | None, when: _Start
) -> list[JsonObject]:
    containers = spec["containers"]
    is_first = before is _made(containers)
    return _first_started(containers, when) if is_first else _start(containers, before, when)


def _start(
    containers: list[JsonObject], before: list[JsonObject] | None, when: _Start
) -> list[JsonObject]:
    now, is_ready = when
    state, known = _running(now), {each["name"]: each for each in before or ()}
    return [
        _container(each, state, known.get(each["name"]), is_ready=is_ready) for each in containers
    ]


def _start_first(containers: list[JsonObject], when: _Start) -> list[JsonObject]:
    return _start(containers, _made(containers), when)


_first_started: Final = remembered_with(_start_first, most=256)
"""Returns the statuses of started containers, shared by pods that start in the same second."""


@lru_cache(maxsize=1024)
def _running(now: str) -> JsonObject:
    return {"running": {"startedAt": now}}


@lru_cache(maxsize=4096)
def _addresses(address: str) -> list[JsonObject]:
    return [{"ip": address}]


def _with_changes(
    conditions: list[JsonObject] | None, news: tuple[str, _Changes]
) -> list[JsonObject]:
    now, changed = news
    known = {each["type"]: each for each in conditions or ()}
    for type_, (status, reason, message) in changed:
        before = known.get(type_)
        is_same = before is not None and before["status"] == status
        since = before["lastTransitionTime"] if before and is_same else now
        made: JsonObject = {
            "type": type_,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": since,
        }
        if reason:
            made["reason"] = reason
        if message:
            made["message"] = message
        known[type_] = made
    return list(known.values())


_changed: Final = remembered_with(_with_changes, most=1024)
"""Returns changed conditions, shared by pods that change in the same second."""
