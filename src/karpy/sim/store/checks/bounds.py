"""Validation of LimitRanges and ResourceQuotas."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.sim.store.answers import FieldFault, duplicate, forbidden_field, invalid, required
from karpy.sim.store.checks.pods import NOT_NEGATIVE, amount_of
from karpy.sim.store.metadata import IMMUTABLE
from karpy.sim.store.quantities import LIMIT_BOUNDS

_TYPES: Final = frozenset({"Container", "Pod", "PersistentVolumeClaim"})
_ORDERED: Final = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""The smaller bound, the larger bound, the field of the fault, and its message."""
_MILLI: Final = 1000
_QUOTA_NAMES: Final = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "pods",
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    }
)
_QUOTA_PREFIXES: Final = ("hugepages-", "requests.hugepages-")
_QUOTA_SCOPES: Final = frozenset(
    {
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    }
)
_OF_PODS: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods", "count/pods"})
_OF_SCOPE: Final = {
    "BestEffort": frozenset({"pods", "count/pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_QUOTA_CONFLICTS: Final = (
    frozenset({"Terminating", "NotTerminating"}),
    frozenset({"BestEffort", "NotBestEffort"}),
)


def check_limit_range(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a LimitRange."""
    seen = set()
    for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, title = f"spec.limits[{index}]", item.get("type")
        if not title:
            yield required(f"{path}.type")
        elif title not in _TYPES and "/" not in title:
            why = "must be a standard limit type or fully qualified"
            yield invalid(f"{path}.type", title, why)
        if title in seen:
            yield duplicate(f"{path}.type", title)
        seen.add(title)
        faults = list(_check_amounts(item, path))
        yield from faults or _check_item(item, path)


def _check_amounts(item: JsonObject, path: str) -> Iterator[FieldFault]:
    for bound in LIMIT_BOUNDS:
        for name, value in (item.get(bound) or {}).items():
            if amount_of(value, name) < 0:
                yield invalid(f"{path}.{bound}[{name}]", value, NOT_NEGATIVE)


def _check_item(item: JsonObject, path: str) -> Iterator[FieldFault]:
    bounds = {bound: item.get(bound) or {} for bound in LIMIT_BOUNDS}
    if item.get("type") == "Pod":
        for field in ("default", "defaultRequest"):
            if bounds[field]:
                yield forbidden_field(
                    f"{path}.{field}", "may not be specified when `type` is 'Pod'"
                )
        bounds |= {"default": {}, "defaultRequest": {}}
    has_storage = "storage" in {**bounds["min"], **bounds["max"]}
    if item.get("type") == "PersistentVolumeClaim" and not has_storage:
        why = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", why)
    for name in sorted({name for amounts in bounds.values() for name in amounts}):
        yield from _check_order(bounds, name, path)
        yield from _check_ratio(bounds, name, path)


def _check_order(bounds: JsonObject, name: str, path: str) -> Iterator[FieldFault]:
    for small, large, field, text in _ORDERED:
        less, more = bounds[small].get(name), bounds[large].get(name)
        if less is None or more is None or amount_of(less, name) <= amount_of(more, name):
            continue
        # For a wrong default, an API server shows the value of the other bound.
        shown = bounds["max"].get(name) if (small, large) == ("default", "max") else None
        value = shown or (less if small == "min" and field != "defaultRequest" else None)
        yield invalid(
            f"{path}.{field}[{name}]", value or bounds[field][name], text.format(less, more)
        )


def _check_ratio(bounds: JsonObject, name: str, path: str) -> Iterator[FieldFault]:
    ratio = bounds["maxLimitRequestRatio"].get(name)
    if ratio is None:
        return
    where, thousandths = f"{path}.maxLimitRequestRatio[{name}]", amount_of(ratio, "cpu")
    if thousandths < _MILLI:
        yield invalid(where, ratio, f"ratio {ratio} is less than 1")
    least, most = bounds["min"].get(name), bounds["max"].get(name)
    if least is None or most is None or not amount_of(least, name):
        return
    highest = amount_of(most, name) / amount_of(least, name)
    if thousandths > highest * _MILLI:
        yield invalid(where, ratio, f"ratio {ratio} is greater than max/min = {highest:f}")


def check_resource_quota(obj: JsonObject) -> Iterator[FieldFault]:
    """Yield the faults of a ResourceQuota."""
    spec = obj.get("spec") or {}
    for name, value in (spec.get("hard") or {}).items():
        if name not in _QUOTA_NAMES and "/" not in name and not name.startswith(_QUOTA_PREFIXES):
            for why in ("type or fully qualified", "for quota"):
                yield invalid(f"spec.hard[{name}]", name, f"must be a standard resource {why}")
        elif amount_of(value, name) < 0:
            yield invalid(f"spec.hard[{name}]", value, NOT_NEGATIVE)
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _QUOTA_SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
    if any(_is_misplaced(scope, name) for scope in scopes for name in spec.get("hard") or ()):
        yield invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    if any({*scopes} >= pair for pair in _QUOTA_CONFLICTS):
        yield invalid("spec.scopes", scopes, "conflicting scopes")


def compare_resource_quotas(new: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Yield the forbidden changes of a ResourceQuota: its scopes are immutable."""
    now, was = (each.get("spec") or {} for each in (new, old))
    if set(now.get("scopes") or ()) != set(was.get("scopes") or ()):
        yield invalid("spec.scopes", now.get("scopes") or [], IMMUTABLE)


def _is_misplaced(scope: str, name: str) -> bool:
    """Say whether a scope does not apply to a resource."""
    if scope in {"BestEffort", "VolumeAttributesClass"}:
        return name not in _OF_SCOPE[scope]
    is_of_pods = name in _OF_PODS or name.startswith(("requests.", "limits.", "hugepages-"))
    return scope in _QUOTA_SCOPES and not (is_of_pods and name != "requests.storage")
