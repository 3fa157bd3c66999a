"""Who is where once a plan has come true, and whom a rule between pods is about."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from karpy.core.check.domains import Domains
from karpy.core.check.places import Place
from karpy.model.constraints import (
    AffinityTerm,
    LabelSelector,
    SpreadConstraint,
    resolve_label_keys,
)
from karpy.model.pods import Pod

Kind: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
"""Namespace and labels: all that a rule can tell of a pod."""


class Resident(Struct, frozen=True, eq=False):
    """A pod and its place."""

    pod: Pod
    place: Place
    is_new: bool
    """Whether the plan put it there; the others run there already."""


class Scope(Struct, frozen=True):
    """Whom a rule is about; `namespaces` of None are all of them."""

    namespaces: frozenset[str] | None
    selector: LabelSelector | None

    def selects(self, pod: Pod) -> bool:
        return (
            self.selector is not None
            and (self.namespaces is None or pod.namespace in self.namespaces)
            and self.selector.selects(pod.labels)
        )


class Crowd:
    """All residents, in groups of those that no rule can tell apart."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.residents: list[Resident] = []
        self._kinds: dict[Kind, list[Resident]] = {}
        self._by_label: dict[tuple[str, str], list[Kind]] = {}
        for place in places:
            for pod in place.bound:
                if pod.is_active:
                    self._add(Resident(pod, place, is_new=False))
            for pod in place.pods:
                self._add(Resident(pod, place, is_new=True))

    def _add(self, resident: Resident) -> None:
        self.residents.append(resident)
        kind = (resident.pod.namespace, frozenset(resident.pod.labels.items()))
        if kind not in self._kinds:
            self._kinds[kind] = []
            for label in sorted(kind[1]):
                self._by_label.setdefault(label, []).append(kind)
        self._kinds[kind].append(resident)

    def select(self, *scopes: Scope) -> list[Resident]:
        """Return those that every scope selects."""
        found: list[Resident] = []
        for kind in self._candidates(scopes[0]):
            members = self._kinds[kind]
            if all(scope.selects(members[0].pod) for scope in scopes):
                found += members
        return found

    def _candidates(self, scope: Scope) -> Iterable[Kind]:
        """Return all kinds, or those with a label that the selector wants in any case."""
        for wanted in scope.selector.expressions if scope.selector else ():
            if len(wanted.values) == 1 and not wanted.complement:
                return self._by_label.get((wanted.key, min(wanted.values)), ())
        return self._kinds


class Tally:
    """How many pods there are, or may be, in each domain of a key."""

    def __init__(self, domains: Iterable[Domains]) -> None:
        self._all = list(domains)
        self._open = [each for each in self._all if each.is_open]
        self._by_value: Counter[str] = Counter()
        for each in self._all:
            self._by_value.update(each.values)

    @property
    def domains(self) -> frozenset[str]:
        """The domains that have any."""
        return frozenset(self._by_value)

    def most(self, domains: Domains) -> tuple[int, str]:
        """Return how many may be in the fullest of these domains, and which one that is."""
        if domains.is_open:
            return sum(map(domains.may_meet, self._all)), "any"
        counts = [(self[value], value) for value in sorted(domains.values)]
        return max(counts, key=lambda each: each[0], default=(0, ""))

    def __getitem__(self, value: str) -> int:
        maybe = sum(value not in each.values and each.may_be(value) for each in self._open)
        return self._by_value[value] + maybe


def settled(domains: Iterable[Domains]) -> list[Domains]:
    """Leave out all that may be in more than one domain."""
    return [each for each in domains if each.settled is not None]


def spread_scope(spread: SpreadConstraint, pod: Pod) -> Scope:
    """Say which pods a spread constraint of a pod counts."""
    selector = resolve_label_keys(spread.selector, pod.labels, spread.match_label_keys)
    return Scope(frozenset({pod.namespace}), selector)


def affinity_scope(
    term: AffinityTerm, pod: Pod, namespaces: Mapping[str, Mapping[str, str]]
) -> Scope:
    """Say which pods an affinity or anti-affinity term of a pod is about."""
    selector = resolve_label_keys(
        term.selector, pod.labels, term.match_label_keys, term.mismatch_label_keys
    )
    return Scope(_namespaces_of(term, pod, namespaces), selector)


def _namespaces_of(
    term: AffinityTerm, pod: Pod, namespaces: Mapping[str, Mapping[str, str]]
) -> frozenset[str] | None:
    chosen = term.namespace_selector
    if chosen is None:
        return frozenset(term.namespaces) or frozenset({pod.namespace})
    if not chosen.expressions:
        return None
    matching = {name for name, labels in namespaces.items() if chosen.selects(labels)}
    return frozenset(term.namespaces) | matching
