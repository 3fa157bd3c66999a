"""The nodes that can take pods with equal wants, ordered by score, updated incrementally."""

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from itertools import compress
from typing import Final, TypeAlias

from karpy.sim.scheduler.filters import why_full, why_unfit
from karpy.sim.scheduler.nodes import Entry, NodeInfo, NodeTable
from karpy.sim.scheduler.refusals import SchedulerRefusal
from karpy.sim.scheduler.scores import add_tastes, own_score, shared_scores
from karpy.sim.scheduler.standings import Rank, Standings, drop_rank
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.wants import Wants

_ROSTERS_MAX: Final = 128

_Likeness: TypeAlias = tuple[int, tuple[int, ...]]
"""The place of a node, and its counts of pods that matter."""
_NO_SLOTS: Final[dict[int, None]] = {}
_NOWHERE: Final[tuple[_Likeness, None]] = ((0, ()), None)


class Roster:
    """
    Caches, for pods with equal wants, the filter results of each node.

    The score of a node by itself is in a Standing, which several rosters share. Nodes with pods
    that matter to affinity or spread are kept apart: they differ from the rest of their place.
    """

    def __init__(
        self,
        wants: Wants,
        table: NodeTable,
        surround: Callable[[Wants], Surroundings],
        standings: Standings,
    ) -> None:
        self.wants = wants
        self._table = table
        self._surround = surround
        self._standings = standings
        self._position = 0
        self._build()

    def refresh(self) -> None:
        """Apply the changes of the node table since the last refresh."""
        table = self._table
        if self._position == table.position:
            return
        entries = table.since(self._position)
        if entries is None or self._keys_version != table.keys_version:
            self._build()
            return
        self._standing.refresh()
        for slot in self._count(entries):
            self._file(slot)
        self.surroundings.update_minimums()
        self._position = table.position

    def refusal(self, node: NodeInfo) -> SchedulerRefusal | None:
        """Return why a node cannot take such a pod, volumes aside; None if it can."""
        return self._standing.unfit[node.slot] or why_full(self.wants, node)

    def choose(self, nodes: Collection[NodeInfo] | None = None) -> NodeInfo | None:
        """Return the best node, or the best of some; None if there is none."""
        tops, sizes = self._tops() if nodes is None else self._tops_of(nodes)
        if self.surroundings.is_demanding:
            allowed = [self._is_allowed(slot) for _, _, slot in tops]
            tops, sizes = [*compress(tops, allowed)], [*compress(sizes, allowed)]
        if len(tops) <= 1:
            return self._table.nodes[tops[0][2]] if tops else None
        slots = [rank[2] for rank in tops]
        scores = shared_scores(self.surroundings, slots, sizes)
        if self._standing.has_tastes:
            add_tastes(scores, [self._standing.tastes[slot] for slot in slots])
        best = min(
            [(worth - scores[at], name, slot) for at, (worth, name, slot) in enumerate(tops)]
        )
        return self._table.nodes[best[2]]

    def _is_allowed(self, slot: int) -> bool:
        node = self._table.nodes[slot]
        return node is not None and self.surroundings.refusal(node) is None

    def _build(self) -> None:
        table = self._table
        self._keys_version = table.keys_version
        self.surroundings = self._surround(self.wants)
        self._arrivals = table.arrivals
        self._standing = self._standings.of(self.wants, self.surroundings.keys)
        self._apart: dict[int, tuple[_Likeness, Rank | None]] = {}
        """By slot: the likeness of a node with pods that matter; its rank, None if refused."""
        self._groups: dict[_Likeness, list[Rank]] = {}
        """Nodes with equal likeness, best first."""
        self.surroundings.count_all(table)
        self._slots, self._renewals = len(table.nodes), table.renewals
        """How many slots are counted, and the number of node changes at that time."""
        if self.surroundings.has_host_counts:
            for slot in range(self._slots):
                self._file(slot)
        self.surroundings.update_minimums()
        self._position = table.position

    def _count(self, entries: list[Entry]) -> Iterable[int]:
        """Count added and removed pods; return the slots that may have to be filed again."""
        table, surroundings, apart = self._table, self.surroundings, self._apart
        renewed = self._renewed(entries) if self._renewals != table.renewals else _NO_SLOTS
        has_newcomers = self._arrivals != table.arrivals
        if has_newcomers:
            self._arrivals = table.arrivals
            surroundings.add_classes(table)
        if len(entries) < len(apart):
            touched = {slot: None for slot, _ in entries if slot in apart}
        else:
            ranks = self._standing.ranks
            touched = {slot: None for slot in apart if ranks[slot] is not apart[slot][1]}
        self._shift(touched, renewed)
        if has_newcomers:
            surroundings.drop_classes(table)
        for slot in renewed:
            touched[slot] = None
            surroundings.place(slot, table.nodes[slot])
        if surroundings.hosts and any(tally.is_shared for tally in surroundings.hosts):
            # Several nodes share a hostname: a change of one counts for the others.
            return range(len(table.nodes))
        return touched

    def _renewed(self, entries: list[Entry]) -> dict[int, None]:
        """Return the slots to count again: those of changed nodes, and new ones."""
        table = self._table
        known, self._slots, self._renewals = self._slots, len(table.nodes), table.renewals
        return {slot: None for slot, whole in entries if whole is None or slot >= known}

    def _shift(self, touched: dict[int, None], renewed: dict[int, None]) -> None:
        """Count added and removed pods; add the slots affected to `touched`."""
        position = self._position
        for kin, tallies in self.surroundings.concerned.items():
            for _, slot, whole, live in kin.since(position):
                touched[slot] = None
                if slot not in renewed:
                    for tally, weight in tallies:
                        tally.shift(slot, weight, whole, live)

    def _file(self, slot: int) -> None:
        """Keep a node apart exactly if pods on it matter."""
        likeness, rank = self._apart.pop(slot, _NOWHERE)
        if rank is not None:
            drop_rank(self._groups, likeness, rank)
        node = self._table.nodes[slot]
        host_counts = () if node is None else self.surroundings.host_counts(node)
        if any(host_counts):
            likeness, rank = (self._standing.places[slot], host_counts), self._standing.ranks[slot]
            self._apart[slot] = likeness, rank
            if rank is not None:
                insort(self._groups.setdefault(likeness, []), rank)

    def _tops(self) -> tuple[list[Rank], list[int]]:
        """Return the best node of each group of alike nodes, and the size of each group."""
        order, groups = self._standing.order, self._groups
        left = {place: len(ranks) for place, ranks in order.items()}
        tops, sizes = [], []
        for (place, _), ranks in groups.items():
            size = len(ranks)
            left[place] -= size
            tops.append(ranks[0])
            sizes.append(size)
        for place, size in left.items():
            if size:
                tops.append(_first(order[place], self._apart))
                sizes.append(size)
        return tops, sizes

    def _tops_of(self, nodes: Collection[NodeInfo]) -> tuple[list[Rank], list[int]]:
        groups: dict[_Likeness, list[Rank]] = {}
        for node in nodes:
            likeness = self._standing.places[node.slot], self.surroundings.host_counts(node)
            rank = self._standing.ranks[node.slot]
            assert rank is not None
            groups.setdefault(likeness, []).append(rank)
        return [min(ranks) for ranks in groups.values()], [len(each) for each in groups.values()]


