"""The ladder of a pod's rules: its preferences are dropped one by one until the pod fits."""

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


class NodeRules(Struct, frozen=True):
    """What rungs in a row require of a node; preferences not dropped yet count as required."""

    strict: dict[str, Requirement]
    """Node selector and first required term left; the domains of topology keys follow from it."""
    full: dict[str, Requirement]
    """Also the heaviest preferred node term left; whether a node is compatible follows from it."""
    is_possible: bool
    """Whether some node can meet all the requirements: none contradicts another."""
    tolerations: tuple[Toleration, ...]


class Rung(Struct, frozen=True):
    """One step of a ladder: rules for the node, and how many terms on other pods are dropped."""

    node_rules: NodeRules
    affinity: int
    """How many terms of `Ladder.affinity` are dropped, counted from the first."""
    anti_affinity: int
    """How many terms of `Ladder.anti_affinity` are dropped."""
    spreads: int
    """How many constraints of `Ladder.spreads` are dropped."""


class Ladder:
    """
    The rungs from all preferences down to none, in the order in which a pod tries them.

    Affinity, anti-affinity and spreads are listed once, in the order in which they are dropped; a
    rung says how many are dropped.
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
        self._known: tuple[object, NodeRules] | None = None
        """The node rules of the last rung asked for; rungs in a row share them."""

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
            self._known = asked, self._node_rules(term, preference, tolerates=bool(tolerates))
        return Rung(self._known[1], affinity, anti_affinity, spreads)

    def last_alike(self, index: int) -> int:
        """Return the last of the rungs in a row, from one on, that have equal node rules."""
        terms, near, away, preferences, soft, _ = self._drops
        middle = terms + near + away
        if terms <= index <= middle and preferences:
            return middle
        lower = middle + preferences
        return lower + soft if (lower if preferences else terms) <= index <= lower + soft else index

    def _node_rules(self, term: int, preference: int, *, tolerates: bool) -> NodeRules:
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
        return NodeRules(
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
    """
    Return soft and hard spreads, the soft ones in the order in which they are dropped.

    As in Karpenter, the last spread takes the place of a dropped one.
    """
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
    """Say whether the parts leave no value of a key, although one of them requires a value."""
    # Differs: requirements that contradict each other, such as `In [a]` and `In [b]`: Karpenter
    # takes the empty result for DoesNotExist and places the pod on nodes without the label; Karpy
    # places it nowhere.
    empty = {key for key, requirement in merged.items() if requirement.is_empty}
    return bool(empty) and any(part.key in empty and not part.is_negative for part in parts)


def alternatives_of(
    selector: Sequence[Requirement], terms: Sequence[NodeTerm]
) -> list[dict[str, Requirement]]:
    """Join a node selector with each required term; leave out joins that match no node."""
    said = [term.expressions for term in terms if not term.is_blank] if terms else [()]
    parts = [(*selector, *expressions) for expressions in said]
    return [each for part in parts if not _contradicts_itself(each := collect(part), part)]


def _heaviest_first(terms: Sequence[WeightedTerm]) -> list[WeightedTerm]:
    return sorted(terms, key=lambda term: -term.weight)
