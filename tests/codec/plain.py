"""Builders of plain objects, in which a test names only the fields that it is about."""

from typing import Any, TypeAlias

Value: TypeAlias = Any
"""Any value that JSON can hold, or that a test gives in place of JSON."""
Json: TypeAlias = dict[str, Value]


def container(name: str = "main", **fields: Value) -> Json:
    """Build a container; `requests` and `limits` are its resources."""
    resources = {key: fields.pop(key) for key in ("requests", "limits") if key in fields}
    return {"name": name, **({"resources": resources} if resources else {}), **fields}


def plain_pod(name: str = "web", *, meta: Json | None = None, **spec: Value) -> Json:
    """Build a pod with one container without requests; keywords go into its spec."""
    status = spec.pop("status", None)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(meta or {})},
        "spec": {"containers": [container()], **spec},
    }
    return pod if status is None else {**pod, "status": status}


def workload(kind: str, name: str = "web", **spec: Value) -> Json:
    """Build a Deployment, StatefulSet or the like whose pods are labelled `app: <name>`."""
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    labels = {"app": name}
    meta = {"name": name, **spec.pop("meta", {})}
    status = spec.pop("status", {})
    inner = {"containers": [container(requests={"cpu": "1"})], **spec.pop("pod", {})}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": meta,
        "spec": {
            "selector": labels if kind == "ReplicationController" else {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": inner},
            **spec,
        },
        "status": status,
    }


def plain_pool(name: str = "default", *requirements: Json, **spec: Value) -> Json:
    """Build a NodePool; `labels`, `taints`, `startupTaints` go into its template."""
    labels = spec.pop("labels", {})
    inner = {key: spec.pop(key) for key in ("taints", "startupTaints") if key in spec}
    conditions = spec.pop("conditions", [])
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "requirements": list(requirements),
                    "nodeClassRef": {"group": "example.com", "kind": "Class", "name": "basic"},
                    **inner,
                },
            },
            **spec,
        },
        "status": {"conditions": conditions},
    }


def wants(key: str, operator: str, *values: str, **fields: Value) -> Json:
    """Build a requirement as manifests have it."""
    return {
        "key": key,
        "operator": operator,
        **({"values": list(values)} if values else {}),
        **fields,
    }


def plain_type(name: str = "small", **fields: Value) -> Json:
    """Build an instance type of 2 CPUs as karpbench has it, sold in one zone."""
    return {
        "name": name,
        "requirements": [
            wants("node.kubernetes.io/instance-type", "In", name),
            wants("kubernetes.io/arch", "In", "amd64"),
            wants("kubernetes.io/os", "In", "linux"),
        ],
        "capacity": {"cpu": "2", "memory": "4Gi", "pods": "10"},
        "overhead": {"kubeReserved": {"cpu": "100m"}, "evictionThreshold": {"memory": "100Mi"}},
        "offerings": [sold("zone-a", "spot", 0.5)],
        **fields,
    }


def sold(zone: str, capacity_type: str, price: object, **fields: Value) -> Json:
    """Build an offering as karpbench has it."""
    labels = {"topology.kubernetes.io/zone": zone, "karpenter.sh/capacity-type": capacity_type}
    more = fields.pop("labels", {})
    return {"labels": {**labels, **more}, "price": price, "available": True, **fields}


def plain_workload(**fields: Value) -> Json:
    """Build a karpbench workload with one type and one NodePool."""
    return {
        "format": "karpbench/v1",
        "name": "tiny",
        "kind": "provision",
        "seed": 1,
        "options": {},
        "wellKnownLabels": [],
        "instanceTypes": [plain_type()],
        "nodePools": [plain_pool()],
        "daemonSets": [],
        "pdbs": [],
        "nodes": [],
        "pods": [],
        **fields,
    }
