"""The Kubernetes objects of workload files: pods, affinity rules, NodePools, DaemonSets."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

Json: TypeAlias = dict[str, Any]

CREATED: Final = "2026-01-01T00:00:00Z"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
GPU: Final = "nvidia.com/gpu"
AMPLE: Final = {"cpu": "10000000", "memory": "10000000Gi"}
_SCHEDULER_GAVE_UP: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


class PodTemplate(Struct, frozen=True):
    """The common fields of all pods of one Deployment."""

    labels: Mapping[str, str]
    cpu_milli: int
    memory_mib: int
    namespace: str = "default"
    gpus: int = 0
    rules: Mapping[str, Any] = {}
    """Scheduling fields of the pod spec, such as nodeSelector and affinity."""


def pod(template: PodTemplate, name: str, uid: str, node: str = "") -> Json:
    """Return a pod, bound to a node, or pending if no node is given."""
    requests = {"cpu": f"{template.cpu_milli}m", "memory": f"{template.memory_mib}Mi"}
    resources: Json = {"requests": requests}
    if template.gpus:
        requests[GPU] = str(template.gpus)
        resources["limits"] = {GPU: str(template.gpus)}
    spec: Json = {"containers": [{"name": "main", "resources": resources}], **template.rules}
    status: Json = {"phase": "Pending", "conditions": [_SCHEDULER_GAVE_UP]}
    if node:
        spec["nodeName"] = node
        status = {"phase": "Running"}
    metadata = {
        "name": name,
        "namespace": template.namespace,
        "uid": uid,
        "labels": template.labels,
        "creationTimestamp": CREATED,
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def expression(key: str, operator: str, *values: str) -> Json:
    """Return a requirement on a label."""
    written: Json = {"key": key, "operator": operator}
    if values:
        written["values"] = list(values)
    return written


def selector(labels: Mapping[str, str]) -> Json:
    """Return a label selector."""
    return {"matchLabels": dict(labels)}


def spread(key: str, labels: Mapping[str, str], *, skew: int = 1, soft: bool = False) -> Json:
    """Return a topology spread constraint."""
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        "labelSelector": selector(labels),
    }


def term(key: str, labels: Mapping[str, str]) -> Json:
    """Return a pod affinity term."""
    return {"topologyKey": key, "labelSelector": selector(labels)}


def preferred_pods(weight: int, key: str, labels: Mapping[str, str]) -> Json:
    """Return a preferred pod affinity term."""
    return {"weight": weight, "podAffinityTerm": term(key, labels)}


def preferred_nodes(weight: int, *expressions: Json) -> Json:
    """Return a preferred node affinity term."""
    return {"weight": weight, "preference": {"matchExpressions": list(expressions)}}


def node_terms(*alternatives: Sequence[Json]) -> Json:
    """Return a required node affinity: any alternative, each with all its expressions."""
    terms = [{"matchExpressions": list(each)} for each in alternatives]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def pool(
    name: str,
    requirements: Sequence[Json] = (),
    *,
    weight: int = 0,
    labels: Mapping[str, str] | None = None,
    taint: tuple[str, str] | None = None,
) -> Json:
    """Return a NodePool with limits that no workload reaches."""
    node: Json = {
        "requirements": list(requirements),
        "nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"},
        "expireAfter": "Never",
    }
    if taint:
        node["taints"] = [{"key": taint[0], "value": taint[1], "effect": "NoSchedule"}]
    spec: Json = {
        "template": {"metadata": {"labels": dict(labels or {})}, "spec": node},
        "disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "0s",
            "budgets": [{"nodes": "100%"}],
        },
        "limits": dict(AMPLE),
    }
    if weight:
        spec["weight"] = weight
    metadata = {"name": name}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata,
        "spec": spec,
    }


def daemon_set(name: str, template: PodTemplate) -> Json:
    """Return a DaemonSet whose pods tolerate every taint."""
    containers = pod(template, name, uid="")["spec"]["containers"]
    spec: Json = {
        "containers": containers,
        "tolerations": [{"operator": "Exists"}],
        **template.rules,
    }
    return {
        "metadata": {"name": name, "namespace": template.namespace, "uid": daemon_uid(name)},
        "spec": {
            "selector": selector(template.labels),
            "template": {"metadata": {"labels": template.labels}, "spec": spec},
        },
    }


def daemon_uid(name: str) -> str:
    """Return the UID of a DaemonSet, for the owner references of its pods."""
    return f"daemon-set-{name}"
