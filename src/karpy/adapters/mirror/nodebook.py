"""Nodes and NodeClaims seen as one, joined again only where something has changed."""

from collections.abc import Mapping

from karpy.adapters.mirror.shelves import IndexedShelf, Shelf
from karpy.model.nodes import KubeNode, Node, NodeClaim, join_node

_Parts = tuple[KubeNode | None, NodeClaim | None, Mapping[str, int | None] | None]


class NodeBook:
    """Every node of the cluster: registered, booting or in flight."""

    def __init__(self) -> None:
        self.nodes: IndexedShelf[KubeNode] = IndexedShelf(lambda node: node.provider_id)
        self.claims: IndexedShelf[NodeClaim] = IndexedShelf(lambda claim: claim.provider_id)
        self.limits: Shelf[Mapping[str, int | None]] = Shelf()
        self._joined: tuple[Node, ...] = ()
        self._pages: dict[str, tuple[_Parts, Node]] = {}
        self._version = -1

    def joined(self) -> tuple[Node, ...]:
        """Return all nodes, by name."""
        version = self.nodes.version + self.claims.version + self.limits.version
        if version != self._version:
            self._joined = tuple(self._join_all())
            self._version = version
        return self._joined

    def _join_all(self) -> list[Node]:
        pages: dict[str, tuple[_Parts, Node]] = {}
        claims = self.claims.values.values()
        named = {claim.node_name: claim for claim in claims if claim.node_name}
        taken: set[str] = set()
        for name, node in self.nodes.values.items():
            behind = self.claims.under(node.provider_id) if node.provider_id else ()
            claim = next(iter(behind), None) or named.get(name)
            if claim is not None:
                taken.add(claim.name)
            pages[f"node/{name}"] = self._page(
                f"node/{name}", (node, claim, self.limits.values.get(name))
            )
        for name, claim in self.claims.values.items():
            if name not in taken:
                pages[f"claim/{name}"] = self._page(f"claim/{name}", (None, claim, None))
        self._pages = pages
        return sorted((joined for _, joined in pages.values()), key=lambda node: node.name)

    def _page(self, key: str, parts: _Parts) -> tuple[_Parts, Node]:
        known = self._pages.get(key)
        if known is not None and all(
            before is after for before, after in zip(known[0], parts, strict=True)
        ):
            return known
        return parts, join_node(*parts)
