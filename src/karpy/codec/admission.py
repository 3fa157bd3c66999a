"""
The changes of admission to a pod's spec: by LimitRanges, its PriorityClass and its RuntimeClass.

Amounts stay as they are written, because they become part of a spec again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from karpy.codec.constraints import check_label, read_tolerations
from karpy.codec.fields import Fields, JsonObject

Amounts: TypeAlias = Mapping[str, Any]
_CONTAINERS: Final = ("containers", "initContainers")
_AMOUNTS: Final = ("max", "min", "default", "defaultRequest")


class LimitRange(Struct, frozen=True):
    """The default requests and limits of containers in a namespace."""

    name: str
    namespace: str
    limits: Amounts
    requests: Amounts


class RuntimeClass(Struct, frozen=True):
    """The overhead, node selector and tolerations of pods with a RuntimeClass."""

    name: str
    overhead: Amounts
    node_selector: Mapping[str, str]
    tolerations: tuple[JsonObject, ...]


class PriorityClass(Struct, frozen=True):
    """The priority of pods with a PriorityClass."""

    name: str
    value: int
    is_usual: bool = False
    """Whether it is the class of pods that name none: `globalDefault`."""
    preemption: str = ""


class AdmissionRules:
    """The LimitRanges, RuntimeClasses and PriorityClasses of a cluster."""

    def __init__(
        self,
        ranges: Iterable[LimitRange] = (),
        runtimes: Iterable[RuntimeClass] = (),
        priorities: Iterable[PriorityClass] = (),
    ) -> None:
        # Parity: two LimitRanges with a default for one resource: as in an API server, the first
        # one counts. The API server has no order; Karpy takes them by name.
        self._ranges: dict[str, list[LimitRange]] = {}
        for each in sorted(ranges, key=lambda found: found.name):
            self._ranges.setdefault(each.namespace, []).append(each)
        self._runtimes = {each.name: each for each in runtimes}
        self._priorities = {each.name: each for each in priorities}
        # Parity: several PriorityClasses with `globalDefault`: as in an API server, the one with
        # the lowest value counts.
        usual = (each for each in self._priorities.values() if each.is_usual)
        self._usual = min(usual, key=lambda each: (each.value, each.name), default=None)

    def amounts_added(self, spec: JsonObject, namespace: str) -> int:
        """Return an upper bound of what `admitted` writes into a spec, for limits on its time."""
        fields = Fields(spec, "spec")
        ranges = self._ranges.get(namespace, ())
        containers = sum(len(fields.items(key)) for key in _CONTAINERS) if ranges else 0
        usual = sum(len(each.limits) + len(each.requests) for each in ranges)
        runtime = self._runtimes.get(fields.text("runtimeClassName"))
        compared = len(runtime.tolerations) * len(fields.items("tolerations")) if runtime else 0
        return containers * usual + compared

    def admitted(self, spec: JsonObject, namespace: str) -> JsonObject:
        """Return the spec that a pod of this namespace has once it is admitted."""
        # Parity: admission of pods from manifests: as in an API server, the plugins LimitRanger,
        # Priority and RuntimeClass apply in this order.
        fields = Fields(spec, "spec")
        for limits in self._ranges.get(namespace, ()):
            fields = Fields(with_usual_amounts(fields, limits), "spec")
        name = fields.text("priorityClassName")
        priority = self._priorities.get(name) if name else self._usual
        if priority is not None:
            fields = Fields(with_priority(fields, priority), "spec")
        runtime = self._runtimes.get(fields.text("runtimeClassName"))
        return fields.obj if runtime is None else with_runtime(fields, runtime)


AS_WRITTEN: Final = AdmissionRules()
"""Rules that change no spec."""


def read_limit_range(fields: Fields) -> LimitRange:
    """Read the defaults of a LimitRange for containers."""
    meta = fields.child("metadata")
    limits: JsonObject = {}
    requests: JsonObject = {}
    for item in fields.child("spec").children("limits"):
        if item.text("type") == "Container":
            for key in _AMOUNTS:
                item.quantities(key)
            usual = with_implied_amounts(item.obj)
            limits |= usual["default"]
            requests |= usual["defaultRequest"]
    namespace = meta.text("namespace") or "default"
    return LimitRange(meta.needed("name"), namespace, limits, requests)


def read_runtime_class(fields: Fields) -> RuntimeClass:
    """Read a RuntimeClass."""
    overhead, scheduling = fields.child("overhead"), fields.child("scheduling")
    overhead.quantities("podFixed")
    selector = scheduling.child("nodeSelector")
    read_tolerations(scheduling)
    return RuntimeClass(
        fields.child("metadata").needed("name"),
        overhead.child("podFixed").obj,
        {key: check_label(selector, key) for key in scheduling.labels("nodeSelector")},
        tuple(scheduling.items("tolerations")),
    )


def read_priority_class(fields: Fields) -> PriorityClass:
    """Read a PriorityClass."""
    return PriorityClass(
        fields.child("metadata").needed("name"),
        fields.number("value", 0) or 0,
        fields.flag("globalDefault"),
        fields.text("preemptionPolicy"),
    )


def with_priority(spec: Fields, priority: PriorityClass) -> JsonObject:
    """Return the spec of a pod with the priority of its class."""
    given = {"priorityClassName": priority.name, "priority": priority.value}
    if priority.preemption:
        given["preemptionPolicy"] = priority.preemption
    return {**spec.obj, **given}


def with_implied_amounts(item: JsonObject) -> JsonObject:
    """Return an item of a LimitRange for containers with the defaults that an API server adds."""
    most, least, limits, requests = (item.get(key) or {} for key in _AMOUNTS)
    limits = {**most, **limits}
    return {**item, "default": limits, "defaultRequest": {**least, **limits, **requests}}


def with_usual_amounts(spec: Fields, usual: LimitRange) -> JsonObject:
    """Return the spec of a pod whose containers have the limits and requests of a LimitRange."""
    given = {
        key: [_container(each, usual) for each in spec.children(key)]
        for key in _CONTAINERS
        if key in spec
    }
    return {**spec.obj, **given}


def with_runtime(spec: Fields, runtime: RuntimeClass) -> JsonObject:
    """Return the spec of a pod with the additions of its RuntimeClass; own fields take priority."""
    return {**spec.obj, **dict(_of_runtime(spec, runtime))}


def _container(container: Fields, usual: LimitRange) -> JsonObject:
    resources = container.child("resources")
    limits, requests = resources.child("limits").obj, resources.child("requests").obj
    # By then, an API server has defaulted requests to the container's limits.
    amounts = {
        "limits": {**usual.limits, **limits},
        "requests": {**usual.requests, **limits, **requests},
    }
    filled = {key: each for key, each in amounts.items() if each}
    return {**container.obj, "resources": {**resources.obj, **filled}}


def _of_runtime(spec: Fields, runtime: RuntimeClass) -> Iterator[tuple[str, object]]:
    if runtime.overhead and not spec.child("overhead").obj:
        yield "overhead", runtime.overhead
    if runtime.node_selector:
        yield "nodeSelector", {**runtime.node_selector, **spec.child("nodeSelector").obj}
    if runtime.tolerations:
        own = spec.items("tolerations")
        yield "tolerations", [*own, *(each for each in runtime.tolerations if each not in own)]
