"""Validation of pods and pod templates."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.syntax import is_label_key
from karpy.model.resources import parse_quantity
from karpy.sim.store.answers import (
    FieldFault,
    duplicate,
    forbidden_field,
    invalid,
    required,
    unsupported,
)
from karpy.sim.store.metadata import check_labels, why_no_label
from karpy.sim.store.quantities import canonical
from karpy.sim.store.sharing import remembered

_RESTARTS: Final = ("Always", "OnFailure", "Never")
_PULLS: Final = ("Always", "IfNotPresent", "Never")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_WHEN: Final = ("DoNotSchedule", "ScheduleAnyway")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
PORT_MAX: Final = 65535
PORT_RANGE: Final = f"must be between 1 and {PORT_MAX}, inclusive"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_QUANTITY: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class NoQuantity(ValueError):
    """A value that is no quantity: a typed server cannot decode the object."""


def check_pod(pod: JsonObject) -> list[FieldFault]:
    """Return the faults of a pod."""
    spec = pod.get("spec")
    return _pod_faults(spec) if spec else [required("spec.containers")]


def check_template(template: JsonObject | None, path: str) -> Iterator[FieldFault]:
    """Yield the faults of a pod template."""
    if not template:
        yield required(path)
        return
    labels = (template.get("metadata") or {}).get("labels")
    if labels:
        yield from check_labels(labels, f"{path}.metadata.labels")
    yield from _check_spec(template.get("spec") or {}, f"{path}.spec")


def _pod_spec_faults(spec: JsonObject) -> list[FieldFault]:
    return list(_check_spec(spec, "spec"))


_pod_faults: Final = remembered(_pod_spec_faults)


def _check_spec(spec: JsonObject, path: str) -> Iterator[FieldFault]:
    volumes = [each.get("name") for each in spec.get("volumes") or ()]
    names: set[str] = set()
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            where = f"{path}.{kind}[{index}]"
            yield from _check_container(container, where, volumes)
            name = container.get("name")
            if name and name in names:
                yield duplicate(f"{where}.name", name)
            names.add(name)
    yield from _check_volumes(volumes, f"{path}.volumes")
    if spec.get("restartPolicy") not in _RESTARTS:
        yield unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTARTS)
    if spec.get("activeDeadlineSeconds", 1) < 1:
        seconds = spec["activeDeadlineSeconds"]
        why = "must be between 1 and 2147483647, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", seconds, why)
    if selector := spec.get("nodeSelector"):
        yield from check_labels(selector, f"{path}.nodeSelector")
    yield from _check_tolerations(spec.get("tolerations") or (), f"{path}.tolerations")
    yield from _check_spreads(spec, f"{path}.topologySpreadConstraints")


def _check_volumes(names: list[str | None], path: str) -> Iterator[FieldFault]:
    for index, name in enumerate(names):
        where = f"{path}[{index}].name"
        if not name:
            yield required(where)
        elif why := why_no_label(name):
            yield invalid(where, name, why)
        elif name in names[:index]:
            yield duplicate(where, name)


def _check_container(
    container: JsonObject, path: str, volumes: list[str | None]
) -> Iterator[FieldFault]:
    name = container.get("name")
    if not name:
        yield required(f"{path}.name")
    elif why := why_no_label(name):
        yield invalid(f"{path}.name", name, why)
    if not container.get("image"):
        yield required(f"{path}.image")
    if container.get("imagePullPolicy") not in _PULLS:
        yield unsupported(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULLS)
    yield from _check_ports(container.get("ports") or (), f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            yield required(f"{path}.env[{index}].name")
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            where = f"{path}.volumeMounts[{index}].name"
            yield FieldFault(where, f'Not found: "{mount.get("name", "")}"')
        if not mount.get("mountPath"):
            yield required(f"{path}.volumeMounts[{index}].mountPath")
    yield from check_resources(container.get("resources") or {}, f"{path}.resources")


def _check_ports(ports: list[JsonObject] | tuple[()], path: str) -> Iterator[FieldFault]:
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        number = port.get("containerPort")
        if not number:
            yield required(f"{where}.containerPort")
        elif not 0 < number <= PORT_MAX:
            yield invalid(f"{where}.containerPort", number, PORT_RANGE)
        host = port.get("hostPort", 0)
        if host and not 0 < host <= PORT_MAX:
            yield invalid(f"{where}.hostPort", host, PORT_RANGE)
        if port.get("protocol") not in _PROTOCOLS:
            yield unsupported(f"{where}.protocol", port.get("protocol"), _PROTOCOLS)


def check_resources(resources: JsonObject, path: str) -> Iterator[FieldFault]:
    """Yield the faults of requests and limits; raise NoQuantity for a value that is none."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    yield from _check_amounts(limits, f"{path}.limits")
    yield from _check_amounts(requests, f"{path}.requests")
    for name, value in requests.items():
        if name not in limits:
            if not _may_exceed(name):
                yield required(
                    f"{path}.limits", "Limit must be set for non overcommitable resources"
                )
            continue
        asked, most = amount_of(value, name), amount_of(limits[name], name)
        if asked != most and not _may_exceed(name):
            yield invalid(
                f"{path}.requests", value, f"must be equal to {name} limit of {limits[name]}"
            )
        elif asked > most:
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", value, why)


