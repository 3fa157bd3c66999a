"""Default spread constraints: the cluster's, for pods that bring none of their own."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from karpy.model.constraints import LabelSelector, SpreadConstraint
from karpy.model.pods import Pod, PodController, PodRules, Service
from karpy.model.requirement import Requirement
from karpy.model.snapshot import Snapshot

_REPLICATION_CONTROLLER = ("v1", "ReplicationController")
_SELECTING = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")})


def with_default_spreads(pods: Sequence[Pod], snapshot: Snapshot) -> Sequence[Pod]:
    """Give pods without spread constraints the cluster's, if it is clear whom they belong with."""
    defaults = snapshot.settings.default_spreads
    if not defaults:
        return pods
    deducer = _Deducer(snapshot.services, snapshot.controllers)
    shared: dict[tuple[int, LabelSelector], PodRules] = {}
    result = []
    for pod in pods:
        selector = None if pod.rules.spreads else deducer.selector(pod)
        if selector is None:
            result.append(pod)
            continue
        key = (id(pod.rules), selector)
        if key not in shared:
            shared[key] = replace(pod.rules, spreads=_selecting(defaults, selector))
        result.append(replace(pod, rules=shared[key]))
    return result


def _selecting(
    defaults: Sequence[SpreadConstraint], selector: LabelSelector
) -> tuple[SpreadConstraint, ...]:
    return tuple(replace(each, selector=selector) for each in defaults)


class _Deducer:
    """Finds out which pods belong together: by Services and by the controller that owns them."""

    def __init__(self, services: Sequence[Service], controllers: Sequence[PodController]) -> None:
        self._services: dict[str, list[Mapping[str, str]]] = {}
        for service in services:
            if service.selector is not None:
                self._services.setdefault(service.namespace, []).append(service.selector)
        self._controllers = {
            (each.namespace, each.api_version, each.kind, each.name): each for each in controllers
        }
        self._known: dict[object, LabelSelector | None] = {}

    def selector(self, pod: Pod) -> LabelSelector | None:
        """Return a selector for the pods that belong with this one, or None if nothing tells."""
        owner = next((each for each in pod.owners if each.is_controller), None)
        controller = None
        if owner is not None:
            key = (pod.namespace, owner.api_version, owner.kind, owner.name)
            controller = self._controllers.get(key)
        memo = (pod.namespace, id(pod.labels), id(controller))
        if memo not in self._known:
            self._known[memo] = self._deduce(pod, controller)
        return self._known[memo]

    def _deduce(self, pod: Pod, controller: PodController | None) -> LabelSelector | None:
        labels: dict[str, str] = {}
        for selector in self._services.get(pod.namespace, ()):
            if all(pod.labels.get(key) == value for key, value in selector.items()):
                labels.update(selector)
        extra: tuple[Requirement, ...] = ()
        if controller is not None:
            kind = (controller.api_version, controller.kind)
            if kind == _REPLICATION_CONTROLLER:
                for each in controller.selector:
                    labels[each.key] = min(each.values)
            elif kind in _SELECTING:
                extra = controller.selector
        if not labels and not extra:
            return None
        own = tuple(Requirement(key, frozenset({value})) for key, value in sorted(labels.items()))
        return LabelSelector(own + extra)
