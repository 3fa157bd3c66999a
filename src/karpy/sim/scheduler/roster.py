"""The nodes that can take a kind of pod, ordered by worth and kept up to date by changes."""

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, TypeAlias

from karpy.sim.scheduler.filters import why_full, why_unfit
from karpy.sim.scheduler.nodes import Entry, NodeInfo, NodeTable
from karpy.sim.scheduler.refusals import Refusal
from karpy.sim.scheduler.scores import own_score, shared_scores
from karpy.sim.scheduler.standings import Rank, Standings, drop_rank
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.wants import Wants

_ROSTERS_MAX: Final = 128

_Likeness: TypeAlias = tuple[int, tuple[int, ...]]
"""The place of a node, and how many pods on it count."""
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
        slots, all_tastes = self._table.nodes, self._standing.tastes
        is_demanding = self.surroundings.is_demanding
        tops: list[Rank] = []
        found: list[NodeInfo] = []
        sizes, tastes = [], []
        for top, size in self._tops() if nodes is None else self._tops_of(nodes):
            node = slots[top[2]]
            assert node is not None
            if is_demanding and self.surroundings.refusal(node) is not None:
                continue
            tops.append(top)
            found.append(node)
            sizes.append(size)
            tastes.append(all_tastes[node.slot])
        if not found:
            return None
        if len(found) == 1:
            return found[0]
        shared = shared_scores(self.surroundings, found, sizes, tastes)
        best = min(
            [
                (worth - score, name, slot)
                for (worth, name, slot), score in zip(tops, shared, strict=True)
            ]
        )
        return slots[best[2]]

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
        self.surroundings.survey(table.nodes)
        self._slots, self._renewals = len(table.nodes), table.renewals
        """How many slots are counted, and how often nodes had changed by then."""
        if self.surroundings.has_company:
            for slot in range(self._slots):
                self._file(slot)
        self.surroundings.measure()
        self._position = table.position

    def _count(self, entries: list[Entry]) -> Iterable[int]:
        """Count what came and went; return the slots that may have to be filed anew."""
        surroundings, nodes = self.surroundings, self._table.nodes
        renewed = self._renewed(entries)
        touched = self._shift(entries, renewed)
        for slot in renewed:
            surroundings.place(slot, nodes[slot])
        if any(tally.is_shared for tally in surroundings.hosts):
            # Two nodes with one hostname: what happens to one counts for the other.
            return range(len(nodes))
        return touched | renewed

    def _renewed(self, entries: list[Entry]) -> dict[int, None]:
        """Name the slots to be counted anew: of nodes that changed, or that are not counted yet."""
        table = self._table
        if self._renewals == table.renewals:
            return {}
        known, self._slots, self._renewals = self._slots, len(table.nodes), table.renewals
        return {slot: None for slot, kin, _, _ in entries if kin is None or slot >= known}

    def _shift(self, entries: list[Entry], renewed: dict[int, None]) -> dict[int, None]:
        """Count pods in and out; name the slots where that may make a difference."""
        self._meet()
        apart, ranks = self._apart, self._standing.ranks
        concerned = self.surroundings.concerned
        # Most entries are about others, and there may be thousands of them.
        own = [entry for entry in entries if entry[1] in concerned]
        for slot, kin, whole, live in own:
            if kin is not None and slot not in renewed:
                for tally in concerned[kin]:
                    tally.shift(slot, kin, whole, live)
        if len(entries) < len(apart):
            moved = [entry[0] for entry in entries if entry[0] in apart]
        else:
            moved = [slot for slot, (_, rank) in apart.items() if ranks[slot] is not rank]
        return dict.fromkeys([*[entry[0] for entry in own], *moved])

    def _meet(self) -> None:
        """Ask about the kinds of pods that are new; those that came and went make no difference."""
        table = self._table
        if self._arrivals != table.arrivals:
            self._arrivals = table.arrivals
            for kin in table.kins():
                self.surroundings.ask(kin)

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

    def _tops(self) -> Iterator[tuple[Rank, int]]:
        """Walk through the best of nodes that are alike, with how many there are."""
        apart = self._apart
        sizes = {place: len(ranks) for place, ranks in self._standing.order.items()}
        for (place, _), ranks in self._groups.items():
            sizes[place] -= len(ranks)
            yield ranks[0], len(ranks)
        for place, size in sizes.items():
            if size:
                ranks = self._standing.order[place]
                yield next(rank for rank in ranks if rank[2] not in apart), size

    def _tops_of(self, nodes: Collection[NodeInfo]) -> Iterator[tuple[Rank, int]]:
        groups: dict[_Likeness, list[Rank]] = {}
        for node in nodes:
            likeness = self._standing.places[node.slot], self.surroundings.company(node)
            rank = self._standing.ranks[node.slot]
            assert rank is not None
            groups.setdefault(likeness, []).append(rank)
        return ((min(ranks), len(ranks)) for ranks in groups.values())


class Shortlist:
    """Stands in for a roster if a pod names its nodes, as those of a DaemonSet do."""

    def __init__(
        self, wants: Wants, table: NodeTable, surround: Callable[[Wants], Surroundings]
    ) -> None:
        self.wants = wants
        self.surroundings = surround(wants)
        if self.surroundings.is_demanding:
            self.surroundings.survey(table.nodes)
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
