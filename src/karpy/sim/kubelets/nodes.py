"""Nodes, Leases and CSINodes as kubelets write them."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.labels import ARCH, HOSTNAME, OS
from karpy.model.resources import Resources, format_quantity
from karpy.sim.kubelets.hardware import Hardware

LEASES: Final = "kube-node-lease"
NOT_READY: Final = "node.kubernetes.io/not-ready"
VERSION: Final = "v1.36.3"
_LEASE_SECONDS: Final = 40
_FINE: Final = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


class Health(Struct, frozen=True):
    """A condition as a kubelet, or an agent on its machine, reports it."""

    type: str
    status: str
    reason: str
    message: str = ""


_ALL_FINE: Final = {type_: Health(type_, "False", *words) for type_, words in _FINE.items()}
READY: Final = Health("Ready", "True", "KubeletReady", "kubelet is posting ready status")
STARTING: Final = Health(
    "Ready",
    "False",
    "KubeletNotReady",
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized",
)


def node_object(hardware: Hardware, address: str, boot_id: str, now: str) -> JsonObject:
    """Return the Node that a kubelet registers."""
    labels = {OS: "linux", ARCH: "amd64", HOSTNAME: hardware.name, **hardware.labels}
    for name in ("os", "arch"):
        labels.setdefault(f"beta.kubernetes.io/{name}", labels[f"kubernetes.io/{name}"])
    spec: JsonObject = {"taints": with_not_ready(hardware.taints)}
    if hardware.provider_id:
        spec["providerID"] = hardware.provider_id
    capacity = quantities(hardware.capacity)
    allocatable = quantities(hardware.allocatable) if hardware.allocatable else capacity
    status = {
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": conditions((), reports(STARTING), now),
        "addresses": addresses(hardware.name, address),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": node_info(labels, boot_id),
    }
    metadata: JsonObject = {"name": hardware.name, "labels": labels}
    if hardware.annotations:
        metadata["annotations"] = dict(hardware.annotations)
    return {"metadata": metadata, "spec": spec, "status": status}


def with_not_ready(taints: tuple[JsonObject, ...]) -> list[JsonObject]:
    """Add the not-ready taint that every new Node has until it is Ready."""
    if any(each["key"] == NOT_READY and each["effect"] == "NoSchedule" for each in taints):
        return list(taints)
    return [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


def reports(ready: Health, others: Mapping[str, Health] | None = None) -> dict[str, Health]:
    """Return the conditions of a kubelet: healthy except for the given ones."""
    return {**_ALL_FINE, "Ready": ready, **(others or {})}


def conditions(
    old: tuple[JsonObject, ...] | list[JsonObject], reported: Mapping[str, Health], now: str
) -> list[JsonObject]:
    """Merge the reported conditions into the conditions of a Node; others stay."""
    known = {each["type"]: each for each in old}
    for type_, health in reported.items():
        before = known.get(type_)
        is_same = before is not None and before["status"] == health.status
        known[type_] = {
            "type": type_,
            "status": health.status,
            "lastHeartbeatTime": now,
            "lastTransitionTime": before["lastTransitionTime"] if before and is_same else now,
            "reason": health.reason,
            "message": health.message,
        }
    return list(known.values())


def addresses(name: str, address: str) -> list[JsonObject]:
    """Return the addresses of a Node."""
    return [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]


def node_info(labels: Mapping[str, str], boot_id: str) -> JsonObject:
    """Return the `nodeInfo` of a Node."""
    return {
        "architecture": labels.get(ARCH, "amd64"),
        "bootID": boot_id,
        "containerRuntimeVersion": "containerd://2.2.0",
        "kernelVersion": "6.12.0",
        "kubeProxyVersion": "",
        "kubeletVersion": VERSION,
        "machineID": boot_id.replace("-", ""),
        "operatingSystem": labels.get(OS, "linux"),
        "osImage": "Simulated Linux",
        "systemUUID": boot_id,
    }


def quantities(resources: Resources) -> JsonObject:
    """Write resources as the quantities of a Node."""
    return {name: format_quantity(amount, name) for name, amount in resources.items()}


def lease_object(node: JsonObject, now: str) -> JsonObject:
    """Return the Lease that a kubelet renews."""
    meta = node["metadata"]
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": LEASES,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": meta["name"], "uid": meta["uid"]}
            ],
        },
        "spec": {
            "holderIdentity": meta["name"],
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": now,
        },
    }


def csi_node_object(node: JsonObject, limits: Mapping[str, int]) -> JsonObject:
    """Return the CSINode with the volume limits of a node."""
    meta = node["metadata"]
    name = meta["name"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": meta["uid"]}
    drivers = [
        {"name": driver, "nodeID": name, "topologyKeys": [], "allocatable": {"count": count}}
        for driver, count in sorted(limits.items())
    ]
    return {
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"drivers": drivers},
    }
