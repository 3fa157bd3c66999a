"""Objects as users write them, with sane defaults."""

from typing import Final

from karpy.codec.fields import JsonObject

NODE_CLASS: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
IMAGE: Final = "registry.k8s.io/pause:3.10"


def node_class() -> JsonObject:
    return {"metadata": {"name": "default"}}


def pool(
    name: str = "default",
    *,
    requirements: list[JsonObject] | None = None,
    template: JsonObject | None = None,
    labels: dict[str, str] | None = None,
    **spec: object,
) -> JsonObject:
    """A NodePool of the smallest kind: Linux, and what the test is about."""
    wanted = [one_of("kubernetes.io/os", "linux"), *(requirements or [])]
    node = {"requirements": wanted, "nodeClassRef": NODE_CLASS, **(template or {})}
    made: JsonObject = {"spec": node}
    if labels:
        made["metadata"] = {"labels": labels}
    return {"metadata": {"name": name}, "spec": {"template": made, **spec}}


def one_of(key: str, *values: str) -> JsonObject:
    return {"key": key, "operator": "In", "values": list(values)}


def pod_spec(cpu: str = "1", memory: str = "", **spec: object) -> JsonObject:
    requests = {"cpu": cpu, **({"memory": memory} if memory else {})}
    container = {"name": "main", "image": IMAGE, "resources": {"requests": requests}}
    return {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}


def asking(resources: JsonObject, **spec: object) -> JsonObject:
    """A pod of one container with these requests and limits, and none but these."""
    container = {"name": "main", "image": IMAGE, "resources": resources}
    return {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}


def limit_range(**usual: JsonObject) -> JsonObject:
    """A LimitRange that gives containers what they leave open."""
    return {
        "metadata": {"name": "usual", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", **usual}]},
    }


def deployment(name: str = "inflate", replicas: int = 0, **spec: object) -> JsonObject:
    """A Deployment of pods that ask for one CPU each, unless said otherwise."""
    template = {"metadata": {"labels": {"app": name}}, "spec": spec.pop("pod", pod_spec())}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
            **spec,
        },
    }


def budget(app: str, **limit: int) -> JsonObject:
    return {
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **limit},
    }


def daemon_set(name: str, pod: JsonObject) -> JsonObject:
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def stateful_set(name: str, replicas: int, storage_class: str) -> JsonObject:
    """A StatefulSet whose pods have a volume each."""
    labels = {"app": name}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
            "volumeClaimTemplates": [claim],
        },
    }


def storage_class(name: str, zones: list[str] | None = None) -> JsonObject:
    """A class whose volumes are made where their first pod is, in some zones only."""
    made: JsonObject = {
        "metadata": {"name": name},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    if zones:
        term = {"key": "topology.kubernetes.io/zone", "values": zones}
        made["allowedTopologies"] = [{"matchLabelExpressions": [term]}]
    return made
