"""Counts the changes after which a consolidation that found nothing may find something."""

from karpy.adapters.mirror.shelves import Shelf
from karpy.core.lifecycle.conditions import CONSOLIDATABLE, DRIFTED, INITIALIZED
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.records import ClaimRecord, NodeRecord


class ConsolidationClock:
    """
    Moves on when pods are bound or go, when nodes or what consolidation reads of them changes.

    Statuses that kubelets write every few seconds do not move it.
    """

    def __init__(
        self,
        pods: Shelf[Pod],
        nodes: Shelf[NodeRecord],
        claims: Shelf[ClaimRecord],
        pools: Shelf[NodePool],
        overlays: Shelf[NodeOverlay],
        budgets: Shelf[DisruptionBudget],
    ) -> None:
        self.version = 0
        pods.listen(self._hear_pod)
        nodes.listen(self._hear_node)
        claims.listen(self._hear_claim)
        pools.listen(self._hear_any)
        overlays.listen(self._hear_any)
        budgets.listen(self._hear_any)

    def _hear_pod(self, _: str, before: Pod | None, after: Pod | None) -> None:
        if _place_of(before) != _place_of(after):
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


def _place_of(pod: Pod | None) -> tuple[object, ...]:
    if pod is None or not pod.node_name:
        return ()
    return pod.uid, pod.node_name, pod.is_active, pod.disruption, pod.is_unready, pod.unreadable


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
