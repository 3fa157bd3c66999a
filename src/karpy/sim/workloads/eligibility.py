"""Which nodes are eligible for the pods of a DaemonSet."""

from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import LabelRule
from karpy.model.constraints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from karpy.model.requirements import Operator

_NAME_FIELD: Final = "metadata.name"
_ALWAYS: Final = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", NO_EXECUTE),
        ("unreachable", NO_EXECUTE),
        ("disk-pressure", NO_SCHEDULE),
        ("memory-pressure", NO_SCHEDULE),
        ("pid-pressure", NO_SCHEDULE),
        ("unschedulable", NO_SCHEDULE),
    )
)
_ON_HOST_NETWORK: Final = {
    "key": "node.kubernetes.io/network-unavailable",
    "operator": "Exists",
    "effect": NO_SCHEDULE,
}


class Permission(Struct, frozen=True, gc=False):
    """Whether a pod of a DaemonSet may start on a node, and whether a running one may stay."""

    may_start: bool
    may_stay: bool


ALLOWED: Final = Permission(may_start=True, may_stay=True)
NO_NEW_POD: Final = Permission(may_start=False, may_stay=True)
DENIED: Final = Permission(may_start=False, may_stay=False)


def tolerations(spec: JsonObject) -> list[JsonObject]:
    """Return the tolerations of a pod and those added to all pods of DaemonSets."""
    present = list(spec.get("tolerations") or ())
    added = [*_ALWAYS, _ON_HOST_NETWORK] if spec.get("hostNetwork") else _ALWAYS
    return [*present, *(each for each in added if each not in present)]


class DaemonEligibility:
    """The rules on nodes in the template of a DaemonSet, read once."""

    def __init__(self, spec: JsonObject) -> None:
        self._node_name = spec.get("nodeName") or ""
        self._labels = tuple((spec.get("nodeSelector") or {}).items())
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        self._terms = None if required is None else required.get("nodeSelectorTerms") or ()
        self._tolerations = tuple(
            Toleration(
                each.get("key") or "",
                each.get("operator") or "Equal",
                each.get("value") or "",
                each.get("effect") or "",
            )
            for each in tolerations(spec)
        )

    def of(self, node: JsonObject) -> Permission:
        """Return the permission of a node for the DaemonSet."""
        meta = node["metadata"]
        if self._node_name not in {"", meta["name"]} or not self._is_wanted(meta):
            return DENIED
        hard = self._untolerated(node)
        if not hard:
            return ALLOWED
        return DENIED if NO_EXECUTE in hard else NO_NEW_POD

    def _is_wanted(self, meta: JsonObject) -> bool:
        labels = meta.get("labels") or {}
        if any(labels.get(key) != value for key, value in self._labels):
            return False
        return self._terms is None or any(_holds(term, meta) for term in self._terms)

    def _untolerated(self, node: JsonObject) -> set[str]:
        effects = set()
        for each in (node.get("spec") or {}).get("taints") or ():
            taint = Taint(each["key"], each["effect"], each.get("value") or "")
            if taint.effect in {NO_SCHEDULE, NO_EXECUTE} and not any(
                toleration.allows(taint) for toleration in self._tolerations
            ):
                effects.add(taint.effect)
        return effects


def target_of(pod: JsonObject) -> str:
    """Return the node that a DaemonSet pod runs on or was created for; empty if none."""
    spec = pod["spec"]
    if node := spec.get("nodeName"):
        return str(node)
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            if each["key"] == _NAME_FIELD and each["operator"] == "In" and len(each["values"]) == 1:
                return str(each["values"][0])
    return ""


def aimed_at(spec: JsonObject, node: str) -> JsonObject:
    """Return the spec of a DaemonSet pod for one node, with the added tolerations."""
    affinity = spec.get("affinity") or {}
    field = {"key": _NAME_FIELD, "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    on_node = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    return {
        **spec,
        "affinity": {**affinity, "nodeAffinity": on_node},
        "tolerations": tolerations(spec),
    }


def _holds(term: JsonObject, meta: JsonObject) -> bool:
    rules = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not rules and not fields:
        # An empty term matches no node.
        return False
    labels = meta.get("labels") or {}
    return all(_rule(each).holds(labels) for each in rules) and all(
        _rule(each).holds({_NAME_FIELD: meta["name"]}) for each in fields
    )


def _rule(expression: JsonObject) -> LabelRule:
    values = frozenset(expression.get("values") or ())
    return LabelRule(expression["key"], Operator(expression["operator"]), values)
