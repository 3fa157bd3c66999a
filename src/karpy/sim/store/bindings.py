"""Binding a pod to a node: the scheduler's only write that matters."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import Conflict
from karpy.model.kinds import NODE, POD
from karpy.sim.store.answers import Fault, FieldsInvalid, bad_request, conflict, stale
from karpy.sim.store.conditions import with_condition

_CONFLICT: Final = 409
_SPECS_MAX: Final = 10_000


def bound(pod: JsonObject, binding: JsonObject, now: str) -> JsonObject:
    """Return a pod with its node and the condition that it is scheduled; raise Conflict."""
    node = _target(pod, binding)
    meta, spec = pod["metadata"], pod["spec"]
    given = binding.get("metadata") or {}
    _check_guard(meta, given)
    if "deletionTimestamp" in meta:
        raise _refusal(meta, f"pod {meta['name']} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refusal(meta, f'pod {meta["name"]} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refusal(meta, f"pod {meta['name']} has non-empty .spec.schedulingGates")
    for field in ("annotations", "labels"):
        if given.get(field):
            meta = {**meta, field: {**(meta.get(field) or {}), **given[field]}}
    condition = {"type": "PodScheduled", "status": "True"}
    status = with_condition(pod.get("status"), condition, now)
    status.pop("nominatedNodeName", None)
    return {**pod, "metadata": meta, "spec": _placed(spec, node), "status": status}


class _Placed:
    """Specs with a node; pods of one workload on one node share theirs."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[JsonObject, JsonObject]] = {}

    def __call__(self, spec: JsonObject, node: str) -> JsonObject:
        known = self._known.get((id(spec), node))
        if known is not None and known[0] is spec:
            return known[1]
        if len(self._known) >= _SPECS_MAX:
            self._known.clear()
        placed = {**spec, "nodeName": node}
        # Keeping the spec keeps its identity from being given to another one.
        self._known[id(spec), node] = spec, placed
        return placed


_placed: Final = _Placed()


def _target(pod: JsonObject, binding: JsonObject) -> str:
    target = binding.get("target") or {}
    name: str = target.get("name") or ""
    if target.get("kind") not in {None, "", NODE.name}:
        fault = Fault(
            "target.kind",
            f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"',
        )
        raise FieldsInvalid(POD, pod["metadata"]["name"], [fault])
    if not name:
        raise bad_request("target.name: Required value", hint="name the node in `target.name`")
    return name


def _check_guard(meta: JsonObject, given: JsonObject) -> None:
    uid, version = given.get("uid"), given.get("resourceVersion")
    if uid and uid != meta["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
        raise conflict(POD, meta["name"], why)
    if version and version != meta["resourceVersion"]:
        raise stale(POD, meta["name"])


def _refusal(meta: JsonObject, why: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on pods/binding "{meta["name"]}": {why}',
        status=_CONFLICT,
        hint="look at the pod again; it may have a node already",
    )
