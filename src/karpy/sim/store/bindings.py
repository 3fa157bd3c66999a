"""The binding subresource of pods."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import Conflict
from karpy.model.kinds import NODE, POD
from karpy.sim.store.answers import FieldFault, FieldsInvalid, bad_request, conflict, stale
from karpy.sim.store.conditions import with_condition
from karpy.sim.store.sharing import remembered_with

_CONFLICT: Final = 409


def bound(pod: JsonObject, binding: JsonObject, now: str) -> JsonObject:
    """Return a pod bound as a binding says; raise Conflict."""
    node = _target(pod, binding)
    given = binding.get("metadata") or {}
    _check_guard(pod["metadata"], given)
    placed = placed_on(pod, node, now)
    for field in ("annotations", "labels"):
        if given.get(field):
            meta = placed["metadata"]
            added = {**(meta.get(field) or {}), **given[field]}
            placed = {**placed, "metadata": {**meta, field: added}}
    return placed


def placed_on(pod: JsonObject, node: str, now: str) -> JsonObject:
    """Return a pod with its node and the condition PodScheduled; raise Conflict."""
    meta, spec = pod["metadata"], pod["spec"]
    if "deletionTimestamp" in meta:
        raise _refusal(meta, f"pod {meta['name']} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refusal(meta, f'pod {meta["name"]} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refusal(meta, f"pod {meta['name']} has non-empty .spec.schedulingGates")
    return {**pod, "spec": _placed(spec, node), "status": _scheduled(pod.get("status"), now)}


def _with_node(spec: JsonObject, node: str) -> JsonObject:
    return {**spec, "nodeName": node}


def _with_scheduled(status: JsonObject | None, now: str) -> JsonObject:
    status = with_condition(status, {"type": "PodScheduled", "status": "True"}, now)
    status.pop("nominatedNodeName", None)
    return status


# Pods of one workload on one node share their spec; pods bound in the same second share their
# status, while it has no other fields.
_placed: Final = remembered_with(_with_node)
_scheduled: Final = remembered_with(_with_scheduled, most=256)


def _target(pod: JsonObject, binding: JsonObject) -> str:
    target = binding.get("target") or {}
    name: str = target.get("name") or ""
    if target.get("kind") not in {None, "", NODE.name}:
        fault = FieldFault(
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
