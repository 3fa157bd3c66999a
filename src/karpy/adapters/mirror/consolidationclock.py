"""Count the changes after which consolidation may find a new command."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from karpy.adapters.mirror.nodebook import NodeBook
from karpy.adapters.mirror.records import Shelf
from karpy.core.lifecycle.conditions import CONSOLIDATABLE, DRIFTED, INITIALIZED
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord


class ConsolidationClock:
    """
    A version that increases with every change of pods, nodes and claims that consolidation reads.

    Statuses that kubelets write every few seconds do not increase it.
    """

    def __init__(
        self,
        pods: Shelf[Pod],
        book: NodeBook,
        others: Iterable[Shelf[Any]],
        *,
        reads_deletion_cost: bool = True,
    ) -> None:
        """
        Take also shelves of which every change counts, and whether `pod-deletion-cost` counts.

        The annotation does not count where Karpy writes it itself.
        """
        self.version = 0
        self._reads_deletion_cost = reads_deletion_cost
        pods.listen(self._on_pod)
        book.nodes.listen(self._on_node)
        book.claims.listen(self._on_claim)
        for shelf in others:
            shelf.listen(self._on_any)

    def _on_pod(self, _: str, before: Pod | None, after: Pod | None) -> None:
        if self._pod_key(before) != self._pod_key(after):
            self.version += 1

    def _on_node(self, _: str, before: NodeRecord | None, after: NodeRecord | None) -> None:
        if _node_key(before) != _node_key(after):
            self.version += 1

    def _on_claim(self, _: str, before: ClaimRecord | None, after: ClaimRecord | None) -> None:
        if _claim_key(before) != _claim_key(after):
            self.version += 1

    def _on_any(self, _: str, before: object, after: object) -> None:
        del before, after
        self.version += 1

    def _pod_key(self, pod: Pod | None) -> tuple[object, ...]:
        if pod is None or not pod.node_name:
            return ()
        disruption = pod.disruption
        if not self._reads_deletion_cost and disruption.deletion_cost is not None:
            disruption = replace(disruption, deletion_cost=None)
        return pod.uid, pod.node_name, pod.is_active, disruption, pod.is_unready, pod.unreadable


def _node_key(node: NodeRecord | None) -> tuple[object, ...]:
    if node is None:
        return ()
    meta = node.meta
    return (
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.is_deleting,
        node.taints,
        node.is_unschedulable,
        node.allocatable,
        node.is_ready,
    )


def _claim_key(claim: ClaimRecord | None) -> tuple[object, ...]:
    if claim is None:
        return ()
    marks = (CONSOLIDATABLE, DRIFTED, INITIALIZED)
    return claim.meta.uid, claim.meta.is_deleting, *map(claim.conditions.is_true, marks)
