"""The nodes that can take a kind of pod, ordered by worth and kept up to date by changes."""

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from itertools import compress
from typing import Final, TypeAlias

from karpy.sim.scheduler.filters import why_full, why_unfit
from karpy.sim.scheduler.nodes import Entry, NodeInfo, NodeTable
from karpy.sim.scheduler.refusals import Refusal
from karpy.sim.scheduler.scores import add_tastes, own_score, shared_scores
from karpy.sim.scheduler.standings import Rank, Standings, drop_rank
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.wants import Wants

_ROSTERS_MAX: Final = 128

_Likeness: TypeAlias = tuple[int, tuple[int, ...]]
"""The place of a node, and how many pods on it count."""
_NO_SLOTS: Final[dict[int, None]] = {}
_NOWHERE: Final[tuple[_Likeness, None]] = ((0, ()), None)


class Roster:
    """
    Remembers for pods of some wants what the filters said of each node.

    What a node is worth by itself is known to a standing, which other rosters share. Nodes with
    pods that count for this one are kept apart; they differ from the rest of their place.
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
        """Take in what happened since the last time."""
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
        self.surroundings.measure()
        self._position = table.position

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Say why a node by itself cannot take such a pod, volumes aside; None if it can."""
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
        """By slot: the nodes with company, and where those are filed that can take a pod."""
        self._groups: dict[_Likeness, list[Rank]] = {}
        """Nodes with the same company in the same place, the best first."""
        self.surroundings.survey(table)
        self._slots, self._renewals = len(table.nodes), table.renewals
        """How many slots are counted, and how often nodes had changed by then."""
        if self.surroundings.has_company:
            for slot in range(self._slots):
                self._file(slot)
        self.surroundings.measure()
        self._position = table.position

    def _count(self, entries: list[Entry]) -> Iterable[int]:
        """Count what came and went; return the slots that may have to be filed anew."""
        table, surroundings, apart = self._table, self.surroundings, self._apart
        renewed = self._renewed(entries) if self._renewals != table.renewals else _NO_SLOTS
        has_newcomers = self._arrivals != table.arrivals
        if has_newcomers:
            self._arrivals = table.arrivals
            surroundings.meet(table)
        if len(entries) < len(apart):
            touched = {slot: None for slot, _ in entries if slot in apart}
        else:
            ranks = self._standing.ranks
            touched = {slot: None for slot in apart if ranks[slot] is not apart[slot][1]}
        self._shift(touched, renewed)
        if has_newcomers:
            surroundings.part(table)
        for slot in renewed:
            touched[slot] = None
            surroundings.place(slot, table.nodes[slot])
        if surroundings.hosts and any(tally.is_shared for tally in surroundings.hosts):
            # Two nodes with one hostname: what happens to one counts for the other.
            return range(len(table.nodes))
        return touched

    def _renewed(self, entries: list[Entry]) -> dict[int, None]:
        """Name the slots to be counted anew: of nodes that changed, or that are not counted yet."""
        table = self._table
        known, self._slots, self._renewals = self._slots, len(table.nodes), table.renewals
        return {slot: None for slot, whole in entries if whole is None or slot >= known}

    def _shift(self, touched: dict[int, None], renewed: dict[int, None]) -> None:
        """Count pods in and out; add the slots where that may make a difference."""
        position = self._position
        for kin, tallies in self.surroundings.concerned.items():
            for _, slot, whole, live in kin.since(position):
                touched[slot] = None
                if slot not in renewed:
                    for tally, weight in tallies:
                        tally.shift(slot, weight, whole, live)

    def _file(self, slot: int) -> None:
        """Keep a node apart if pods on it count, and only then."""
        likeness, rank = self._apart.pop(slot, _NOWHERE)
        if rank is not None:
            drop_rank(self._groups, likeness, rank)
        node = self._table.nodes[slot]
        company = () if node is None else self.surroundings.company(node)
        if any(company):
            likeness, rank = (self._standing.places[slot], company), self._standing.ranks[slot]
            self._apart[slot] = likeness, rank
            if rank is not None:
                insort(self._groups.setdefault(likeness, []), rank)

    def _tops(self) -> tuple[list[Rank], list[int]]:
        """Return the best of nodes that are alike, and how many there are."""
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
            likeness = self._standing.places[node.slot], self.surroundings.company(node)
            rank = self._standing.ranks[node.slot]
            assert rank is not None
            groups.setdefault(likeness, []).append(rank)
        return [min(ranks) for ranks in groups.values()], [len(each) for each in groups.values()]


def _first(ranks: list[Rank], apart: Collection[int]) -> Rank:
    """Return the best of a place, but for the nodes that are kept apart."""
    for rank in ranks:
        if rank[2] not in apart:
            return rank
    raise AssertionError


class Shortlist:
    """Stands in for a roster if a pod names its nodes, as those of a DaemonSet do."""

    def __init__(
        self, wants: Wants, table: NodeTable, surround: Callable[[Wants], Surroundings]
    ) -> None:
        self.wants = wants
        self.surroundings = surround(wants)
        if self.surroundings.is_demanding:
            self.surroundings.survey(table)
            self.surroundings.measure()

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Say why a node by itself cannot take such a pod, volumes aside; None if it can."""
        return why_unfit(self.wants, node) or why_full(self.wants, node)

    def choose(self, nodes: Collection[NodeInfo] | None = None) -> NodeInfo | None:
        """Return the best of some nodes; None if there is none."""
        return min(
            nodes or (), key=lambda node: (-own_score(self.wants, node), node.name), default=None
        )


class Rosters:
    """The rosters of the kinds of pods seen lately."""

    def __init__(self, table: NodeTable, surround: Callable[[Wants], Surroundings]) -> None:
        self._table = table
        self._surround = surround
        self._standings = Standings(table)
        self._rosters: OrderedDict[int, Roster] = OrderedDict()

    def of(self, wants: Wants) -> Roster | Shortlist:
        """Return the roster for such pods, up to date."""
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
        """Start anew: something changed that rosters do not follow."""
        self._rosters.clear()
