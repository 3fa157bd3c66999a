"""Preferences, dropped one by one (section 4)."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from karpy.model.constraints import (
    TOLERATE_PREFERENCES,
    NodeTerm,
    WeightedNodeTerm,
    WeightedTerm,
)
from karpy.model.pods import PodRules
from karpy.model.requirements import Requirement, collect


def steps(rules: PodRules, *, has_soft_taints: bool) -> Iterator[PodRules]:
    """Yield the rules with all preferences, then with one less each time."""
    left: PodRules | None = rules
    last = rules
    while left is not None:
        yield left
        last = left
        left = _with_one_less(left, has_soft_taints=has_soft_taints)
    for term in rules.required_node_terms[:-1]:
        yield replace(last, required_node_terms=(term,))


def _with_one_less(rules: PodRules, *, has_soft_taints: bool) -> PodRules | None:
    if len(rules.required_node_terms) > 1:
        return replace(rules, required_node_terms=rules.required_node_terms[1:])
    if rules.preferred_affinity:
        return replace(rules, preferred_affinity=_without_heaviest(rules.preferred_affinity))
    if rules.preferred_anti_affinity:
        lighter = _without_heaviest(rules.preferred_anti_affinity)
        return replace(rules, preferred_anti_affinity=lighter)
    if rules.preferred_node_terms:
        at = _heaviest(rules.preferred_node_terms)
        rest = rules.preferred_node_terms[:at] + rules.preferred_node_terms[at + 1 :]
        return replace(rules, preferred_node_terms=rest)
    if any(spread.is_soft for spread in rules.spreads):
        spreads = list(rules.spreads)
        at = next(i for i, spread in enumerate(spreads) if spread.is_soft)
        spreads[at] = spreads[-1]
        return replace(rules, spreads=tuple(spreads[:-1]))
    if has_soft_taints and TOLERATE_PREFERENCES not in rules.tolerations:
        return replace(rules, tolerations=(*rules.tolerations, TOLERATE_PREFERENCES))
    return None


def _without_heaviest(terms: tuple[WeightedTerm, ...]) -> tuple[WeightedTerm, ...]:
    at = _heaviest(terms)
    return terms[:at] + terms[at + 1 :]


def _heaviest(terms: Sequence[WeightedTerm | WeightedNodeTerm]) -> int:
    return max(range(len(terms)), key=lambda i: (terms[i].weight, -i))


def strict(rules: PodRules) -> dict[str, Requirement]:
    """Return the required node rules of a pod: its selector and its first required term."""
    first = rules.required_node_terms[:1]
    return collect([*rules.node_selector, *(each for term in first for each in term.expressions)])


def full(rules: PodRules) -> dict[str, Requirement]:
    """Return the required node rules of a pod and its heaviest preference."""
    wishes = rules.preferred_node_terms
    heaviest = wishes[_heaviest(wishes)].term.expressions if wishes else ()
    return collect([*strict(rules).values(), *heaviest])


def contradicts_itself(rules: PodRules) -> bool:
    """Say whether the requirements of a pod exclude every value of a label that must exist."""
    first = rules.required_node_terms[:1]
    wishes = rules.preferred_node_terms
    heaviest = wishes[_heaviest(wishes)].term.expressions if wishes else ()
    if first and first[0].is_blank:
        return True
    return not _is_sound(
        [*rules.node_selector, *(each for term in first for each in term.expressions), *heaviest]
    )


def _is_sound(parts: Sequence[Requirement]) -> bool:
    wanted = {part.key for part in parts if not part.is_negative}
    return not any(left.is_empty and key in wanted for key, left in collect(parts).items())


def alternatives(
    rules: PodRules, terms: tuple[NodeTerm, ...] | None = None
) -> list[dict[str, Requirement]]:
    """
    Return the selector combined with each required term, or alone if there is no term.

    Contradictory combinations are left out: they match no node.
    """
    terms = rules.required_node_terms if terms is None else terms
    said = [term.expressions for term in terms if not term.is_blank] if terms else [()]
    parts = [[*rules.node_selector, *expressions] for expressions in said]
    return [collect(each) for each in parts if _is_sound(each)]
