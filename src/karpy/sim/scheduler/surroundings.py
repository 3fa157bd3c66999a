"""Topology spread and pod affinity: counts of existing pods, and the refusals they cause."""

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
    SchedulerRefusal,
)
from karpy.sim.scheduler.tallies import Tally, Weigh
from karpy.sim.scheduler.terms import Namespaces, PodTerm, Spread
from karpy.sim.scheduler.wants import Wants

_BY_SERIAL: Final = attrgetter("serial")
_NEED_WEIGHT: Final = 1
"""The score for a domain with a pod whose required affinity matches this pod."""


class Surroundings:
    """Counts, for pods with equal wants, of the pods that spread and affinity consider."""

    def __init__(
        self,
        wants: Wants,
        table: NodeTable,
        namespaces: Namespaces,
        defaults: Callable[[Wants], tuple[Spread, ...]],
    ) -> None:
        self._wants = wants
        self._weighers: dict[Selector | None, Weigh] = {}
        """By selector: the weighing of pods. Constraints on hosts and zones often share it."""
        labels = wants.kin.labels
        hard = [each for each in wants.spreads if not each.is_soft]
        spreads = wants.spreads or defaults(wants)
        soft = [each for each in spreads if each.is_soft]
        self.ignores_unlabelled = bool(wants.spreads)
        """Whether nodes without one of the keys of soft constraints score nothing."""
        self._hard = [(each, self._spread(each, hard), int(each.means(labels))) for each in hard]
        together = soft if self.ignores_unlabelled else []
        self.soft: Final = [(each, self._spread(each, together)) for each in soft]
        """Soft constraints, each with its counts."""
        self._meet(wants, table, namespaces)
        tallies = [tally for _, tally, _ in self._hard]
        soft_tallies = [tally for _, tally in self.soft]
        tallies += [*self._near, *self._away, *self._refusing, *soft_tallies, *self.preferences]
        self.tallies: Final = tuple(tallies)
        self.hosts: Final = tuple(
            each for each in tallies if each.is_by_host and each not in soft_tallies
        )
        self._own_counts = [each for each in soft_tallies if each.is_by_host]
        """Soft spread over hosts: counts the pods of each node by itself."""
        self.keys: Final = tuple(dict.fromkeys(each.key for each in tallies if not each.is_by_host))
        self.is_demanding: Final = bool(self._hard or self._near or self._away or self._refusing)
        """Whether a required rule can refuse a node."""
        self._lows: list[int] = []
        self.concerned: Final[dict[Kin, tuple[tuple[Tally, int], ...]]] = {}
        """The tallies in which the pods of a class count, with their weight there."""
        self._weighed: set[Kin] = set()
        self.update_minimums()
        self.add_classes(table)

    @property
    def has_host_counts(self) -> bool:
        """Whether `host_counts` of any node is not zero."""
        return any(any(tally.totals.values()) for tally in self.hosts) or any(
            any(tally.counts) for tally in self._own_counts
        )

    def count_all(self, table: NodeTable) -> None:
        """Count the nodes of all slots from scratch."""
        for tally in self.tallies:
            tally.count_all(table)

    def place(self, slot: int, node: NodeInfo | None) -> None:
        """Count the node of a slot again."""
        for tally in self.tallies:
            tally.place(slot, node)

    def shift(self, slot: int, kin: Kin, whole: int, live: int) -> None:
        """Add or remove pods of a class: `whole` in all, `live` of them not deleting."""
        for tally, weight in self.tallies_of(kin):
            tally.shift(slot, weight, whole, live)

    def tallies_of(self, kin: Kin) -> tuple[tuple[Tally, int], ...]:
        """Return the tallies in which the pods of a class count, with their weight there."""
        if kin not in self._weighed:
            self._weighed.add(kin)
            self._weigh(kin)
        return self.concerned.get(kin, ())

    def add_classes(self, table: NodeTable) -> None:
        """Weigh the pod classes that are new on nodes."""
        # Classes that appeared and vanished between two calls are skipped.
        newcomers = table.kins - self._weighed
        self._weighed |= newcomers
        for kin in sorted(newcomers, key=_BY_SERIAL):
            self._weigh(kin)

    def drop_classes(self, table: NodeTable) -> None:
        """Drop the pod classes that are on no node any more."""
        for kin in self._weighed - table.kins:
            self._weighed.discard(kin)
            for tally, _ in self.concerned.pop(kin, ()):
                tally.forget(kin)

    def update_minimums(self) -> None:
        """Update the lowest count over the domains of each hard spread, after every change."""
        if self._hard:
            self._lows = [_lowest(spread, tally) for spread, tally, _ in self._hard]

    def refusal(self, node: NodeInfo) -> SchedulerRefusal | None:
        """Return why spread or pod affinity refuses a node, or None."""
        return self._why_uneven(node) or self._why_anti_affine(node)

    def host_counts(self, node: NodeInfo) -> tuple[int, ...]:
        """Return the counts of a node for rules on hosts."""
        slot = node.slot
        own = self._own_counts
        if not self.hosts:
            return tuple([tally.counts[slot] for tally in own])
        return tuple([tally.at(node) for tally in self.hosts] + [t.counts[slot] for t in own])

    def _weigh(self, kin: Kin) -> None:
        """Compute the weight of the pods of a class in each tally."""
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

    def _why_uneven(self, node: NodeInfo) -> SchedulerRefusal | None:
        for (spread, tally, own), low in zip(self._hard, self._lows, strict=True):
            domain = node.labels.get(spread.key)
            if domain is None:
                return SPREAD_UNLABELLED
            if tally.totals.get(domain, 0) + own - low > spread.max_skew:
                return SPREAD_BROKEN
        return None

    def _why_anti_affine(self, node: NodeInfo) -> SchedulerRefusal | None:
        if self._near and not self._is_near(node):
            return AFFINITY_UNMET
        if any(tally.at(node) > 0 for tally in self._away):
            return ANTI_AFFINITY_BROKEN
        if any(tally.at(node) > 0 for tally in self._refusing):
            return OTHERS_AVERSE
        return None

    def _is_near(self, node: NodeInfo) -> bool:
        if any(tally.key not in node.labels for tally in self._near):
            return False
        if all(tally.at(node) > 0 for tally in self._near):
            return True
        # The first pod of a group with affinity to itself would otherwise wait for ever.
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
        """Prepare the tallies of the pod's affinity terms and of other pods' terms on it."""
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

        def weigh_refusing(key: str) -> Callable[[Kin], int]:
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
        self._refusing = [
            Tally(key, weigh_refusing(key)) for key in sorted(table.anti_affinity_keys)
        ]
        preferred = table.affinity_keys | {term.key for term in terms.preferences}
        self.preferences = [Tally(key, weigh_preference(key)) for key in sorted(preferred)]


def _keys(terms: tuple[PodTerm, ...]) -> list[str]:
    return list(dict.fromkeys(term.key for term in terms))


def _lowest(spread: Spread, tally: Tally) -> int:
    """Return the lowest count of a domain; 0 if there are fewer domains than `minDomains`."""
    if len(tally.totals) < spread.min_domains:
        return 0
    return min(tally.totals.values(), default=0)
