"""Tables of pods, with the one word for their status."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from karpy.adapters.apiserver.tables.cells import NONE, age, condition, name_of, part, since
from karpy.adapters.apiserver.tables.printers import Printer, columns
from karpy.codec.fields import JsonObject

_INITIALIZING: Final = "PodInitializing"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_ENDINGS: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Count(Struct):
    """Sums over the containers of a pod."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""

    def add_restarts(self, container: JsonObject) -> None:
        self.restarts += container.get("restartCount") or 0
        ended = part(container, "lastState", "terminated").get("finishedAt") or ""
        # All timestamps have the same form, so that comparing their texts compares the times.
        self.last_restart = max(self.last_restart, ended)


def _cells(pod: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(pod, "spec"), part(pod, "status")
    count = _count(pod)
    lasting = [each for each in spec.get("initContainers") or () if _is_lasting(each)]
    total = len(spec.get("containers") or ()) + len(lasting)
    restarts = str(count.restarts)
    if count.restarts and count.last_restart:
        restarts = f"{count.restarts} ({since(count.last_restart, now)} ago)"
    return [
        name_of(pod),
        f"{count.ready}/{total}",
        count.reason,
        restarts,
        age(pod, now),
        _address(status),
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(pod),
    ]


def _count(pod: JsonObject) -> _Count:
    status = part(pod, "status")
    reason = status.get("reason") or status.get("phase") or ""
    if condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    count = _Count(reason)
    is_initializing = _count_init(pod, count)
    if not is_initializing or condition(pod, "Initialized").get("status") == "True":
        _count_others(pod, count)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            count.reason = "Unknown"
        elif status.get("phase") not in _ENDED:
            count.reason = "Terminating"
    return count


def _count_init(pod: JsonObject, count: _Count) -> bool:
    """Count the init containers; say whether one of them is not finished."""
    wanted = {each.get("name"): each for each in part(pod, "spec").get("initContainers") or ()}
    for index, container in enumerate(part(pod, "status").get("initContainerStatuses") or ()):
        count.add_restarts(container)
        ended = part(container, "state").get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if _is_lasting(wanted.get(container.get("name")) or {}) and container.get("started"):
            count.ready += bool(container.get("ready"))
            continue
        waiting = part(container, "state", "waiting").get("reason")
        if ended is not None:
            count.reason = f"Init:{_ending(ended)}"
        elif waiting and waiting != _INITIALIZING:
            count.reason = f"Init:{waiting}"
        else:
            count.reason = f"Init:{index}/{len(wanted)}"
        return True
    return False


def _count_others(pod: JsonObject, count: _Count) -> None:
    wanted = {each.get("name"): each for each in part(pod, "spec").get("initContainers") or ()}
    status = part(pod, "status")
    count.restarts, count.last_restart = 0, ""
    for container in status.get("initContainerStatuses") or ():
        if _is_lasting(wanted.get(container.get("name")) or {}):
            count.add_restarts(container)
    is_running = False
    for container in reversed(status.get("containerStatuses") or ()):
        count.add_restarts(container)
        state = part(container, "state")
        if waiting := part(state, "waiting").get("reason"):
            count.reason = waiting
        elif (ended := state.get("terminated")) is not None:
            count.reason = _ending(ended)
        elif container.get("ready") and "running" in state:
            is_running = True
            count.ready += 1
    if count.reason == "Completed" and is_running:
        is_ready = condition(pod, "Ready").get("status") == "True"
        count.reason = "Running" if is_ready else "NotReady"


def _is_lasting(container: JsonObject) -> bool:
    """Say whether an init container is a sidecar."""
    return container.get("restartPolicy") == "Always"


def _ending(ended: JsonObject) -> str:
    if reason := ended.get("reason"):
        return str(reason)
    signal = ended.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"


def _address(status: JsonObject) -> str:
    addresses = status.get("podIPs") or ()
    return next((each["ip"] for each in addresses if each.get("ip")), "") or NONE


def _gates(pod: JsonObject) -> str:
    gates = part(pod, "spec").get("readinessGates") or ()
    if not gates:
        return NONE
    passed = [
        gate for gate in gates if condition(pod, gate["conditionType"]).get("status") == "True"
    ]
    return f"{len(passed)}/{len(gates)}"


def _conditions(pod: JsonObject) -> list[JsonObject]:
    phase = part(pod, "status").get("phase")
    if phase not in _ENDINGS:
        return []
    message = _ENDINGS[phase]
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


POD_PRINTER: Final = Printer(
    columns(
        "Name | Ready | Status | Restarts | Age | (IP) | (Node) | (Nominated Node) | "
        "(Readiness Gates)"
    ),
    _cells,
    _conditions,
)
