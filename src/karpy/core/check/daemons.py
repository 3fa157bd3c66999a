"""The DaemonSets that come along with a node."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from karpy.core.check.wishes import Values, may_grant, tolerates
from karpy.model.constraints import Taint
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.requirements import (
    Requirement,
    Requirements,
    collect,
    why_disjoint,
    why_incompatible,
)
from karpy.model.resources import Resources, add


class Daemon(Struct, frozen=True):
    """The pod of a DaemonSet, and what it requires of labels, once per required term."""

    pod: Pod
    alternatives: tuple[Requirements, ...]

    @property
    def rank(self) -> tuple[bool, int, int, int, str]:
        """Its place among others if there is no room for all."""
        about, asks = self.pod.disruption, self.pod.requests
        cpu, memory = asks.get("cpu", 0), asks.get("memory", 0)
        return not about.is_critical, -about.priority, cpu, memory, self.pod.key

    def may_run(self, values: Values, taints: Sequence[Taint]) -> bool:
        """Say whether it runs on a node with such labels, or may do so if values are open."""
        return self._tolerates(taints) and any(
            all(may_grant(values(key), wanted) for key, wanted in each.items())
            for each in self.alternatives
        )

    def is_expected(
        self, template: Requirements, its_type: Requirements, well_known: frozenset[str]
    ) -> bool:
        """Say whether some node of a template and type might run it, wherever it comes up."""
        return any(
            not why_incompatible(template, each, well_known) and not why_disjoint(its_type, each)
            for each in self.alternatives
        )

    def _tolerates(self, taints: Sequence[Taint]) -> bool:
        return tolerates(self.pod.rules.tolerations, taints)


def daemon(pod: Pod) -> Daemon:
    """Read the pod of a DaemonSet."""
    return Daemon(pod, tuple(strict_requirements(pod)))


def strict_requirements(pod: Pod) -> list[dict[str, Requirement]]:
    """List what a pod requires of labels, once for each of its required terms that can be met."""
    return [collect(each) for each in strict_wants(pod)]


def strict_wants(pod: Pod) -> list[tuple[Requirement, ...]]:
    """List the same as it is written."""
    terms = pod.rules.required_node_terms
    said = [term.expressions for term in terms if term.expressions] if terms else [()]
    wants = [(*pod.rules.node_selector, *expressions) for expressions in said]
    return [each for each in wants if not _contradict_each_other(each)]


def _contradict_each_other(wants: tuple[Requirement, ...]) -> bool:
    """Say whether no value is left of a label that must be there."""
    together = collect(wants)
    return any(together[each.key].is_empty and not each.is_negative for each in wants)


def still_to_come(
    daemons: Sequence[Daemon], bound: Iterable[Pod], allocatable: Resources
) -> Resources:
    """Return what daemons will request on top of those that run there, nothing below zero."""
    there = add(*(pod.requests for pod in bound if pod.is_owned_by(DAEMON_SET)))
    rest = _on_top(add(*(each.pod.requests for each in daemons)), there)
    if _is_room_for(rest, allocatable):
        return rest
    expected: Resources = {}
    for each in sorted(daemons, key=lambda each: each.rank):
        more = add(expected, each.pod.requests)
        if _is_room_for(more, allocatable):
            expected = more
    return _on_top(expected, there)


def _on_top(expected: Resources, there: Resources) -> Resources:
    return {name: max(0, amount - there.get(name, 0)) for name, amount in expected.items()}


def _is_room_for(requests: Resources, allocatable: Resources) -> bool:
    """Say whether an empty node holds so much, of what it lists."""
    return all(amount <= allocatable.get(name, amount) for name, amount in requests.items())