def _check_amounts(amounts: JsonObject, path: str) -> Iterator[FieldFault]:
    for name, value in amounts.items():
        where = f"{path}[{name}]"
        is_standard = name in _STANDARD or name.startswith("hugepages-")
        if not is_label_key(name) or ("/" not in name and not is_standard):
            yield invalid(where, name, "must be a standard resource type or fully qualified")
        if "/" not in name and not is_standard:
            yield invalid(where, name, "must be a standard resource for containers")
        if amount_of(value, name) < 0:
            yield invalid(where, value, NOT_NEGATIVE)


def _may_exceed(resource: str) -> bool:
    return not resource.startswith("hugepages-") and (
        "/" not in resource or "kubernetes.io/" in resource
    )


def amount_of(value: object, resource: str) -> int:
    """Return the amount of a quantity; raise NoQuantity if it is none."""
    text = canonical(value)
    if text is None:
        raise NoQuantity(_QUANTITY)
    amount = parse_quantity(text, resource)
    return min(amount, -1) if text.startswith("-") else amount


def _check_tolerations(
    tolerations: list[JsonObject] | tuple[()], path: str
) -> Iterator[FieldFault]:
    for index, each in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator = each.get("key"), each.get("operator") or "Equal"
        if key and not is_label_key(key):
            yield invalid(f"{where}.key", key, "must be a qualified name")
        if operator not in _TOLERATION_OPERATORS and operator not in {"Lt", "Gt"}:
            yield unsupported(f"{where}.operator", operator, _TOLERATION_OPERATORS)
        if not key and operator != "Exists":
            yield invalid(
                f"{where}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and '
                'all keys"',
            )
        if operator == "Exists" and each.get("value"):
            why = "value must be empty when `operator` is 'Exists'"
            yield invalid(f"{where}.operator", each["value"], why)
        if each.get("effect") and each["effect"] not in _EFFECTS:
            yield unsupported(f"{where}.effect", each["effect"], _EFFECTS)
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{where}.effect", each.get("effect") or "", why)


def _check_spreads(spec: JsonObject, path: str) -> Iterator[FieldFault]:
    for index, each in enumerate(spec.get("topologySpreadConstraints") or ()):
        where = f"{path}[{index}]"
        if each.get("maxSkew", 0) <= 0:
            yield invalid(f"{where}.maxSkew", each.get("maxSkew", 0), "must be greater than zero")
        if not each.get("topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        when = each.get("whenUnsatisfiable")
        if when not in _WHEN:
            yield unsupported(f"{where}.whenUnsatisfiable", when or "", _WHEN)


def compare_pods(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a pod: most of its spec is immutable."""
    now, was = new.get("spec") or {}, old["spec"]
    for kind in ("containers", "initContainers"):
        if len(now.get(kind) or ()) != len(was.get(kind) or ()):
            yield forbidden_field(f"spec.{kind}", "pod updates may not add or remove containers")
            return
    yield from _compare_deadlines(
        now.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds")
    )
    yield from _compare_tolerations(now.get("tolerations") or (), was.get("tolerations") or ())
    gates = [each["name"] for each in was.get("schedulingGates") or ()]
    for index, gate in enumerate(now.get("schedulingGates") or ()):
        if gate["name"] not in gates:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden_field(f"spec.schedulingGates[{index}].name", why)
    if _fixed(now, was, is_gated=bool(gates)) != _fixed(was, was, is_gated=bool(gates)):
        yield forbidden_field("spec", f"pod updates may not change fields other than {_UPDATABLE}")


def _compare_deadlines(new: int | None, old: int | None) -> Iterator[FieldFault]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            yield invalid(path, None, "must not update from a positive integer to nil value")
    elif new < 0:
        yield invalid(path, new, "must be between 0 and 2147483647, inclusive")
    elif old is not None and old < new:
        yield invalid(path, new, "must be less than or equal to previous value")


def _compare_tolerations(
    new: list[JsonObject] | tuple[()], old: list[JsonObject] | tuple[()]
) -> Iterator[FieldFault]:
    kept = [_without(each, "tolerationSeconds") for each in new]
    if any(_without(each, "tolerationSeconds") not in kept for each in old):
        yield forbidden_field(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        )


def _fixed(spec: JsonObject, was: JsonObject, *, is_gated: bool) -> JsonObject:
    """Return the immutable part of a spec."""
    fixed = _without(spec, "activeDeadlineSeconds", "tolerations", "schedulingGates")
    for kind in ("containers", "initContainers"):
        if kind in fixed:
            fixed[kind] = [_without(each, "image") for each in fixed[kind]]
    if is_gated:
        selector = was.get("nodeSelector") or {}
        now = fixed.pop("nodeSelector", None) or {}
        fixed["nodeSelector"] = {key: now.get(key) for key in selector}
        fixed["affinity"] = _without(fixed.get("affinity") or {}, "nodeAffinity")
    return fixed


def _without(obj: JsonObject, *keys: str) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in keys}
