"""
What pods and DaemonSets require of a node, and whether it is surely met.

A label of an existing node has one value. A label of a new node may have several possible values;
a requirement is surely met only if each of these values meets it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from karpy.model.constraints import (
    PREFER_NO_SCHEDULE,
    NodeTerm,
    Taint,
    Toleration,
    first_untolerated,
)
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.requirements import (
    Requirement,
    Requirements,
    collect,
    why_disjoint,
    why_incompatible,
)
from karpy.model.resources import Resources, add

Alternatives: TypeAlias = tuple[NodeTerm, ...]
"""Alternatives, one of which must hold."""
Values: TypeAlias = Callable[[str], Requirement | None]
"""Key -> possible values of the label; None or an empty requirement if there is no such label."""


def alternatives_of(pod: Pod) -> tuple[Alternatives, ...]:
    """Return what a pod requires: its node selector, and one of its required terms."""
    found: list[Alternatives] = []
    if pod.rules.node_selector:
        found.append((NodeTerm(pod.rules.node_selector),))
    if pod.rules.required_node_terms:
        found.append(pod.rules.required_node_terms)
    return tuple(found)


def holds_surely(alternatives: Alternatives, values: Values) -> bool:
    """
    Say whether one alternative holds whatever values the labels take.

    As in Kubernetes, an alternative without expressions never holds. An alternative with
    matchFields cannot be judged from labels and counts as not held.
    """
    return any(
        bool(term.expressions)
        and not term.has_match_fields
        and all(is_surely_in(values(required.key), required) for required in term.expressions)
        for term in alternatives
    )


def is_surely_in(have: Requirement | None, required: Requirement) -> bool:
    """Say whether every possible value of a label meets a requirement."""
    if have is None or have.is_empty:
        return required.is_negative
    if not have.complement:
        return all(value in required for value in have.values)
    return (
        required.complement
        and not any(value in have for value in required.values)
        and (required.gte is None or (have.gte is not None and have.gte >= required.gte))
        and (required.lte is None or (have.lte is not None and have.lte <= required.lte))
    )


def may_be_in(have: Requirement | None, required: Requirement) -> bool:
    """Say whether some possible value of a label meets a requirement."""
    if have is None or have.is_empty:
        return required.is_negative
    return have.intersects(required)


def hard_taints(taints: Sequence[Taint]) -> tuple[Taint, ...]:
    """Return the taints without PreferNoSchedule, which never keeps a pod off a node."""
    return tuple(taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE)


def tolerates(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> bool:
    """Say whether every hard taint is tolerated."""
    return first_untolerated(hard_taints(taints), tolerations) is None


class Domains(Struct, frozen=True):
    """The domains of a key that a node is or may be in."""

    values: frozenset[str] = frozenset()
    is_open: bool = False
    """Whether every other value is possible as well, except `excluded`."""
    excluded: frozenset[str] = frozenset()
    may_lack: bool = False
    """Whether the node may lack the label."""

    @property
    def is_sure(self) -> bool:
        """Whether the node surely has the label, with one of `values`."""
        return bool(self.values) and not self.is_open and not self.may_lack

    @property
    def settled(self) -> str | None:
        """The only domain the node may be in, or None."""
        return min(self.values) if self.is_sure and len(self.values) == 1 else None

    def may_meet(self, other: "Domains") -> bool:
        """Say whether two nodes may be in the same domain."""
        if self.is_open and other.is_open:
            return True
        return any(map(self.may_be, other.values)) or any(map(other.may_be, self.values))

    def may_be(self, value: str) -> bool:
        """Say whether a node may be in a domain."""
        return value in self.values or (self.is_open and value not in self.excluded)


def as_domains(values: Requirement | None) -> Domains:
    """Return the possible domains of a label; a negative requirement sets no label."""
    if values is None or values.is_negative:
        return Domains(may_lack=True)
    if values.complement:
        return Domains(is_open=True, excluded=values.values)
    return Domains(values.values)


def join_domains(parts: Sequence[Domains]) -> Domains:
    """Return the domains of a node that may become any of several machines."""
    excluded = [part.excluded for part in parts if part.is_open]
    return Domains(
        frozenset().union(*(part.values for part in parts)),
        is_open=bool(excluded),
        excluded=frozenset.intersection(*excluded) if excluded else frozenset(),
        may_lack=any(part.may_lack for part in parts),
    )


class Daemon(Struct, frozen=True):
    """The pod of a DaemonSet, and its label requirements for each required term."""

    pod: Pod
    alternatives: tuple[Requirements, ...]

    @property
    def rank(self) -> tuple[bool, int, int, int, str]:
        """Sort key of the order in which daemons get room on a node."""
        about, requests = self.pod.disruption, self.pod.requests
        cpu, memory = requests.get("cpu", 0), requests.get("memory", 0)
        return not about.is_critical, -about.priority, cpu, memory, self.pod.key

    def may_run(self, values: Values, taints: Sequence[Taint]) -> bool:
        """Say whether the daemon runs on a node with some of the possible label values."""
        return self._tolerates(taints) and any(
            all(may_be_in(values(key), required) for key, required in each.items())
            for each in self.alternatives
        )

    def is_expected(
        self, template: Requirements, of_type: Requirements, well_known: frozenset[str]
    ) -> bool:
        """Say whether some node of a template and instance type may run the daemon."""
        return any(
            not why_incompatible(template, each, well_known) and not why_disjoint(of_type, each)
            for each in self.alternatives
        )

    def _tolerates(self, taints: Sequence[Taint]) -> bool:
        return tolerates(self.pod.rules.tolerations, taints)


def daemon(pod: Pod) -> Daemon:
    """Return the daemon of the pod of a DaemonSet."""
    return Daemon(pod, tuple(strict_requirements(pod)))


def strict_requirements(pod: Pod) -> list[dict[str, Requirement]]:
    """Return the merged label requirements of a pod for each required term that can be met."""
    return [collect(each) for each in required_terms(pod)]


def required_terms(pod: Pod) -> list[tuple[Requirement, ...]]:
    """Return the label requirements as written for each required term that can be met."""
    terms = pod.rules.required_node_terms
    alternatives = [term.expressions for term in terms if term.expressions] if terms else [()]
    requirements = [(*pod.rules.node_selector, *each) for each in alternatives]
    return [each for each in requirements if not _is_contradictory(each)]


def _is_contradictory(requirements: tuple[Requirement, ...]) -> bool:
    """Say whether requirements leave no value for a label that must exist."""
    together = collect(requirements)
    return any(together[each.key].is_empty and not each.is_negative for each in requirements)


def missing_daemon_requests(
    daemons: Sequence[Daemon], bound: Iterable[Pod], allocatable: Resources
) -> Resources:
    """Return the requests of daemons that do not run on a node yet, at least zero."""
    running = add(*(pod.requests for pod in bound if pod.is_owned_by(DAEMON_SET)))
    rest = _on_top(add(*(each.pod.requests for each in daemons)), running)
    if _is_room_for(rest, allocatable):
        return rest
    expected: Resources = {}
    for each in sorted(daemons, key=lambda each: each.rank):
        more = add(expected, each.pod.requests)
        if _is_room_for(more, allocatable):
            expected = more
    return _on_top(expected, running)


def _on_top(expected: Resources, running: Resources) -> Resources:
    return {name: max(0, amount - running.get(name, 0)) for name, amount in expected.items()}


def _is_room_for(requests: Resources, allocatable: Resources) -> bool:
    """Say whether requests fit an empty node, for the resources that it lists."""
    return all(amount <= allocatable.get(name, amount) for name, amount in requests.items())
