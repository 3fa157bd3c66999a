"""PodDisruptionBudgets: which pods may be evicted now."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from karpy.core.lifecycle.eviction import is_evictable
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.verdicts import NodeReason


class Blocked(Struct, frozen=True, gc=False):
    """Why a pod may not be evicted, and by which budgets."""

    why: NodeReason
    budgets: tuple[str, ...]


class PodDisruptionBudgets:
    """The budgets of a cluster, at hand by namespace."""

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[DisruptionBudget]] = {}
        for each in sorted(budgets, key=lambda each: each.key):
            self._by_namespace.setdefault(each.namespace, []).append(each)

    @property
    def is_empty(self) -> bool:
        return not self._by_namespace

    def why_not_evicted(self, pod: Pod, now: datetime) -> Blocked | None:
        """
        Say which budgets keep a pod from being evicted now, or None.

        A pod that no drain would evict needs no budget.
        """
        near = self._by_namespace.get(pod.namespace)
        if near is None:
            return None
        covering = [each for each in near if each.covers(pod)]
        if not covering or not is_evictable(pod, now):
            return None
        if len(covering) > 1:
            # Whatever they allow: the API server evicts no pod that two budgets cover.
            return Blocked(NodeReason.POD_BUDGETS, tuple(each.key for each in covering))
        budget = covering[0]
        if pod.is_unready and budget.allows_unready:
            return None
        if budget.disruptions_allowed:
            return None
        return Blocked(NodeReason.POD_BUDGET, (budget.key,))
