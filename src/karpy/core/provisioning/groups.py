"""Topology groups: pods that are counted together, domain by domain."""

from collections.abc import Callable
from enum import Enum

from karpy.core.provisioning.domains import DomainTable
from karpy.model.constraints import LabelSelector


class Kind(Enum):
    """What a group is counted for."""

    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    INVERSE = "inverse anti-affinity"


NodeTest = Callable[[int], bool]
"""Says of a node (by number) whether pods there count."""


class Group:
    """What every kind of group has: whom it selects, and a version that moves with its counts."""

    __slots__ = ("filter", "key", "kind", "label", "namespaces", "selector", "version")

    def __init__(
        self, kind: Kind, key: str, namespaces: frozenset[str], selector: LabelSelector | None
    ) -> None:
        self.kind = kind
        self.key = key
        self.namespaces = namespaces
        self.selector = selector
        self.filter: NodeFilter | None = None
        self.version = 0
        self.label = ""

    def selects(self, namespace: str, labels: dict[str, str]) -> bool:
        return (
            self.selector is not None
            and namespace in self.namespaces
            and self.selector.selects(labels)
        )


class NodeFilter:
    """Which nodes a spread counts: those the pod's own node rules would allow."""

    __slots__ = ("accepts", "index")

    def __init__(self, index: int, accepts: NodeTest) -> None:
        self.index = index
        self.accepts = accepts


class HostGroup(Group):
    """A group over nodes: each node is a domain of its own."""

    __slots__ = ("at_least", "counts", "max_skew")

    def __init__(
        self, kind: Kind, key: str, namespaces: frozenset[str], selector: LabelSelector | None
    ) -> None:
        super().__init__(kind, key, namespaces, selector)
        self.max_skew = 0
        self.counts: dict[int, int] = {}
        self.at_least: list[int] = [0, 0]
        """Nodes with at least so many of the pods."""

    def add(self, node: int) -> None:
        count = self.counts.get(node, 0) + 1
        self.counts[node] = count
        if count == len(self.at_least):
            self.at_least.append(0)
        self.at_least[count] |= 1 << node
        self.version += 1

    def nodes_with(self, count: int) -> int:
        """Return the nodes with at least `count` of the pods."""
        return self.at_least[count] if count < len(self.at_least) else 0


class DomainGroup(Group):
    """A group over the domains of a label key."""

    __slots__ = ("counts", "domains", "known", "max_skew", "min_domains", "nonzero")

    def __init__(
        self, kind: Kind, table: DomainTable, namespaces: frozenset[str], selector: LabelSelector | None
    ) -> None:
        super().__init__(kind, table.key, namespaces, selector)
        self.domains = table
        self.max_skew = 0
        self.min_domains = 0
        self.known = table.all
        self.counts = [0] * len(table.names)
        self.nonzero = 0

    def add(self, domains: int) -> None:
        mask = domains
        while mask:
            low = mask & -mask
            self.counts[low.bit_length() - 1] += 1
            mask ^= low
        if domains:
            self.nonzero |= domains
            self.version += 1

    def within_skew(self, pod_domains: int, is_selected: int) -> int:
        """Return the domains that another pod would leave even enough."""
        counts = self.counts
        considered = self.known & pod_domains
        least = self._least(considered)
        room = self.max_skew + least - is_selected
        mask, bit = 0, 1
        for count in counts:
            if count <= room:
                mask |= bit
            bit <<= 1
        return mask & self.known

    def _least(self, considered: int) -> int:
        if considered.bit_count() < self.min_domains or not considered:
            return 0
        if considered == self.domains.all:
            return min(self.counts)
        counts = self.counts
        least = -1
        while considered:
            low = considered & -considered
            count = counts[low.bit_length() - 1]
            if least < 0 or count < least:
                least = count
            considered ^= low
        return least
