"""Minimal objects for the contract tests."""

from karpy.codec.fields import JsonObject

CONTAINER: JsonObject = {"name": "main", "image": "registry.example/app:1"}


def meta(name: str, **fields: object) -> JsonObject:
    """Build metadata."""
    return {"name": name, **fields}


def config_map(name: str, **data: str) -> JsonObject:
    """Build a ConfigMap: an object without any behaviour."""
    return {"metadata": meta(name), "data": data}


def pod(name: str, *, labels: dict[str, str] | None = None, **spec: object) -> JsonObject:
    """Build a pod for no scheduler, unless `spec` names one."""
    return {
        "metadata": meta(name, labels=labels or {}),
        "spec": {"schedulerName": "nobody", "containers": [CONTAINER], **spec},
    }


def deployment(name: str, replicas: int = 1, **spec: object) -> JsonObject:
    """Build a Deployment whose pods are labelled `app: <name>`."""
    labels = {"app": name}
    return {
        "metadata": meta(name),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}},
            **spec,
        },
    }


def node(name: str, *, labels: dict[str, str] | None = None, **status: object) -> JsonObject:
    """Build a Node that is ready and has four cores."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    return {
        "metadata": meta(name, labels={"kubernetes.io/hostname": name, **(labels or {})}),
        "spec": {},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            **status,
        },
    }


def budget(name: str, app: str, **spec: object) -> JsonObject:
    """Build a PodDisruptionBudget for the pods of an app."""
    return {"metadata": meta(name), "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}


def node_pool(name: str = "default", **spec: object) -> JsonObject:
    """Build a NodePool."""
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "metadata": meta(name),
        "spec": {"template": {"spec": {"nodeClassRef": ref, "requirements": []}}, **spec},
    }
