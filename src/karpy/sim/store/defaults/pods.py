"""Defaults of pods and pod templates."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.sim.store.quantities import canonical_amounts
from karpy.sim.store.sharing import (
    Interned,
    changed,
    each_changed,
    filled,
    remembered,
    without_nulls,
)

_SPEC: Final = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "securityContext": {},
}
_POD_ONLY: Final = {"enableServiceLinks": True}
_CONTAINER: Final = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
_PROBE: Final = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINERS: Final = ("containers", "initContainers")
_MODE: Final = 0o644
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_PATIENCE: Final = 300
_NO_EXECUTE: Final = "NoExecute"


def default_template_spec(spec: JsonObject) -> JsonObject:
    """Set the defaults of the spec of a pod template."""
    return _template_spec(spec)


def default_pod(pod: JsonObject) -> JsonObject:
    """Set the defaults of a pod, including those of admission plugins."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return pod
    filled_in = _pod_spec(spec)
    return pod if filled_in is spec else {**pod, "spec": filled_in}


def _fill_template_spec(spec: JsonObject) -> JsonObject:
    spec = filled(without_nulls(spec), _SPEC)
    for name in _CONTAINERS:
        spec = changed(spec, name, each_changed(_container))
    spec = changed(spec, "overhead", canonical_amounts)
    if spec.get("serviceAccount") and not spec.get("serviceAccountName"):
        spec = {**spec, "serviceAccountName": spec["serviceAccount"]}
    if spec.get("serviceAccountName"):
        spec = filled(spec, {"serviceAccount": spec["serviceAccountName"]})
    return changed(spec, "volumes", each_changed(_volume))


def _fill_pod_spec(spec: JsonObject) -> JsonObject:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec = filled(
        _fill_template_spec(spec),
        {**_POD_ONLY, "serviceAccountName": name, "serviceAccount": name},
    )
    if spec["terminationGracePeriodSeconds"] < 0:
        spec = {**spec, "terminationGracePeriodSeconds": 1}
    is_on_host = bool(spec.get("hostNetwork"))
    for each in _CONTAINERS:
        spec = changed(spec, each, each_changed(_requests_from_limits))
        if is_on_host:
            spec = changed(spec, each, each_changed(_host_ports))
    return _with_patience(spec)


_template_spec: Final = remembered(_fill_template_spec)
_pod_spec: Final = Interned(_fill_pod_spec)


def _container(container: JsonObject) -> JsonObject:
    new = filled(container, _CONTAINER)
    if not new.get("imagePullPolicy"):
        new = {**new, "imagePullPolicy": _pull_policy(new.get("image") or "")}
    new = changed(new, "resources", _resources)
    new = changed(new, "ports", each_changed(_port))
    new = changed(new, "env", each_changed(_variable))
    for name in _PROBES:
        new = changed(new, name, _probe)
    return new


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in {"", "latest"} else "IfNotPresent"


def _resources(resources: JsonObject) -> JsonObject:
    for name in ("limits", "requests"):
        resources = changed(resources, name, canonical_amounts)
    return resources


def _requests_from_limits(container: JsonObject) -> JsonObject:
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return container
    requests = resources.get("requests") or {}
    missing = {name: limits[name] for name in limits if name not in requests}
    if not missing:
        return container
    return {**container, "resources": {**resources, "requests": {**requests, **missing}}}


def _port(port: JsonObject) -> JsonObject:
    return filled(port, {"protocol": "TCP"})


def _host_ports(container: JsonObject) -> JsonObject:
    return changed(
        container,
        "ports",
        each_changed(lambda port: filled(port, {"hostPort": port.get("containerPort")})),
    )


def _variable(variable: JsonObject) -> JsonObject:
    return changed(
        variable,
        "valueFrom",
        lambda source: changed(
            source, "fieldRef", lambda field: filled(field, {"apiVersion": "v1"})
        ),
    )


def _probe(probe: JsonObject) -> JsonObject:
    new = {**probe, **{key: value for key, value in _PROBE.items() if not probe.get(key)}}
    new = changed(new, "httpGet", lambda get: filled(get, {"path": "/", "scheme": "HTTP"}))
    return changed(new, "grpc", lambda call: filled(call, {"service": ""}))


def _volume(volume: JsonObject) -> JsonObject:
    if len(volume) == 1 and "name" in volume:
        return {**volume, "emptyDir": {}}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        volume = changed(volume, name, lambda source: filled(source, {"defaultMode": _MODE}))
    return changed(
        volume, "hostPath", lambda source: source if "type" in source else {**source, "type": ""}
    )


def _with_patience(spec: JsonObject) -> JsonObject:
    """Add tolerations of five minutes for not-ready and unreachable nodes, as admission does."""
    tolerations = spec.get("tolerations") or []
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": _NO_EXECUTE,
            "tolerationSeconds": _PATIENCE,
        }
        for key in (_NOT_READY, _UNREACHABLE)
        if not any(_covers(each, key) for each in tolerations)
    ]
    return {**spec, "tolerations": [*tolerations, *added]} if added else spec


def _covers(toleration: JsonObject, key: str) -> bool:
    return toleration.get("key") in {None, "", key} and toleration.get("effect") in {
        None,
        "",
        _NO_EXECUTE,
    }


def begin_pod(pod: JsonObject) -> JsonObject:
    """Set the initial status of a new pod."""
    spec = pod.get("spec") or {}
    status = _first_status(spec)
    if spec.get("schedulingGates"):
        conditions = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
        status = {**status, "conditions": conditions}
    return {**pod, "status": status}


def _pending(spec: JsonObject) -> JsonObject:
    return {"phase": "Pending", "qosClass": qos_class(spec)}


_first_status: Final = remembered(_pending)


def _qos_class(spec: JsonObject) -> str:
    """Return the QoS class of a pod."""
    containers = [
        each for name in _CONTAINERS for each in spec.get(name) or () if isinstance(each, dict)
    ]
    is_guaranteed, has_any = True, False
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            has_any = has_any or _is_some(limits.get(name)) or _is_some(requests.get(name))
            is_guaranteed = is_guaranteed and _is_some(limits.get(name))
            is_guaranteed = is_guaranteed and requests.get(name) == limits.get(name)
    if not has_any:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _is_some(quantity: object) -> bool:
    return quantity not in {None, "0", 0, ""}


qos_class: Final = remembered(_qos_class)
