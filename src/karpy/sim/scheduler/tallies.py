"""Counts of pods by node and by topology domain."""

from collections.abc import Callable
from typing import Final

from karpy.model.labels import HOSTNAME
from karpy.sim.scheduler.kins import Kin
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable

Weigh = Callable[[Kin], int]
"""Returns the weight of each pod of a class."""
Includes = Callable[[NodeInfo], bool]
"""Says whether the pods of a node count for its domain."""


def everywhere(node: NodeInfo) -> bool:
    """Include every node."""
    del node
    return True


class Tally:
    """
    The total weight of the pods in each domain of a topology key.

    Nodes without the key, or not included, count for no domain. The weight of each pod class on
    a node must be known before the node is counted.
    """

    __slots__ = (
        "_includes",
        "_width",
        "counts",
        "domains",
        "is_by_host",
        "key",
        "live_only",
        "totals",
        "values",
        "weigh",
        "weights",
    )

    def __init__(
        self, key: str, weigh: Weigh, includes: Includes = everywhere, *, live_only: bool = False
    ) -> None:
        self.key: Final = key
        self.is_by_host: Final = key == HOSTNAME
        self.live_only = live_only
        """Whether deleting pods are left out."""
        self.counts: list[int] = []
        """By slot: the weight of the pods on the node."""
        self.domains: list[str | None] = []
        """By slot: the domain that the node counts for."""
        self.values: list[str | None] = []
        """By slot: the domain of the node, counted or not."""
        self.totals: dict[str, int] = {}
        """The weight by domain, including domains without pods."""
        self._width: dict[str, int] = {}
        self.weigh: Final = weigh
        self.weights: Final[dict[Kin, int]] = {}
        """The weight of each pod class with weight."""
        self._includes = includes

    @property
    def is_blank(self) -> bool:
        """Whether no pod has weight."""
        return not any(self.totals.values())

    @property
    def is_shared(self) -> bool:
        """Whether several nodes share a domain."""
        return len(self._width) < sum(self._width.values())

    def count_all(self, table: NodeTable) -> None:
        """Count the nodes of all slots from scratch."""
        if self.weights or self._includes is not everywhere:
            for slot, node in enumerate(table.nodes):
                self.place(slot, node)
            return
        values, sizes = table.domains(self.key)
        self.counts = [0] * len(values)
        self.domains, self.values = list(values), list(values)
        self._width = dict(sizes)
        self.totals = dict.fromkeys(sizes, 0)

    def place(self, slot: int, node: NodeInfo | None) -> None:
        """Count the node of a slot again; None if the slot is empty."""
        self._leave(slot)
        if node is None:
            return
        self.counts[slot] = count = self._count(node) if self.weights else 0
        self.values[slot] = domain = node.labels.get(self.key)
        if domain is None or not node.exists or not self._includes(node):
            return
        self.domains[slot] = domain
        self._width[domain] = self._width.get(domain, 0) + 1
        self.totals[domain] = self.totals.get(domain, 0) + count

    def shift(self, slot: int, weight: int, whole: int, live: int) -> None:
        """Add or remove pods of a weight: `whole` in all, `live` of them not deleting."""
        change = (live if self.live_only else whole) * weight
        if change:
            self.counts[slot] += change
            domain = self.domains[slot]
            if domain is not None:
                self.totals[domain] += change

    def forget(self, kin: Kin) -> None:
        """Drop the weight of a pod class without pods."""
        del self.weights[kin]

    def at(self, node: NodeInfo) -> int:
        """Return the weight of the domain of a node, counted or not."""
        domain = node.labels.get(self.key)
        return 0 if domain is None else self.totals.get(domain, 0)

    def in_slot(self, slot: int) -> int:
        """Return the weight of the domain of the node in a slot."""
        domain = self.values[slot]
        return 0 if domain is None else self.totals.get(domain, 0)

    def _count(self, node: NodeInfo) -> int:
        weights = self.weights
        return sum(
            weights.get(pod.wants.kin, 0)
            for pod in node.pods.values()
            if not (self.live_only and pod.is_deleting)
        )

    def _leave(self, slot: int) -> None:
        missing = slot + 1 - len(self.counts)
        if missing > 0:
            self.counts += [0] * missing
            self.domains += [None] * missing
            self.values += [None] * missing
        domain = self.domains[slot]
        if domain is not None:
            self.totals[domain] -= self.counts[slot]
            self._width[domain] -= 1
            if not self._width[domain]:
                del self._width[domain], self.totals[domain]
        self.domains[slot] = self.values[slot] = None
        self.counts[slot] = 0
