"""Validation of nodes, services, budgets, volumes, classes and CustomResourceDefinitions."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.admission import read_runtime_class
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.syntax import is_label_key, is_label_value
from karpy.sim.store.answers import (
    FieldFault,
    duplicate,
    forbidden_field,
    invalid,
    required,
    unsupported,
)
from karpy.sim.store.checks.pods import NOT_NEGATIVE, PORT_MAX, PORT_RANGE, amount_of
from karpy.sim.store.checks.workloads import check_selector
from karpy.sim.store.metadata import IMMUTABLE, why_no_subdomain

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SERVICES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
_SCOPES: Final = ("Cluster", "Namespaced")
_HIGHEST: Final = 1_000_000_000
_SHARE_DIGITS_MAX: Final = 9
_WHOLE: Final = 100
_CLASS_FIXED: Final = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def check_node(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a Node."""
    seen = set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        path = f"metadata.taints[{index}]"
        key, effect = taint.get("key") or "", taint.get("effect")
        if not is_label_key(key):
            yield invalid(f"{path}.key", key, "name part must be non-empty")
        if not is_label_value(taint.get("value") or ""):
            yield invalid(f"{path}.value", taint["value"], "must be a valid label value")
        if not effect:
            yield required(f"{path}.effect")
        elif effect not in _EFFECTS:
            yield unsupported(f"{path}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            fault = duplicate(path, taint)
            why = "taints must be unique by key and effect pair"
            yield FieldFault(fault.path, f"{fault.problem}: {why}")
        seen.add((key, effect))
    status = obj.get("status") or {}
    for field in ("capacity", "allocatable"):
        for name, value in (status.get(field) or {}).items():
            if amount_of(value, name) < 0:
                yield invalid(f"status.{field}.{name}", value, NOT_NEGATIVE)


def compare_nodes(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a Node."""
    now, was = new.get("spec") or {}, old.get("spec") or {}
    for field, name in (("providerID", "providerID"), ("podCIDRs", "podCIDR")):
        if was.get(field) and now.get(field) != was[field]:
            why = f'node updates may not change {name} except from "" to valid'
            yield forbidden_field(f"spec.{field}", why)


def check_service(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a Service."""
    spec = obj.get("spec") or {}
    kind = spec.get("type")
    if kind not in _SERVICES:
        yield unsupported("spec.type", kind, _SERVICES)
    ports = spec.get("ports") or ()
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        if len(ports) > 1 and not port.get("name"):
            yield required(f"{path}.name")
        if port.get("name") and port["name"] in names:
            yield duplicate(f"{path}.name", port["name"])
        names.add(port.get("name") or "")
        if not 0 < (port.get("port") or 0) <= PORT_MAX:
            yield invalid(f"{path}.port", port.get("port", 0), PORT_RANGE)


def compare_services(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a Service: its address is immutable."""
    now, was = new.get("spec") or {}, old.get("spec") or {}
    address = was.get("clusterIP")
    is_kept = now.get("type") == "ExternalName" or was.get("type") == "ExternalName"
    if address and not is_kept and now.get("clusterIP") != address:
        value = now.get("clusterIPs") or []
        yield invalid("spec.clusterIPs[0]", value, "may not change once set")


def check_budget(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a PodDisruptionBudget."""
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        if spec.get(field) is not None:
            yield from _check_share(spec[field], f"spec.{field}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy and policy not in _POLICIES:
        yield unsupported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES)
    if spec.get("selector") is not None:
        yield from check_selector(spec["selector"], "spec.selector")


def _check_share(value: object, path: str) -> Iterator[FieldFault]:
    if isinstance(value, str):
        number = value.removesuffix("%")
        if not value.endswith("%") or not (number.isascii() and number.isdecimal()):
            why = "a valid percent string must be a numeric string followed by an ending '%' "
            why += "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            yield invalid(path, value, why)
        elif len(number) > _SHARE_DIGITS_MAX or int(number) > _WHOLE:
            yield invalid(path, value, "must not be greater than 100%")
    elif isinstance(value, bool) or not isinstance(value, int):
        yield invalid(path, value, "must be an integer or percentage (e.g '5%%')")
    elif value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def check_claim(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a PersistentVolumeClaim."""
    spec = obj.get("spec") or {}
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _MODES:
            yield unsupported("spec.accessModes", mode, _MODES)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required("spec.resources[storage]")
    elif amount_of(storage, "storage") <= 0:
        yield invalid("spec.resources[storage]", storage, "must be greater than zero")


def compare_claims(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a PersistentVolumeClaim: most of its spec is immutable."""
    now, was = new.get("spec") or {}, old.get("spec") or {}
    is_bound = (old.get("status") or {}).get("phase") == "Bound"
    free = {"resources", "volumeAttributesClassName"} if is_bound else set()
    if not was.get("volumeName"):
        free.add("volumeName")
    if was.get("storageClassName") is None:
        free.add("storageClassName")
    if any(now.get(key) != was.get(key) for key in {**now, **was} if key not in free):
        yield forbidden_field(
            "spec",
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims",
        )


def check_class(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a StorageClass."""
    if not obj.get("provisioner"):
        yield required("provisioner")


def compare_classes(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a StorageClass."""
    for field in _CLASS_FIXED:
        if new.get(field) != old.get(field):
            yield invalid(field, new.get(field), IMMUTABLE)


def check_priority_class(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a PriorityClass."""
    name = obj["metadata"]["name"]
    is_system = name.startswith("system-")
    if is_system and name not in {"system-cluster-critical", "system-node-critical"}:
        why = "priority class names with 'system-' prefix are reserved for system use only"
        known = f"{name} is not a known system priority class"
        yield forbidden_field("metadata.name", f"{why}. error: {known}")
    elif not is_system and obj["value"] > _HIGHEST:
        yield forbidden_field(
            "value", f"maximum allowed value of a user defined priority is {_HIGHEST}"
        )


def compare_priority_classes(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a PriorityClass."""
    if new.get("value") != old.get("value"):
        yield forbidden_field("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE)


def check_runtime_class(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a RuntimeClass."""
    if not obj.get("handler"):
        yield required("handler")
    try:
        read_runtime_class(Fields(obj))
    except FieldInvalid as error:
        yield FieldFault(error.path, f"Invalid value: {error.problem}")


def compare_runtime_classes(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a RuntimeClass."""
    if new.get("handler") != old.get("handler"):
        yield invalid("handler", new.get("handler"), IMMUTABLE)


def check_definition(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a CustomResourceDefinition that prevent serving it."""
    spec = obj.get("spec") or {}
    names, group = spec.get("names") or {}, spec.get("group")
    expected = f"{names.get('plural')}.{group}"
    if obj["metadata"]["name"] != expected:
        why = 'must be spec.names.plural+"."+spec.group'
        yield invalid("metadata.name", obj["metadata"]["name"], why)
    if not group:
        yield required("spec.group")
    elif no := why_no_subdomain(group):
        yield invalid("spec.group", group, no)
    for field in ("plural", "kind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    if spec.get("scope") not in _SCOPES:
        yield unsupported("spec.scope", spec.get("scope") or "", _SCOPES)
    versions = [each or {} for each in spec.get("versions") or ()]
    if sum(1 for each in versions if each.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", list(versions), why)
    for index, version in enumerate(versions):
        if not version.get("name"):
            yield required(f"spec.versions[{index}].name")


def compare_definitions(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a CustomResourceDefinition."""
    now, was = new.get("spec") or {}, old.get("spec") or {}
    for field in ("group", "scope"):
        if now.get(field) != was.get(field):
            yield invalid(f"spec.{field}", now.get(field), IMMUTABLE)
    for field in ("kind", "plural"):
        value = (now.get("names") or {}).get(field)
        if value != (was.get("names") or {}).get(field):
            yield invalid(f"spec.names.{field}", value, IMMUTABLE)
