"""Preferences, dropped one by one until the pod fits: the ladder of a pod's rules."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from karpy.model.constraints import (
    TOLERATE_PREFERENCES,
    AffinityTerm,
    NodeTerm,
    SpreadConstraint,
    Toleration,
    WeightedNodeTerm,
    WeightedTerm,
)
from karpy.model.pods import PodRules
from karpy.model.requirement import Requirement
from karpy.model.requirements import collect


class Rung(Struct, frozen=True):
    """What is asked for at one step: preferences still held count as required."""

    strict: dict[str, Requirement]
    """Node selector and the first required term left; decides topology."""
    full: dict[str, Requirement]
    """Also the heaviest preferred node term left; decides compatibility."""
    is_possible: bool
    """Whether the requirements do not contradict each other."""
    tolerations: tuple[Toleration, ...]
    spreads: tuple[SpreadConstraint, ...]
    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]


class _Held:
    """The preferences still held, mutable while climbing down."""

    def __init__(self, rules: PodRules, *, respects_preferences: bool) -> None:
        self.terms = list(rules.required_node_terms)
        self.spreads = [each for each in rules.spreads if respects_preferences or not each.is_soft]
        self.affinity: list[WeightedTerm] = []
        self.anti_affinity: list[WeightedTerm] = []
        self.node_terms: list[WeightedNodeTerm] = []
        self.tolerations = rules.tolerations
        if respects_preferences:
            self.affinity = _heaviest_first(rules.preferred_affinity)
            self.anti_affinity = _heaviest_first(rules.preferred_anti_affinity)
            self.node_terms = sorted(rules.preferred_node_terms, key=lambda term: -term.weight)

    def drop(self, *, can_tolerate: bool) -> bool:
        """Let go of the next preference; say whether there was one."""
        if len(self.terms) > 1:
            del self.terms[0]
        elif self.affinity:
            del self.affinity[0]
        elif self.anti_affinity:
            del self.anti_affinity[0]
        elif self.node_terms:
            del self.node_terms[0]
        elif (
            soft := next((i for i, each in enumerate(self.spreads) if each.is_soft), None)
        ) is not None:
            self.spreads[soft] = self.spreads[-1]
            del self.spreads[-1]
        elif can_tolerate and TOLERATE_PREFERENCES not in self.tolerations:
            self.tolerations = (*self.tolerations, TOLERATE_PREFERENCES)
        else:
            return False
        return True


def rungs(rules: PodRules, *, respects_preferences: bool, can_tolerate: bool) -> Iterator[Rung]:
    """List the steps from everything wished for down to what is required."""
    held = _Held(rules, respects_preferences=respects_preferences)
    yield _rung(rules, held)
    while held.drop(can_tolerate=can_tolerate):
        yield _rung(rules, held)
    # Differs: Karpenter drops required terms before preferences and never comes back to them, so
    # that a pod stays pending for a wish. Here the dropped terms get a second chance without any
    # wishes.
    for term in rules.required_node_terms[:-1]:
        held.terms = [term]
        yield _rung(rules, held)


def _rung(rules: PodRules, held: _Held) -> Rung:
    first = held.terms[0].expressions if held.terms else ()
    wished = held.node_terms[0].term.expressions if held.node_terms else ()
    parts = (*rules.node_selector, *first, *wished)
    strict = collect((*rules.node_selector, *first))
    full = collect(parts) if wished else strict
    return Rung(
        strict=strict,
        full=full,
        # Differs: Karpenter takes a term without expressions for no demand; Kubernetes for no node.
        is_possible=not _contradicts_itself(full, parts)
        and not (held.terms and held.terms[0].is_blank),
        tolerations=held.tolerations,
        spreads=tuple(held.spreads),
        affinity=rules.affinity + tuple(each.term for each in held.affinity),
        anti_affinity=rules.anti_affinity + tuple(each.term for each in held.anti_affinity),
    )


def _contradicts_itself(merged: Mapping[str, Requirement], parts: Sequence[Requirement]) -> bool:
    """Say whether no value is left of a key though some part of it asks for one."""
    # Differs: Karpenter takes what is left of `In [a]` and `In [b]` for DoesNotExist, and lets the
    # pod onto nodes without the label.
    return any(
        requirement.is_empty and any(not part.is_negative for part in parts if part.key == key)
        for key, requirement in merged.items()
    )


def alternatives_of(
    selector: Sequence[Requirement], terms: Sequence[NodeTerm]
) -> list[dict[str, Requirement]]:
    """Join a node selector with each required term; those that match no node are left out."""
    said = [term.expressions for term in terms if not term.is_blank] if terms else [()]
    parts = [(*selector, *expressions) for expressions in said]
    return [each for part in parts if not _contradicts_itself(each := collect(part), part)]


def _heaviest_first(terms: Sequence[WeightedTerm]) -> list[WeightedTerm]:
    return sorted(terms, key=lambda term: -term.weight)
