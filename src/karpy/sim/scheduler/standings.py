"""Scores of nodes for pods with equal requests and node rules, shared by their workloads."""

from bisect import bisect_left, insort
from typing import Final, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from karpy.model.labels import HOSTNAME
from karpy.sim.scheduler.filters import has_room, why_unfit
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable
from karpy.sim.scheduler.refusals import SchedulerRefusal
from karpy.sim.scheduler.scores import NO_TASTES, Tastes, own_score, preference, soft_taints
from karpy.sim.scheduler.wants import Wants

K = TypeVar("K")

_WORTHS_MAX: Final = 4096

Rank: TypeAlias = tuple[int, str, int]
"""The negated score of a node, its name and its slot."""


class Standing:
    """
    Caches, for pods with equal wants, the filter results and scores of each node by itself.

    A change of a node recomputes that node alone. Other pods are not considered here.
    """

    def __init__(self, wants: Wants, table: NodeTable, keys: tuple[str, ...]) -> None:
        self._wants = wants
        self._table = table
        self._position = 0
        self._keys = keys
        """The topology keys by which other pods are counted, except the hostname."""
        self._worths: dict[tuple[int, ...], int] = {}
        """Scores by what nodes have, and what of it is requested."""
        self._build()

    def refresh(self) -> None:
        """Apply the changes of the node table since the last refresh."""
        table = self._table
        if self._position == table.position:
            return
        entries = table.since(self._position)
        if entries is None:
            self._build()
            return
        known = len(self.ranks)
        touched: dict[int, bool] = {}
        for slot, whole in entries:
            if whole is None or slot >= known:
                touched[slot] = True
            elif whole and slot not in touched:
                touched[slot] = False
        for slot, is_renewed in touched.items():
            if is_renewed:
                self._settle(slot)
            else:
                self._rank(slot)
        self._position = table.position

    def _build(self) -> None:
        table = self._table
        self.unfit: list[SchedulerRefusal | None] = []
        """By slot: why the node refuses such pods even if empty, None if it does not."""
        self.tastes: list[Tastes] = []
        self.has_tastes = False
        """Whether any node had a soft taint or a preferred term for such pods."""
        self.places: list[int] = []
        """By slot: a number for the domains and tastes of the node, which no pod changes."""
        self.ranks: list[Rank | None] = []
        """By slot: the rank of the node, None if it cannot take such a pod."""
        self.order: dict[int, list[Rank]] = {}
        """By place: the ranks of its nodes, best first."""
        self._known_places: dict[object, int] = {}
        for slot in range(len(table.nodes)):
            self._settle(slot)
        self._position = table.position

    def _settle(self, slot: int) -> None:
        """Recompute the place and the rank of a node."""
        while len(self.ranks) <= slot:
            self.unfit.append(None)
            self.tastes.append(NO_TASTES)
            self.places.append(0)
            self.ranks.append(None)
        self._leave(slot)
        node = self._table.nodes[slot]
        if node is None or not node.exists:
            return
        wants = self._wants
        self.unfit[slot] = why_unfit(wants, node)
        self.tastes[slot] = tastes = soft_taints(wants, node), preference(wants, node)
        self.has_tastes = self.has_tastes or tastes != NO_TASTES
        place = tastes, self._domains(node)
        self.places[slot] = self._known_places.setdefault(place, len(self._known_places))
        self._rank(slot)

    def _rank(self, slot: int) -> None:
        """Recompute the rank of a node from its free resources."""
        self._leave(slot)
        node = self._table.nodes[slot]
        if node is None or not node.exists or self.unfit[slot] is not None:
            return
        if has_room(self._wants, node):
            rank = self.ranks[slot] = -self._worth(node), node.name, slot
            insort(self.order.setdefault(self.places[slot], []), rank)

    def _worth(self, node: NodeInfo) -> int:
        # Many nodes have the same size and pods of the same sizes.
        key = (
            node.cpu,
            node.memory,
            node.used_cpu,
            node.used_memory,
            node.usual_cpu,
            node.usual_memory,
        )
        worth = self._worths.get(key)
        if worth is None:
            if len(self._worths) >= _WORTHS_MAX:
                self._worths.clear()
            worth = self._worths[key] = own_score(self._wants, node)
        return worth

    def _leave(self, slot: int) -> None:
        rank = self.ranks[slot]
        if rank is not None:
            drop_rank(self.order, self.places[slot], rank)
            self.ranks[slot] = None

    def _domains(self, node: NodeInfo) -> tuple[object, ...]:
        labels = node.labels
        return HOSTNAME in labels, *[labels.get(key) for key in self._keys]


class Standings:
    """The standings by the wants of pods."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._standings: WeakValueDictionary[object, Standing] = WeakValueDictionary()

    def of(self, wants: Wants, keys: tuple[str, ...]) -> Standing:
        """Return the refreshed standing of pods with these wants."""
        key = wants.demands, keys
        standing = self._standings.get(key)
        if standing is None:
            standing = self._standings[key] = Standing(wants, self._table, keys)
        else:
            standing.refresh()
        return standing


def drop_rank(order: dict[K, list[Rank]], key: K, rank: Rank) -> None:
    """Remove a rank from the sorted list of a key, and the list if it becomes empty."""
    ranks = order[key]
    if len(ranks) == 1:
        del order[key]
    else:
        del ranks[bisect_left(ranks, rank)]
