"""Preferences, dropped one by one until the pod fits: the ladder of a pod's rules."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from karpy.model.constraints import (
    TOLERATE_PREFERENCES,
    NodeTerm,
    SpreadConstraint,
    Toleration,
    WeightedTerm,
)
from karpy.model.pods import PodRules
from karpy.model.requirements import Requirement, collect


class Footing(Struct, frozen=True):
    """What rungs in a row ask of a node: preferences still held count as required."""

    strict: dict[str, Requirement]
    """Node selector and the first required term left; decides topology."""
    full: dict[str, Requirement]
    """Also the heaviest preferred node term left; decides compatibility."""
    is_possible: bool
    """Whether the requirements do not contradict each other."""
    tolerations: tuple[Toleration, ...]


class Rung(Struct, frozen=True):
    """What is asked for at one step: of a node, and of other pods by what the ladder holds."""

    footing: Footing
    affinity: int
    """How many terms of the ladder's affinity are dropped, and of the others below."""
    anti_affinity: int
    spreads: int


class Ladder:
    """
    The steps from everything preferred down to what is required.

    What is asked of other pods is listed once, first what is dropped first; a rung only says how
    many are gone.
    """

    def __init__(self, rules: PodRules, *, respects_preferences: bool, can_tolerate: bool) -> None:
        preferring = rules if respects_preferences else PodRules()
        near = _heaviest_first(preferring.preferred_affinity)
        away = _heaviest_first(preferring.preferred_anti_affinity)
        soft, hard = _in_order_of_dropping(
            [each for each in rules.spreads if respects_preferences or not each.is_soft]
        )
        self.affinity = (*(each.term for each in near), *rules.affinity)
        self.anti_affinity = (*(each.term for each in away), *rules.anti_affinity)
        self.spreads: tuple[SpreadConstraint, ...] = (*soft, *hard)
        terms = max(len(rules.required_node_terms) - 1, 0)
        preferences = sorted(preferring.preferred_node_terms, key=lambda term: -term.weight)
        can_tolerate = can_tolerate and TOLERATE_PREFERENCES not in rules.tolerations
        self._drops = (terms, len(near), len(away), len(preferences), len(soft), int(can_tolerate))
        self._last = sum(self._drops)
        # Differs: a pod with several required node affinity terms and preferences: Karpenter drops
        # the first terms before the preferences and never returns to them, so that the pod may stay
        # pending for a preference; Karpy tries the dropped terms again without preferences.
        self._length = self._last + 1 + terms
        self._rules = rules
        self._preferences = preferences
        self._tolerant = (*rules.tolerations, TOLERATE_PREFERENCES)
        self._known: tuple[object, Footing] | None = None
        """What was asked for last: rungs in a row share it."""

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Rung:
        gone = []
        left = min(index, self._last)
        for count in self._drops:
            gone.append(min(left, count))
            left -= gone[-1]
        term, affinity, anti_affinity, preference, spreads, tolerates = gone
        if index > self._last:
            term = index - self._last - 1
        asked = (term, preference, tolerates)
        if self._known is None or self._known[0] != asked:
            self._known = asked, self._footing(term, preference, tolerates=bool(tolerates))
        return Rung(self._known[1], affinity, anti_affinity, spreads)

    def last_alike(self, index: int) -> int:
        """Return the last rung from one on that asks the same of a node."""
        terms, near, away, preferences, soft, _ = self._drops
        middle = terms + near + away
        if terms <= index <= middle and preferences:
            return middle
        lower = middle + preferences
        return lower + soft if (lower if preferences else terms) <= index <= lower + soft else index

    def _footing(self, term: int, preference: int, *, tolerates: bool) -> Footing:
        selector, terms = self._rules.node_selector, self._rules.required_node_terms
        first = terms[term].expressions if terms else ()
        preferred = (
            self._preferences[preference].term.expressions
            if preference < len(self._preferences)
            else ()
        )
        parts = (*selector, *first, *preferred)
        strict = collect((*selector, *first))
        full = collect(parts) if preferred else strict
        return Footing(
            strict=strict,
            full=full,
            # Differs: a required node affinity term without expressions: Karpenter lets it match
            # every node; Karpy lets it match none, as Kubernetes defines it.
            is_possible=not _contradicts_itself(full, parts)
            and not (terms and terms[term].is_blank),
            tolerations=self._tolerant if tolerates else self._rules.tolerations,
        )


def _in_order_of_dropping(
    spreads: Sequence[SpreadConstraint],
) -> tuple[list[SpreadConstraint], list[SpreadConstraint]]:
    """Sort out the soft ones, each of which gives its place to the last one; the rest stays."""
    left, dropped, place = list(spreads), [], 0
    while place < len(left):
        if not left[place].is_soft:
            place += 1
            continue
        dropped.append(left[place])
        last = left.pop()
        if place < len(left):
            left[place] = last
    return dropped, left


def _contradicts_itself(merged: Mapping[str, Requirement], parts: Sequence[Requirement]) -> bool:
    """Say whether no value is left of a key though some part of it asks for one."""
    # Differs: requirements that contradict each other, such as `In [a]` and `In [b]`: Karpenter
    # takes the empty result for DoesNotExist and places the pod on nodes without the label; Karpy
    # places it nowhere.
    empty = {key for key, requirement in merged.items() if requirement.is_empty}
    return bool(empty) and any(part.key in empty and not part.is_negative for part in parts)


def alternatives_of(
    selector: Sequence[Requirement], terms: Sequence[NodeTerm]
) -> list[dict[str, Requirement]]:
    """Join a node selector with each required term; those that match no node are left out."""
    said = [term.expressions for term in terms if not term.is_blank] if terms else [()]
    parts = [(*selector, *expressions) for expressions in said]
    return [each for part in parts if not _contradicts_itself(each := collect(part), part)]


def _heaviest_first(terms: Sequence[WeightedTerm]) -> list[WeightedTerm]:
    return sorted(terms, key=lambda term: -term.weight)
