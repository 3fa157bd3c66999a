"""
What pods and DaemonSets require of a node, and what it takes to be sure that it is met.

A label of a node that exists has one value. A label of a node yet to be made may have several
possible values; then a requirement counts as met only if every one of them would do.
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
"""What values the label of a key may have; None, or no value at all, if there is no such label."""


def alternatives_of(pod: Pod) -> tuple[Alternatives, ...]:
    """List what must hold at once: the node selector, and one of the required terms."""
    found: list[Alternatives] = []
    if pod.rules.node_selector:
        found.append((NodeTerm(pod.rules.node_selector),))
    if pod.rules.required_node_terms:
        found.append(pod.rules.required_node_terms)
    return tuple(found)


def holds_surely(alternatives: Alternatives, values: Values) -> bool:
    """
    Say whether one alternative holds whatever values the labels take.

    As in Kubernetes, an alternative that says nothing holds nowhere. One with matchFields cannot
    be judged from labels and counts as not held.
    """
    return any(
        bool(term.expressions)
        and not term.has_match_fields
        and all(is_surely_in(values(wanted.key), wanted) for wanted in term.expressions)
        for term in alternatives
    )


def is_surely_in(have: Requirement | None, wanted: Requirement) -> bool:
    """Say whether every value the label may have is a wanted one."""
    if have is None or have.is_empty:
        return wanted.is_negative
    if not have.complement:
        return all(value in wanted for value in have.values)
    return (
        wanted.complement
        and not any(value in have for value in wanted.values)
        and (wanted.gte is None or (have.gte is not None and have.gte >= wanted.gte))
        and (wanted.lte is None or (have.lte is not None and have.lte <= wanted.lte))
    )


def may_be_in(have: Requirement | None, wanted: Requirement) -> bool:
    """Say whether some value the label may have is a wanted one."""
    if have is None or have.is_empty:
        return wanted.is_negative
    return have.intersects(wanted)


def hard_taints(taints: Sequence[Taint]) -> tuple[Taint, ...]:
    """Leave out the soft taints: they never keep kube-scheduler from binding a pod."""
    return tuple(taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE)


def tolerates(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> bool:
    """Say whether every hard taint is tolerated."""
    return first_untolerated(hard_taints(taints), tolerations) is None


class Domains(Struct, frozen=True):
    """In which domains of a key a node is or may come up."""

    values: frozenset[str] = frozenset()
    is_open: bool = False
    """Whether any other value is possible, too, but for those it shuns."""
    shunned: frozenset[str] = frozenset()
    may_lack: bool = False
    """Whether the node may carry no such label."""

    @property
    def is_sure(self) -> bool:
        """Whether the label is sure to be there, with one of the values."""
        return bool(self.values) and not self.is_open and not self.may_lack

    @property
    def settled(self) -> str | None:
        """The one domain it is sure to be in, or None."""
        return min(self.values) if self.is_sure and len(self.values) == 1 else None

    def may_meet(self, other: "Domains") -> bool:
        """Say whether two nodes may come up in the same domain."""
        if self.is_open and other.is_open:
            return True
        return any(map(self.may_be, other.values)) or any(map(other.may_be, self.values))

    def may_be(self, value: str) -> bool:
        """Say whether a node may come up in one domain."""
        return value in self.values or (self.is_open and value not in self.shunned)


def as_domains(values: Requirement | None) -> Domains:
    """Read what is known of a label as domains; one that is only shunned is not written at all."""
    if values is None or values.is_negative:
        return Domains(may_lack=True)
    if values.complement:
        return Domains(is_open=True, shunned=values.values)
    return Domains(values.values)


def join_domains(parts: Sequence[Domains]) -> Domains:
    """Say where a node may come up that may be any of several machines."""
    shunned = [part.shunned for part in parts if part.is_open]
    return Domains(
        frozenset().union(*(part.values for part in parts)),
        is_open=bool(shunned),
        shunned=frozenset.intersection(*shunned) if shunned else frozenset(),
        may_lack=any(part.may_lack for part in parts),
    )


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
            all(may_be_in(values(key), wanted) for key, wanted in each.items())
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
    """List what a pod requires of labels as it is written, once for each such term."""
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
