"""Tables of nodes, namespaces, events, services and small kinds."""

from datetime import datetime
from typing import Any, Final

from karpy.adapters.apiserver.tables.cells import (
    NONE,
    UNKNOWN,
    age,
    condition,
    joined,
    labels_text,
    name_of,
    part,
    since,
)
from karpy.adapters.apiserver.tables.printers import Printer, PrinterColumn, columns
from karpy.codec.fields import JsonObject

_ROLE: Final = "node-role.kubernetes.io/"
_OLD_ROLE: Final = "kubernetes.io/role"
_READY: Final = {"True": "Ready", "False": "NotReady", "Unknown": "NotReady"}


def _node(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    info = part(status, "nodeInfo")
    states = [_READY.get(condition(obj, "Ready").get("status", ""), "Unknown")]
    if spec.get("unschedulable"):
        states.append("SchedulingDisabled")
    return [
        name_of(obj),
        joined(states),
        _roles(obj),
        age(obj, now),
        info.get("kubeletVersion", ""),
        _node_address(status, "InternalIP"),
        _node_address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(node: JsonObject) -> str:
    found = set()
    for key, value in part(node, "metadata", "labels").items():
        if key.startswith(_ROLE) and key != _ROLE:
            found.add(key.removeprefix(_ROLE))
        elif key == _OLD_ROLE and value:
            found.add(value)
    return joined(sorted(found))


def _node_address(status: JsonObject, type_: str) -> str:
    addresses = status.get("addresses") or ()
    return next((each["address"] for each in addresses if each.get("type") == type_), NONE)


def _namespace(obj: JsonObject, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "status").get("phase", ""), age(obj, now)]


def _event(obj: JsonObject, now: datetime) -> list[Any]:
    """Print an event of either API group; core/v1 has other names for the same fields."""
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    series = obj.get("series") or {}
    time = obj.get("eventTime")
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or time
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    if series:
        count, last = series.get("count", count), series.get("lastObservedTime", last)
    kind, target = str(about.get("kind", "")).lower(), about.get("name", "")
    component = source.get("component") or obj.get("reportingComponent")
    component = component or obj.get("reportingController") or ""
    place = source.get("host") or obj.get("reportingInstance")
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{target}" if target else kind,
        about.get("fieldPath", ""),
        f"{component}, {place}" if place else component,
        str(obj.get("message") or obj.get("note") or "").strip(),
        since(first, now),
        count,
        name_of(obj),
    ]


def _service(obj: JsonObject, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    return [
        name_of(obj),
        spec.get("type", ""),
        addresses[0] or NONE,
        _outside(obj),
        joined(_port(each) for each in spec.get("ports") or ()),
        age(obj, now),
        labels_text(spec.get("selector")),
    ]


def _outside(service: JsonObject) -> str:
    spec = part(service, "spec")
    given = spec.get("externalIPs") or []
    match spec.get("type"):
        case "LoadBalancer":
            ingress = part(service, "status", "loadBalancer").get("ingress") or ()
            found = [each.get("ip") or each.get("hostname") or "" for each in ingress]
            return joined([*found, *given], "<pending>")
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return joined(given)


def _port(port: JsonObject) -> str:
    node = port.get("nodePort")
    number = f"{port.get('port')}:{node}" if node else f"{port.get('port')}"
    return f"{number}/{port.get('protocol', 'TCP')}"


def _config_map(obj: JsonObject, now: datetime) -> list[Any]:
    size = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [name_of(obj), size, age(obj, now)]


def _secret(obj: JsonObject, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("type", "Opaque"), len(obj.get("data") or ()), age(obj, now)]


def _priority_class(obj: JsonObject, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _runtime_class(obj: JsonObject, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("handler", ""), age(obj, now)]


def _lease(obj: JsonObject, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "spec").get("holderIdentity") or "", age(obj, now)]


def _definition(obj: JsonObject, _now: datetime) -> list[Any]:
    return [name_of(obj), obj["metadata"].get("creationTimestamp", "")]


_EVENTS: Final = Printer(
    (
        *columns(
            "Last Seen | Type | Reason | Object | (Subobject) | (Source) | Message | (First Seen) "
            "| (Count)"
        ),
        PrinterColumn("Name", format="name", priority=1),
    ),
    _event,
)


def _quota(obj: JsonObject, now: datetime) -> list[Any]:
    status = part(obj, "status")
    hard, used = part(status, "hard"), part(status, "used")
    shown = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in shown.items() if name.startswith("limits.")]
    requests = [text for name, text in shown.items() if not name.startswith("limits.")]
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now)]


CLUSTERS: Final = {
    ("", "Node"): Printer(
        columns(
            "Name | Status | Roles | Age | Version | (Internal-IP) | (External-IP) | (OS-Image) | "
            "(Kernel-Version) | (Container-Runtime)"
        ),
        _node,
    ),
    ("", "Namespace"): Printer(columns("Name | Status | Age"), _namespace),
    ("", "Event"): _EVENTS,
    ("events.k8s.io", "Event"): _EVENTS,
    ("", "Service"): Printer(
        columns("Name | Type | Cluster-IP | External-IP | Port(s) | Age | (Selector)"), _service
    ),
    ("", "ConfigMap"): Printer(columns("Name | Data | Age"), _config_map),
    ("", "ResourceQuota"): Printer(columns("Name | Request | Limit | Age"), _quota),
    ("", "Secret"): Printer(columns("Name | Type | Data | Age"), _secret),
    ("scheduling.k8s.io", "PriorityClass"): Printer(
        columns("Name | #Value | ?Global-Default | Age | PreemptionPolicy"), _priority_class
    ),
    ("node.k8s.io", "RuntimeClass"): Printer(columns("Name | Handler | Age"), _runtime_class),
    ("coordination.k8s.io", "Lease"): Printer(columns("Name | Holder | Age"), _lease),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Printer(
        (*columns("Name"), PrinterColumn("Created At", type="date")), _definition
    ),
}
