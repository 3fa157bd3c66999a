"""The nodes that can take a kind of pod, ordered by worth and kept up to date by changes."""

from collections import OrderedDict
from collections.abc import Callable, Collection
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from karpy.sim.scheduler.filters import why_full, why_unfit
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable
from karpy.sim.scheduler.refusals import Refusal
from karpy.sim.scheduler.scores import own_score, preference, shared_scores, soft_taints
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.wants import Wants

_ROSTERS_MAX: Final = 128
_STALE_MAX: Final = 8
"""So many outdated ranks for one that counts are put up with."""

_Likeness: TypeAlias = tuple[int, tuple[int, ...]]
_Rank: TypeAlias = tuple[int, str, int, int]
"""The worth of a node, negated; its name, its slot, and when it was ranked."""


class _Group:
    """Nodes that differ for a pod only in what they have left."""

    __slots__ = ("ranks", "size")

    def __init__(self) -> None:
        self.ranks: list[_Rank] = []
        self.size = 0


class Roster:
    """
    Remembers for pods of some wants what the filters said of each node.

    A change of a node makes it look at that node again, and at no other.
    """

    def __init__(
        self, wants: Wants, table: NodeTable, surround: Callable[[Wants], Surroundings]
    ) -> None:
        self.wants = wants
        self._table = table
        self._surround = surround
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
        known = len(self._unfit)
        renewed = {slot: None for slot, kin, _, _ in entries if kin is None or slot >= known}
        surroundings = self.surroundings
        touched: dict[int, None] = {}
        for slot, kin, whole, live in entries:
            touched[slot] = None
            if kin is not None:
                for tally in surroundings.concerned(kin):
                    if slot not in renewed:
                        tally.shift(slot, kin, whole, live)
        for slot in renewed:
            self._settle(slot)
        if any(tally.is_shared for tally in surroundings.hosts):
            # Two nodes with one hostname: what happens to one counts for the other.
            touched = dict.fromkeys(range(len(table.nodes)))
        for slot in touched:
            self._rank(slot)
        surroundings.measure()
        self._position = table.position

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Say why a node by itself cannot take such a pod, volumes aside; None if it can."""
        return self._unfit[node.slot] or why_full(self.wants, node)

    def choose(self, nodes: Collection[NodeInfo] | None = None) -> NodeInfo | None:
        """Return the best node, or the best of some; None if there is none."""
        groups = self._groups if nodes is None else self._grouped(nodes)
        slots = self._table.nodes
        stamps, demanding = self._stamps, self.surroundings.is_demanding
        tops: list[_Rank] = []
        found: list[NodeInfo] = []
        sizes, tastes, empty = [], [], []
        for likeness, group in groups.items():
            ranks = group.ranks
            while ranks and ranks[0][3] != stamps[ranks[0][2]]:
                heappop(ranks)
            if not ranks:
                empty.append(likeness)
                continue
            node = slots[ranks[0][2]]
            assert node is not None
            if demanding and self.surroundings.refusal(node) is not None:
                continue
            tops.append(ranks[0])
            found.append(node)
            sizes.append(group.size)
            tastes.append(self._tastes[node.slot])
        for likeness in empty:
            del groups[likeness]
        if not found:
            return None
        if len(found) == 1:
            return found[0]
        shared = shared_scores(self.surroundings, found, sizes, tastes)
        best = min(
            (top[0] - score, top[1], node.slot)
            for top, score, node in zip(tops, shared, found, strict=True)
        )
        return slots[best[2]]

    def _build(self) -> None:
        table = self._table
        self._keys_version = table.keys_version
        self.surroundings = self._surround(self.wants)
        self._unfit: list[Refusal | None] = []
        self._tastes: list[tuple[int, int]] = []
        self._places: list[int] = []
        """By slot: a number for all that counts of the node but what runs there."""
        self._known_places: dict[object, int] = {}
        self._stamps: list[int] = []
        self._groups: dict[_Likeness, _Group] = {}
        self._member: list[_Group | None] = []
        for slot in range(len(table.nodes)):
            self._settle(slot)
        for slot in range(len(table.nodes)):
            self._rank(slot)
        self.surroundings.measure()
        self._position = table.position

    def _settle(self, slot: int) -> None:
        """Look at what a node is, whatever runs there."""
        while len(self._unfit) <= slot:
            self._unfit.append(None)
            self._tastes.append((0, 0))
            self._places.append(0)
            self._stamps.append(0)
            self._member.append(None)
        node = self._table.nodes[slot]
        self.surroundings.place(slot, node)
        if node is not None and node.is_there:
            wants = self.wants
            self._unfit[slot] = why_unfit(wants, node)
            self._tastes[slot] = tastes = soft_taints(wants, node), preference(wants, node)
            place = tastes, self.surroundings.domains(node)
            self._places[slot] = self._known_places.setdefault(place, len(self._known_places))

    def _rank(self, slot: int) -> None:
        """Look at what a node has left."""
        self._stamps[slot] += 1
        group = self._member[slot]
        if group is not None:
            group.size -= 1
            self._member[slot] = None
        node = self._table.nodes[slot]
        if node is None or not node.is_there or self._unfit[slot] is not None:
            return
        if why_full(self.wants, node) is not None:
            return
        likeness = self._places[slot], self.surroundings.company(node)
        group = self._groups.get(likeness)
        if group is None:
            group = self._groups[likeness] = _Group()
        group.size += 1
        self._member[slot] = group
        rank = (-own_score(self.wants, node), node.name, slot, self._stamps[slot])
        heappush(group.ranks, rank)
        if len(group.ranks) > _STALE_MAX * (group.size + _STALE_MAX):
            group.ranks = [each for each in group.ranks if each[3] == self._stamps[each[2]]]
            heapify(group.ranks)

    def _grouped(self, nodes: Collection[NodeInfo]) -> dict[_Likeness, _Group]:
        groups: dict[_Likeness, _Group] = {}
        for node in nodes:
            slot = node.slot
            likeness = self._places[slot], self.surroundings.company(node)
            group = groups.setdefault(likeness, _Group())
            group.size += 1
            rank = (-own_score(self.wants, node), node.name, slot, self._stamps[slot])
            heappush(group.ranks, rank)
        return groups


class Shortlist:
    """Stands in for a roster if a pod names its nodes, as those of a DaemonSet do."""

    def __init__(
        self, wants: Wants, table: NodeTable, surround: Callable[[Wants], Surroundings]
    ) -> None:
        self.wants = wants
        self.surroundings = surround(wants)
        if self.surroundings.is_demanding:
            for slot, node in enumerate(table.nodes):
                self.surroundings.place(slot, node)
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
        self._rosters: OrderedDict[int, Roster] = OrderedDict()

    def of(self, wants: Wants) -> Roster | Shortlist:
        """Return the roster for such pods, up to date."""
        if wants.choice.only is not None:
            return Shortlist(wants, self._table, self._surround)
        roster = self._rosters.get(wants.serial)
        if roster is None:
            roster = self._rosters[wants.serial] = Roster(wants, self._table, self._surround)
            if len(self._rosters) > _ROSTERS_MAX:
                self._rosters.popitem(last=False)
        else:
            self._rosters.move_to_end(wants.serial)
            roster.refresh()
        return roster

    def forget(self) -> None:
        """Start anew: something changed that rosters do not follow."""
        self._rosters.clear()
