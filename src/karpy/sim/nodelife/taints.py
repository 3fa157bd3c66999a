"""The taints that follow from the conditions of a node."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.constraints import NO_EXECUTE, NO_SCHEDULE
from karpy.sim.store.conditions import condition_of

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_BY_CONDITION: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OURS: Final = frozenset(
    {(key, NO_SCHEDULE) for key in (*_BY_CONDITION.values(), UNSCHEDULABLE)}
    | {(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)}
)
_EVICTING: Final = {"False": NOT_READY, "Unknown": UNREACHABLE}


def with_wanted_taints(node: JsonObject, now: str) -> JsonObject:
    """Return a node with the taints of its conditions and its cordon; other taints stay."""
    taints = taints_of(node)
    wanted = _wanted(node)
    kept = [each for each in taints if _name(each) not in _OURS or _name(each) in wanted]
    there = {_name(each) for each in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": now}
        for key, effect in wanted
        if (key, effect) not in there
    ]
    if not added and len(kept) == len(taints):
        return node
    spec = {key: value for key, value in _spec(node).items() if key != "taints"}
    if kept or added:
        spec["taints"] = [*kept, *added]
    return {**node, "spec": spec}


def taints_of(node: JsonObject) -> list[JsonObject]:
    """Return the taints of a node."""
    return _spec(node).get("taints") or []


def _wanted(node: JsonObject) -> list[tuple[str, str]]:
    wanted = []
    for condition in (node.get("status") or {}).get("conditions") or ():
        key = _BY_CONDITION.get((condition["type"], condition["status"]))
        if key is not None:
            wanted.append((key, NO_SCHEDULE))
    if _spec(node).get("unschedulable"):
        wanted.append((UNSCHEDULABLE, NO_SCHEDULE))
    ready = condition_of(node, "Ready")
    if ready is None:
        # The Node has no Ready condition yet: the taints of its creation stay.
        made_with = {_name(each) for each in taints_of(node)}
        wanted += [name for name in sorted(_OURS) if name[0] == NOT_READY and name in made_with]
    elif ready["status"] in _EVICTING:
        wanted.append((_EVICTING[ready["status"]], NO_EXECUTE))
    return wanted


def _spec(node: JsonObject) -> JsonObject:
    return node.get("spec") or {}


def _name(taint: JsonObject) -> tuple[str, str]:
    return taint["key"], taint["effect"]
