"""Counts the changes after which a consolidation that found nothing may find something."""

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
    Moves on when pods are bound or go, when nodes or what consolidation reads of them changes.

    Statuses that kubelets write every few seconds do not move it.
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

        That does not count where Karpy writes it itself.
        """
        self.version = 0
        self._reads_deletion_cost = reads_deletion_cost
        pods.listen(self._hear_pod)
        book.nodes.listen(self._hear_node)
        book.claims.listen(self._hear_claim)
        for shelf in others:
            shelf.listen(self._hear_any)

    def _hear_pod(self, _: str, before: Pod | None, after: Pod | None) -> None:
        if self._place_of(before) != self._place_of(after):
            self.version += 1

    def _hear_node(self, _: str, before: NodeRecord | None, after: NodeRecord | None) -> None:
        if _essence_of(before) != _essence_of(after):
            self.version += 1

    def _hear_claim(self, _: str, before: ClaimRecord | None, after: ClaimRecord | None) -> None:
        if _state_of(before) != _state_of(after):
            self.version += 1

    def _hear_any(self, _: str, before: object, after: object) -> None:
        del before, after
        self.version += 1

    def _place_of(self, pod: Pod | None) -> tuple[object, ...]:
        if pod is None or not pod.node_name:
            return ()
        said = pod.disruption
        if not self._reads_deletion_cost and said.deletion_cost is not None:
            said = replace(said, deletion_cost=None)
        return pod.uid, pod.node_name, pod.is_active, said, pod.is_unready, pod.unreadable


def _essence_of(node: NodeRecord | None) -> tuple[object, ...]:
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


def _state_of(claim: ClaimRecord | None) -> tuple[object, ...]:
    if claim is None:
        return ()
    marks = (CONSOLIDATABLE, DRIFTED, INITIALIZED)
    return claim.meta.uid, claim.meta.is_deleting, *map(claim.conditions.is_true, marks)
