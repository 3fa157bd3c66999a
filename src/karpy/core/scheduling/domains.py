"""The domains of topology keys, and which nodes may end up in which."""

from collections.abc import Iterable

from karpy.core.scheduling.bits import members
from karpy.core.scheduling.signatures import Signatures
from karpy.model.requirement import Requirement


class DomainTable:
    """One topology key: its domains by name, and the nodes (as bits) that each may hold."""

    __slots__ = (
        "_allowed",
        "_index",
        "_narrowed",
        "_settled",
        "_signatures",
        "all",
        "anywhere",
        "is_well_known",
        "key",
        "names",
        "nodes",
    )

    def __init__(self, key: str, names: Iterable[str], signatures: Signatures) -> None:
        self.key = key
        self.names = tuple(sorted(set(names)))
        self.all = (1 << len(self.names)) - 1
        self.nodes = [0] * len(self.names)
        self.anywhere = 0
        """Nodes that may be in any domain at all."""
        self.is_well_known = key in signatures.table.well_known
        self._index = {name: index for index, name in enumerate(self.names)}
        self._signatures = signatures
        self._allowed: dict[int, int] = {}
        self._narrowed: dict[int, int] = {}
        self._settled: dict[int, int] = {}

    def bit(self, name: str) -> int:
        """Return a domain as a bit, or 0 if nobody knows it."""
        index = self._index.get(name)
        return 0 if index is None else 1 << index

    def allowed_by(self, requirement: Requirement | None) -> int:
        """Return the domains one requirement leaves open; none leaves all."""
        if requirement is None:
            return self.all
        if not requirement.complement:
            mask = 0
            for value in requirement.values:
                mask |= self.bit(value)
            return mask
        return sum(1 << bit for bit, name in enumerate(self.names) if name in requirement)

    def of_signature(self, signature: int) -> int:
        """Return the domains a claim may still land in; none if it cannot carry the label."""
        mask = self._allowed.get(signature)
        if mask is None:
            requirement = self._signatures.requirements[signature].get(self.key)
            if requirement is None and not self.is_well_known:
                mask = 0
            else:
                mask = self.allowed_by(requirement)
            self._allowed[signature] = mask
        return mask

    def is_absent(self, signature: int) -> bool:
        """Say whether a claim will not carry the label at all."""
        requirement = self._signatures.requirements[signature].get(self.key)
        if requirement is None:
            return not self.of_signature(signature)
        return requirement.is_negative and not self.of_signature(signature)

    def narrow(self, signature: int, domains: int) -> int:
        """Return the signature of a claim that may land in these domains only."""
        memo = signature << len(self.names) | domains
        narrowed = self._narrowed.get(memo)
        if narrowed is None:
            narrowed = self._signatures.narrow(signature, self.key, self.names, domains)
            self._narrowed[memo] = narrowed
        return narrowed

    def settled(self, signature: int) -> int:
        """Return the domain a claim is sure to land in, or 0."""
        domain = self._settled.get(signature)
        if domain is None:
            requirement = self._signatures.requirements[signature].get(self.key)
            domain = 0
            if (
                requirement is not None
                and not requirement.complement
                and len(requirement.values) == 1
            ):
                domain = self.bit(min(requirement.values))
            self._settled[signature] = domain
        return domain

    def claimed(self, signature: int) -> int:
        """Return the domains a claim may land in by its own word; none if it says nothing."""
        if self.key not in self._signatures.requirements[signature]:
            return 0
        return self.of_signature(signature)

    def nodes_in(self, domains: int) -> int:
        """Return the nodes that may be in any of some domains."""
        if domains == self.all:
            return self.anywhere
        mask = 0
        for nodes in self.nodes:
            if domains & 1:
                mask |= nodes
            domains >>= 1
        return mask

    def place(self, nodes: int, domains: int) -> None:
        """Note where new nodes (as bits) may be."""
        if domains:
            self.anywhere |= nodes
        for bit in members(domains):
            self.nodes[bit] |= nodes

    def keep_only(self, nodes: int) -> None:
        """Forget all nodes but some."""
        self.anywhere &= nodes
        self.nodes = [each & nodes for each in self.nodes]

    def move(self, node: int, before: int, after: int) -> None:
        """Note that a node can be in other domains than before: fewer, or some after none."""
        for bit in members(before & ~after):
            self.nodes[bit] &= ~(1 << node)
        if not after:
            self.anywhere &= ~(1 << node)
        elif not before:
            self.place(1 << node, after)
