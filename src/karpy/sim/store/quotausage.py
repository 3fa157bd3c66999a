"""The usage of ResourceQuotas by an object, and the scopes of quotas."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from karpy.codec.fields import Fields, JsonObject
from karpy.codec.requests import effective_limits, effective_requests
from karpy.model.kinds import (
    CONFIG_MAP,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE,
    Kind,
)
from karpy.model.resources import EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, PODS
from karpy.sim.store.checks.pods import amount_of
from karpy.sim.store.defaults.pods import qos_class

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_BASIC: Final = ("cpu", "memory")
_NAMED: Final = frozenset(
    {CONFIG_MAP, SECRET, REPLICATION_CONTROLLER, RESOURCE_QUOTA, SERVICE, PERSISTENT_VOLUME_CLAIM}
)
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"
NEEDED: Final = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
"""The resources that each container must specify if a quota limits them."""


class QuotaScope(Struct, frozen=True):
    """One scope of a quota."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def matches(self, pod: JsonObject) -> bool:
        """Say whether a pod is in the scope."""
        spec = pod["spec"]
        match self.name:
            case "Terminating":
                return spec.get("activeDeadlineSeconds") is not None
            case "NotTerminating":
                return spec.get("activeDeadlineSeconds") is None
            case "BestEffort":
                return _is_best_effort(pod)
            case "NotBestEffort":
                return not _is_best_effort(pod)
            case "PriorityClass":
                return self._matches_class(spec.get("priorityClassName") or "")
            case "CrossNamespacePodAffinity":
                return _crosses_namespaces(spec)
        return False

    def _matches_class(self, name: str) -> bool:
        match self.operator:
            case "Exists":
                return bool(name)
            case "DoesNotExist":
                return not name
            case "In":
                return name in self.values
        return name not in self.values


def scopes_of(spec: JsonObject) -> tuple[QuotaScope, ...]:
    """Return the scopes and scope selectors of a quota."""
    named = [QuotaScope(name) for name in spec.get("scopes") or ()]
    selector = spec.get("scopeSelector") or {}
    chosen = [
        QuotaScope(each["scopeName"], each.get("operator") or "", tuple(each.get("values") or ()))
        for each in selector.get("matchExpressions") or ()
    ]
    return (*named, *chosen)


def usage_of(kind: Kind, obj: JsonObject) -> dict[str, int]:
    """Return the usage of an object by the resource names of quotas."""
    used = {f"count/{kind.resource}": 1}
    if kind in _NAMED:
        used[kind.plural] = 1
    if kind == POD:
        if (obj.get("status") or {}).get("phase") not in _FINISHED:
            used |= dict(_of_pod(obj))
    elif kind == PERSISTENT_VOLUME_CLAIM:
        used |= dict(_of_claim(obj["spec"]))
    elif kind == SERVICE:
        used |= _of_service(obj["spec"])
    return used


def missing_amounts(pod: JsonObject, needed: frozenset[str]) -> str:
    """Name the containers that lack a resource limited by a quota; empty if there is none."""
    missing: dict[str, set[str]] = {}
    spec = pod["spec"]
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        named = set(dict(_amounts(resources.get("requests") or {}, resources.get("limits") or {})))
        for each in needed - named:
            missing.setdefault(each, set()).add(container["name"])
    missing_texts = [f"{each} for: {','.join(sorted(missing[each]))}" for each in sorted(missing)]
    return f"must specify {'; '.join(missing_texts)}" if missing_texts else ""


def _of_pod(pod: JsonObject) -> Iterator[tuple[str, int]]:
    spec = Fields(pod["spec"], "spec")
    requests = effective_requests(spec, Fields({}))
    requests.pop(PODS, None)
    yield "pods", 1
    yield from _amounts(requests, effective_limits(spec))


def _amounts(requests: JsonObject, limits: JsonObject) -> Iterator[tuple[str, int]]:
    for name, amount in requests.items():
        if name in _BASIC or name == EPHEMERAL_STORAGE or name.startswith(HUGEPAGES_PREFIX):
            yield name, amount
        yield f"requests.{name}", amount
    for name, amount in limits.items():
        if name in _BASIC or name == EPHEMERAL_STORAGE:
            yield f"limits.{name}", amount


def _of_claim(spec: JsonObject) -> Iterator[tuple[str, int]]:
    requests = (spec.get("resources") or {}).get("requests") or {}
    storage = amount_of(requests["storage"], "storage") if "storage" in requests else 0
    yield "requests.storage", storage
    if name := spec.get("storageClassName"):
        yield f"{name}{_OF_CLASS}persistentvolumeclaims", 1
        yield f"{name}{_OF_CLASS}requests.storage", storage


def _of_service(spec: JsonObject) -> dict[str, int]:
    ports = len(spec.get("ports") or ())
    match spec.get("type"):
        case "LoadBalancer":
            has_ports = spec.get("allocateLoadBalancerNodePorts", True)
            return {"services.loadbalancers": 1, "services.nodeports": ports if has_ports else 0}
        case "NodePort":
            return {"services.nodeports": ports}
    return {}


def _is_best_effort(pod: JsonObject) -> bool:
    return qos_class(pod["spec"]) == "BestEffort"


def _crosses_namespaces(spec: JsonObject) -> bool:
    affinity = spec.get("affinity") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        whole = affinity.get(field) or {}
        terms = list(whole.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        soft = whole.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [each.get("podAffinityTerm") or {} for each in soft]
        if any(t.get("namespaces") or t.get("namespaceSelector") is not None for t in terms):
            return True
    return False
