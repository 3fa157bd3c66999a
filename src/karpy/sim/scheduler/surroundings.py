"""Other pods as a pod to be placed sees them: spread, affinity and anti-affinity."""

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from karpy.codec.labelselectors import Selector
from karpy.sim.scheduler.choices import ANY_NODE
from karpy.sim.scheduler.kins import Kin
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable
from karpy.sim.scheduler.refusals import (
    AFFINITY_UNMET,
    ANTI_AFFINITY_BROKEN,
    OTHERS_AVERSE,
    SPREAD_BROKEN,
    SPREAD_UNLABELLED,
    Refusal,
)
from karpy.sim.scheduler.tallies import Tally, Weigh
from karpy.sim.scheduler.terms import Namespaces, PodTerm, Spread
from karpy.sim.scheduler.wants import Wants

_BY_SERIAL: Final = attrgetter("serial")
_NEED_WEIGHT: Final = 1
"""What it is worth to be near a pod that needs this one."""


class Surroundings:
    """Counts of the pods that a pod of some wants must or would like to consider."""

    def __init__(
        self,
        wants: Wants,
        table: NodeTable,
        namespaces: Namespaces,
        defaults: Callable[[Wants], tuple[Spread, ...]],
    ) -> None:
        self._wants = wants
        self._weighers: dict[Selector | None, Weigh] = {}
        """By selector: how spreads weigh pods. Hosts and zones weigh alike most of the time."""
        labels = wants.kin.labels
        hard = [each for each in wants.spreads if not each.is_soft]
        spreads = wants.spreads or defaults(wants)
        soft = [each for each in spreads if each.is_soft]
        self.ignores_unlabelled = bool(wants.spreads)
        """Whether nodes without one of the keys of soft constraints score nothing."""
        self._hard = [(each, self._spread(each, hard), int(each.means(labels))) for each in hard]
        together = soft if self.ignores_unlabelled else []
        self.soft: Final = [(each, self._spread(each, together)) for each in soft]
        """Soft constraints, and the pods that count for each."""
        self._meet(wants, table, namespaces)
        tallies = [tally for _, tally, _ in self._hard]
        soft_tallies = [tally for _, tally in self.soft]
        tallies += [*self._near, *self._away, *self._averse, *soft_tallies, *self.preferences]
        self.tallies: Final = tuple(tallies)
        self.hosts: Final = tuple(
            each for each in tallies if each.is_by_host and each not in soft_tallies
        )
        self._own_counts = [each for each in soft_tallies if each.is_by_host]
        """A preferred spread over hosts counts the pods of each node alone."""
        self.keys: Final = tuple(dict.fromkeys(each.key for each in tallies if not each.is_by_host))
        self.is_demanding: Final = bool(self._hard or self._near or self._away or self._averse)
        """Whether it can refuse a node at all."""
        self._lows: list[int] = []
        self.concerned: Final[dict[Kin, tuple[tuple[Tally, int], ...]]] = {}
        """By kin, if such pods count: the tallies in which they do, and for how much."""
        self._asked: set[Kin] = set()
        self.measure()
        self.meet(table)

    @property
    def has_company(self) -> bool:
        """Whether there are pods that count on any node by itself."""
        return any(any(tally.totals.values()) for tally in self.hosts) or any(
            any(tally.counts) for tally in self._own_counts
        )

    def survey(self, table: NodeTable) -> None:
        """Count the nodes of all slots, for the first time."""
        for tally in self.tallies:
            tally.survey(table)

    def place(self, slot: int, node: NodeInfo | None) -> None:
        """Count the node of a slot anew."""
        for tally in self.tallies:
            tally.place(slot, node)

    def shift(self, slot: int, kin: Kin, whole: int, live: int) -> None:
        """Count pods in or out."""
        for tally, weight in self.ask(kin):
            tally.shift(slot, weight, whole, live)

    def ask(self, kin: Kin) -> tuple[tuple[Tally, int], ...]:
        """Return the tallies in which a kind of pods counts, and for how much."""
        if kin not in self._asked:
            self._asked.add(kin)
            self._weigh(kin)
        return self.concerned.get(kin, ())

    def meet(self, table: NodeTable) -> None:
        """Ask about the kinds of pods that are new."""
        # Kinds that came and went between two calls make no difference.
        newcomers = table.kins - self._asked
        self._asked |= newcomers
        for kin in sorted(newcomers, key=_BY_SERIAL):
            self._weigh(kin)

    def part(self, table: NodeTable) -> None:
        """Forget the kinds of pods that are gone."""
        for kin in self._asked - table.kins:
            self._asked.discard(kin)
            for tally, _ in self.concerned.pop(kin, ()):
                tally.forget(kin)

    def measure(self) -> None:
        """Find out how few pods the emptiest domains have; needed after every change."""
        if self._hard:
            self._lows = [_lowest(spread, tally) for spread, tally, _ in self._hard]

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Say why other pods forbid a node, or None."""
        return self._why_uneven(node) or self._why_averse(node)

    def company(self, node: NodeInfo) -> tuple[int, ...]:
        """Return how many pods are on a node, as far as hosts are considered one by one."""
        slot = node.slot
        own = self._own_counts
        if not self.hosts:
            return tuple([tally.counts[slot] for tally in own])
        return tuple([tally.at(node) for tally in self.hosts] + [t.counts[slot] for t in own])

    def _weigh(self, kin: Kin) -> None:
        """Find out in which tallies a kind of pods counts, and for how much."""
        latest, weight = None, 0
        concerned = []
        for tally in self.tallies:
            if tally.weigh is not latest:
                latest, weight = tally.weigh, tally.weigh(kin)
            if weight:
                tally.weights[kin] = weight
                concerned.append((tally, weight))
        if concerned:
            self.concerned[kin] = tuple(concerned)

    def _why_uneven(self, node: NodeInfo) -> Refusal | None:
        for (spread, tally, own), low in zip(self._hard, self._lows, strict=True):
            domain = node.labels.get(spread.key)
            if domain is None:
                return SPREAD_UNLABELLED
            if tally.totals.get(domain, 0) + own - low > spread.max_skew:
                return SPREAD_BROKEN
        return None

    def _why_averse(self, node: NodeInfo) -> Refusal | None:
        if self._near and not self._is_near(node):
            return AFFINITY_UNMET
        if any(tally.at(node) > 0 for tally in self._away):
            return ANTI_AFFINITY_BROKEN
        if any(tally.at(node) > 0 for tally in self._averse):
            return OTHERS_AVERSE
        return None

    def _is_near(self, node: NodeInfo) -> bool:
        if any(tally.key not in node.labels for tally in self._near):
            return False
        if all(tally.at(node) > 0 for tally in self._near):
            return True
        # The first of its kind would otherwise wait for ever.
        return self._meets_itself and all(tally.is_blank for tally in self._near)

    def _spread(self, spread: Spread, together: list[Spread]) -> Tally:
        wants = self._wants
        keys = [each.key for each in together]
        is_choosy = spread.honors_affinity and wants.choice is not ANY_NODE
        namespace = wants.kin.namespace
        weigh = self._weighers.setdefault(
            spread.selector,
            lambda kin: int(kin.namespace == namespace and spread.counts(kin.labels)),
        )

        def includes(node: NodeInfo) -> bool:
            if any(key not in node.labels for key in keys):
                return False
            if is_choosy and not wants.choice.allows(node.labels, node.name):
                return False
            return not spread.honors_taints or all(map(wants.tolerates, node.taints))

        if not keys and not is_choosy and not spread.honors_taints:
            return Tally(spread.key, weigh, live_only=True)
        return Tally(spread.key, weigh, includes, live_only=True)

    def _meet(self, wants: Wants, table: NodeTable, namespaces: Namespaces) -> None:
        """Prepare to count the pods of affinity: its own terms, and those of others about it."""
        kin, terms = wants.kin, wants.kin.terms
        own_labels = namespaces.get(kin.namespace, {})
        reach = {
            id(term): term.reach(namespaces)
            for term in (*terms.near, *terms.away, *terms.preferences)
        }

        def means(term: PodTerm, other: Kin) -> bool:
            where = reach[id(term)]
            return (where is None or other.namespace in where) and term.means(other.labels)

        def is_meant(term: PodTerm) -> bool:
            return term.covers(kin.namespace, own_labels) and term.means(kin.labels)

        def weigh_near(other: Kin) -> int:
            return int(all(means(term, other) for term in terms.near))

        def weigh_away(key: str) -> Callable[[Kin], int]:
            return lambda other: sum(means(term, other) for term in terms.away if term.key == key)

        def weigh_averse(key: str) -> Callable[[Kin], int]:
            return lambda other: sum(is_meant(term) for term in other.terms.away if term.key == key)

        def weigh_preference(key: str) -> Callable[[Kin], int]:
            return lambda other: (
                sum(t.weight for t in terms.preferences if t.key == key and means(t, other))
                + sum(_NEED_WEIGHT for t in other.terms.near if t.key == key and is_meant(t))
                + sum(t.weight for t in other.terms.preferences if t.key == key and is_meant(t))
            )

        self._near = [Tally(key, weigh_near) for key in _keys(terms.near)]
        self._meets_itself = bool(terms.near) and all(means(term, kin) for term in terms.near)
        self._away = [Tally(key, weigh_away(key)) for key in _keys(terms.away)]
        self._averse = [Tally(key, weigh_averse(key)) for key in sorted(table.averse_keys)]
        preferred = table.preferred_keys | {term.key for term in terms.preferences}
        self.preferences = [Tally(key, weigh_preference(key)) for key in sorted(preferred)]


def _keys(terms: tuple[PodTerm, ...]) -> list[str]:
    return list(dict.fromkeys(term.key for term in terms))


def _lowest(spread: Spread, tally: Tally) -> int:
    """Say how few pods a domain has; nothing if there are fewer domains than there should be."""
    if len(tally.totals) < spread.min_domains:
        return 0
    return min(tally.totals.values(), default=0)
