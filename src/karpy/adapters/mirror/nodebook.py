"""Nodes joined with their NodeClaims; only changed ones are joined again."""

from collections.abc import Iterator, Mapping

from karpy.adapters.mirror.records import IndexedShelf, Shelf
from karpy.model.nodes import Node, join_node
from karpy.model.records import ClaimRecord, NodeRecord


def _order(node: Node) -> tuple[str, str]:
    """Sort by name, then by Node: two Nodes of one claim share a name until registration."""
    return node.name, node.node_record.name if node.node_record else ""


class NodeBook:
    """Every node of the cluster: registered, booting or in flight."""

    def __init__(self) -> None:
        self.nodes: IndexedShelf[NodeRecord] = IndexedShelf(lambda node: node.provider_id)
        self.claims: IndexedShelf[ClaimRecord] = IndexedShelf(lambda claim: claim.provider_id)
        self.limits: Shelf[Mapping[str, int | None]] = Shelf()
        self._named: IndexedShelf[ClaimRecord] = IndexedShelf(lambda claim: claim.node_name)
        """Claims by the node that their status names."""
        self._joined: tuple[Node, ...] = ()
        self._by_node: dict[str, Node] = {}
        self._by_claim: dict[str, Node] = {}
        """Claims without a Node, by name."""
        self._stale_nodes: set[str] = set()
        self._stale_claims: set[str] = set()
        self.nodes.listen(self._on_node)
        self.claims.listen(self._on_claim)
        self.limits.listen(lambda name, *_: self._mark_node(name))

    def joined(self) -> tuple[Node, ...]:
        """Return all nodes, by name."""
        if self._stale_nodes or self._stale_claims:
            for name in self._stale_nodes:
                self._join_node(name)
            for name in self._stale_claims:
                self._join_claim(name)
            self._stale_nodes.clear()
            self._stale_claims.clear()
            both = (*self._by_node.values(), *self._by_claim.values())
            self._joined = tuple(sorted(both, key=_order))
        return self._joined

    def _join_node(self, name: str) -> None:
        node = self.nodes.get(name)
        if node is None:
            self._by_node.pop(name, None)
        else:
            self._by_node[name] = join_node(node, self._claim_of(node), self.limits.get(name))

    def _join_claim(self, name: str) -> None:
        claim = self.claims.get(name)
        if claim is None or any(self._claim_of(node) is claim for node in self._nodes_of(claim)):
            self._by_claim.pop(name, None)
        else:
            self._by_claim[name] = join_node(None, claim, None)

    def _claim_of(self, node: NodeRecord) -> ClaimRecord | None:
        """Find the claim of a node by provider ID, else by the node name in a claim's status."""
        claims = self.claims.by_index(node.provider_id) if node.provider_id else ()
        # Of several claims that name the node, the latest counts.
        return next(iter(claims), None) or next(reversed([*self._named.by_index(node.name)]), None)

    def _nodes_of(self, claim: ClaimRecord) -> Iterator[NodeRecord]:
        """Find the nodes that may belong to a claim."""
        if claim.provider_id:
            yield from self.nodes.by_index(claim.provider_id)
        named = self.nodes.get(claim.node_name)
        if named is not None:
            yield named

    def _mark_node(self, name: str) -> None:
        """Mark a node to be joined again, unless it is gone and was never joined."""
        if name in self.nodes.values or name in self._by_node:
            self._stale_nodes.add(name)
        else:
            self._stale_nodes.discard(name)

    def _mark_claim(self, name: str) -> None:
        """Mark a claim to be joined again, unless it is gone and was never joined."""
        if name in self.claims.values or name in self._by_claim:
            self._stale_claims.add(name)
        else:
            self._stale_claims.discard(name)

    def _on_node(self, name: str, before: NodeRecord | None, after: NodeRecord | None) -> None:
        self._mark_node(name)
        for claim in self._named.by_index(name):
            self._stale_claims.add(claim.name)
        for node in (before, after):
            if node is not None and node.provider_id:
                self._stale_claims.update(
                    claim.name for claim in self.claims.by_index(node.provider_id)
                )

    def _on_claim(self, name: str, before: ClaimRecord | None, after: ClaimRecord | None) -> None:
        self._named.put(name, after)
        for claim in (before, after):
            if claim is None:
                continue
            # A node of the claim may have been joined with another claim, or will be.
            for node in self._nodes_of(claim):
                self._stale_nodes.add(node.name)
                self._stale_claims.update(each.name for each in self._named.by_index(node.name))
            if claim.provider_id:
                self._stale_claims.update(
                    each.name for each in self.claims.by_index(claim.provider_id)
                )
        self._mark_claim(name)
