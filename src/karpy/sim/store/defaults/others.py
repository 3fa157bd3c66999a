"""Defaults of nodes, services and smaller kinds."""

from typing import Final

from karpy.codec.admission import with_implied_amounts
from karpy.codec.fields import JsonObject
from karpy.sim.store.quantities import LIMIT_BOUNDS, canonical_amounts
from karpy.sim.store.sharing import changed, each_changed, filled, remembered, without_nulls

_EXTERNAL: Final = frozenset({"NodePort", "LoadBalancer"})
_INTERNAL: Final = _EXTERNAL | {"ClusterIP"}
_AMOUNTS: Final = remembered(canonical_amounts)


def default_node(obj: JsonObject) -> JsonObject:
    """Set the defaults of a Node: allocatable is the capacity."""

    def fill(status: JsonObject) -> JsonObject:
        status = changed(status, "capacity", _AMOUNTS)
        status = changed(status, "allocatable", _AMOUNTS)
        if status.get("allocatable") is None and status.get("capacity") is not None:
            return {**status, "allocatable": status["capacity"]}
        return status

    obj = changed(obj, "spec", lambda spec: spec and without_nulls(spec))
    return changed(obj, "status", fill)


def default_service(obj: JsonObject) -> JsonObject:
    """Set the defaults of a Service."""

    def fill(spec: JsonObject) -> JsonObject:
        spec = filled(without_nulls(spec), {"sessionAffinity": "None", "type": "ClusterIP"})
        spec = changed(spec, "ports", each_changed(_port))
        if spec["type"] in _EXTERNAL:
            spec = filled(spec, {"externalTrafficPolicy": "Cluster"})
        if spec["type"] in _INTERNAL:
            spec = filled(spec, {"internalTrafficPolicy": "Cluster"})
        if spec["type"] == "LoadBalancer":
            spec = filled(spec, {"allocateLoadBalancerNodePorts": True})
        return spec

    return changed(obj, "spec", fill)


def _port(port: JsonObject) -> JsonObject:
    port = filled(port, {"protocol": "TCP"})
    return port if port.get("targetPort") else {**port, "targetPort": port.get("port")}


def begin_service(obj: JsonObject) -> JsonObject:
    """Set the address of a new Service, derived from its UID, and an empty status."""
    spec = obj.get("spec") or {}
    if spec.get("type") != "ExternalName" and not spec.get("clusterIP"):
        digits = obj["metadata"]["uid"].replace("-", "")
        address = f"10.96.{int(digits[:2], 16)}.{int(digits[2:4], 16)}"
        families = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
        spec = {**families, **spec, "clusterIP": address, "clusterIPs": [address]}
    return {**obj, "spec": spec, "status": {"loadBalancer": {}}}


def keep_address(new: JsonObject, old: JsonObject) -> JsonObject:
    """Keep the address of a Service if a replacement omits it."""
    spec, was = new.get("spec") or {}, old.get("spec") or {}
    if "ExternalName" in {spec.get("type"), was.get("type")} or spec.get("clusterIP"):
        return new
    fields = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    kept = {field: was[field] for field in fields if field in was}
    return {**new, "spec": {**spec, **kept}}


def default_secret(obj: JsonObject) -> JsonObject:
    """Set the defaults of a Secret."""
    return filled(obj, {"type": "Opaque"})


def default_priority_class(obj: JsonObject) -> JsonObject:
    """Set the defaults of a PriorityClass."""
    return filled({"value": 0, **obj}, {"preemptionPolicy": "PreemptLowerPriority"})


def default_limit_range(obj: JsonObject) -> JsonObject:
    """Set the defaults of a LimitRange: absent container bounds follow from the given ones."""
    return changed(
        obj, "spec", lambda spec: changed(spec, "limits", each_changed(_limit_range_item))
    )


def _limit_range_item(item: JsonObject) -> JsonObject:
    for key in LIMIT_BOUNDS:
        item = changed(item, key, _AMOUNTS)
    if item.get("type") != "Container":
        return item
    return {key: each for key, each in with_implied_amounts(item).items() if each}


def default_resource_quota(obj: JsonObject) -> JsonObject:
    """Write the amounts of a ResourceQuota canonically."""
    return changed(obj, "spec", lambda spec: changed(spec, "hard", _AMOUNTS))


def default_runtime_class(obj: JsonObject) -> JsonObject:
    """Write the overhead of a RuntimeClass canonically."""
    return changed(obj, "overhead", lambda overhead: changed(overhead, "podFixed", _AMOUNTS))


def default_budget(obj: JsonObject) -> JsonObject:
    """Remove null fields of a PodDisruptionBudget."""
    return changed(obj, "spec", without_nulls)


def begin_budget(obj: JsonObject) -> JsonObject:
    """Set a status without allowed disruptions until the pods are counted."""
    return {
        **obj,
        "status": {
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        },
    }


def default_definition(obj: JsonObject) -> JsonObject:
    """Set the defaults of a CustomResourceDefinition."""

    def fill(spec: JsonObject) -> JsonObject:
        names = spec.get("names") or {}
        kind = names.get("kind") or ""
        names = filled(names, {"singular": kind.lower(), "listKind": f"{kind}List"})
        spec = filled(spec, {"conversion": {"strategy": "None"}})
        return {**spec, "names": names}

    return changed(obj, "spec", fill)
