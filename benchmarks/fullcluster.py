"""The objects of a well-filled cluster: nodes, NodeClaims and pods."""

from typing import Final

from karpy.codec.fields import JsonObject

_KINDS: Final = 5
_TYPE: Final = "s-16x-amd64-linux"
_ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
_NODE_CLASS: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def pool_object() -> JsonObject:
    """Return a NodePool without requirements."""
    template = {"spec": {"requirements": [], "nodeClassRef": _NODE_CLASS}}
    return {"metadata": {"name": "default"}, "spec": {"template": template}}


def _labels(number: int) -> dict[str, str]:
    return {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": _TYPE,
        "topology.kubernetes.io/zone": _ZONES[number % len(_ZONES)],
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": f"node-{number}",
    }


UNSCHEDULABLE: Final = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}
_ROOM: Final = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "20Gi"}


def node_object(number: int) -> JsonObject:
    """Return a node that is Ready."""
    registered = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    return {
        "metadata": {"name": f"node-{number}", "labels": {**_labels(number), **registered}},
        "spec": {"providerID": f"kwok://node-{number}"},
        "status": {
            "capacity": _ROOM,
            "allocatable": _ROOM,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def claim_object(number: int) -> JsonObject:
    """Return the NodeClaim of a node."""
    return {
        "metadata": {
            "name": f"claim-{number}",
            "labels": _labels(number),
            "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {
            "nodeClassRef": _NODE_CLASS,
            "requirements": [
                {"key": key, "operator": "In", "values": [value]}
                for key, value in _labels(number).items()
                if key not in {"karpenter.sh/nodepool", "kubernetes.io/hostname"}
            ],
            "resources": {"requests": {"cpu": "14"}},
        },
    }


def claim_status(number: int) -> JsonObject:
    """Return the status of an initialized NodeClaim."""
    done = {"status": "True", "reason": "Done", "message": "", "observedGeneration": 1}
    done["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    return {
        "providerID": f"kwok://node-{number}",
        "nodeName": f"node-{number}",
        "capacity": _ROOM,
        "allocatable": _ROOM,
        "conditions": [
            {"type": each, **done} for each in ("Launched", "Registered", "Initialized", "Ready")
        ],
    }


def pod_object(name: str, workload: int, cpu_milli: int, node: str = "") -> JsonObject:
    """Return a pod; a fifth of the workloads spreads over zones, a fifth has anti-affinity."""
    app = f"app-{workload}"
    requests = {"cpu": f"{cpu_milli + workload % 7 * 10}m", "memory": f"{2 + workload % 5}Gi"}
    chosen = {"matchLabels": {"app": app}}
    spec: JsonObject = {
        "containers": [{"name": "main", "image": "i", "resources": {"requests": requests}}]
    }
    kind = workload % _KINDS
    if kind == 1:
        spread = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": chosen,
        }
        spec["topologySpreadConstraints"] = [spread]
    elif kind == 0:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": chosen}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": required}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {"metadata": metadata, "spec": spec}
