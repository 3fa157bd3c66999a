"""
Spread constraints that pods have without asking.

An operator may tell kube-scheduler, and us, to spread pods that have no constraint of their own.
The pods to spread among are then those of the same Services and the same controller.
"""

from typing import Final

from msgspec.structs import replace

from karpy.model.constraints import LabelSelector, SpreadConstraint
from karpy.model.pods import Owner, Pod, PodController
from karpy.model.requirements import Requirement, one_of
from karpy.model.snapshot import Snapshot

_REPLICATION_CONTROLLER: Final = ("v1", "ReplicationController")
_WITH_SELECTOR: Final = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")})


def hard_spreads(pod: Pod, snapshot: Snapshot) -> tuple[SpreadConstraint, ...]:
    """Return the spread constraints that kube-scheduler must obey for a pod."""
    spreads = pod.rules.spreads
    if not spreads and snapshot.settings.default_spreads:
        selector = _deduce_selector(pod, snapshot)
        if selector.expressions:
            defaults = snapshot.settings.default_spreads
            spreads = tuple(replace(each, selector=selector) for each in defaults)
    return tuple(each for each in spreads if not each.is_soft)


def _deduce_selector(pod: Pod, snapshot: Snapshot) -> LabelSelector:
    """Join what the Services of a pod select with what its controller selects."""
    labels: dict[str, Requirement] = {}
    for service in snapshot.services:
        pairs = service.selector
        if service.namespace == pod.namespace and pairs is not None:
            wanted = {key: one_of(key, value) for key, value in pairs.items()}
            if LabelSelector(tuple(wanted.values())).selects(pod.labels):
                labels |= wanted
    extra: tuple[Requirement, ...] = ()
    owner = next((each for each in pod.owners if each.is_controller), None)
    controller = _find_controller(owner, pod, snapshot)
    if controller is not None and _kind(controller) == _REPLICATION_CONTROLLER:
        labels |= {each.key: each for each in controller.selector}
    elif controller is not None and _kind(controller) in _WITH_SELECTOR:
        extra = controller.selector
    return LabelSelector((*labels.values(), *extra))


def _find_controller(owner: Owner | None, pod: Pod, snapshot: Snapshot) -> PodController | None:
    if owner is None:
        return None
    wanted = (pod.namespace, owner.name, _kind(owner))
    for each in snapshot.controllers:
        if (each.namespace, each.name, _kind(each)) == wanted:
            return each
    return None


def _kind(thing: Owner | PodController) -> tuple[str, str]:
    return (thing.api_version, thing.kind)