def _first(ranks: list[Rank], apart: Collection[int]) -> Rank:
    """Return the best rank of a place, without the nodes that are kept apart."""
    for rank in ranks:
        if rank[2] not in apart:
            return rank
    raise AssertionError


class Shortlist:
    """Replaces a roster for a pod that names its nodes, as pods of a DaemonSet do."""

    def __init__(
        self, wants: Wants, table: NodeTable, surround: Callable[[Wants], Surroundings]
    ) -> None:
        self.wants = wants
        self.surroundings = surround(wants)
        if self.surroundings.is_demanding:
            self.surroundings.count_all(table)
            self.surroundings.update_minimums()

    def refusal(self, node: NodeInfo) -> SchedulerRefusal | None:
        """Return why a node cannot take such a pod, volumes aside; None if it can."""
        return why_unfit(self.wants, node) or why_full(self.wants, node)

    def choose(self, nodes: Collection[NodeInfo] | None = None) -> NodeInfo | None:
        """Return the best of some nodes; None if there is none."""
        return min(
            nodes or (), key=lambda node: (-own_score(self.wants, node), node.name), default=None
        )


class Rosters:
    """The rosters of recently scheduled pods, by their wants."""

    def __init__(self, table: NodeTable, surround: Callable[[Wants], Surroundings]) -> None:
        self._table = table
        self._surround = surround
        self._standings = Standings(table)
        self._rosters: OrderedDict[int, Roster] = OrderedDict()

    def of(self, wants: Wants) -> Roster | Shortlist:
        """Return the refreshed roster of pods with these wants."""
        if wants.choice.only is not None:
            return Shortlist(wants, self._table, self._surround)
        roster = self._rosters.get(wants.serial)
        if roster is None:
            roster = Roster(wants, self._table, self._surround, self._standings)
            self._rosters[wants.serial] = roster
            if len(self._rosters) > _ROSTERS_MAX:
                self._rosters.popitem(last=False)
        else:
            self._rosters.move_to_end(wants.serial)
            roster.refresh()
        return roster

    def forget(self) -> None:
        """Drop all rosters after a change that rosters do not follow."""
        self._rosters.clear()
