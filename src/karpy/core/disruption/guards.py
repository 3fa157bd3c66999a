"""PodDisruptionBudgets: which pods they let go."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from karpy.core.lifecycle.eviction import is_evictable
from karpy.model.refusals import Obstacle
from karpy.model.tenants import PodBudget, Tenant


class Guarded(Struct, frozen=True, gc=False):
    """Why a pod is not let go, and by whom."""

    why: Obstacle
    budgets: tuple[str, ...]


class Guards:
    """The budgets of a cluster, at hand by namespace."""

    def __init__(self, budgets: Iterable[PodBudget]) -> None:
        self._by_namespace: dict[str, list[PodBudget]] = {}
        for each in sorted(budgets, key=lambda each: each.key):
            self._by_namespace.setdefault(each.budget.namespace, []).append(each)

    def why_not_evicted(self, tenant: Tenant, now: datetime) -> Guarded | None:
        """
        Say which budgets keep a pod from being evicted now, or None.

        A pod that nobody would evict needs no leave.
        """
        near = self._by_namespace.get(tenant.pod.namespace, ())
        covering = [each for each in near if each.covers(tenant)]
        if not covering or not is_evictable(tenant.pod, now):
            return None
        if len(covering) > 1:
            # Whatever they allow: the API server evicts no pod that two budgets cover.
            return Guarded(Obstacle.POD_BUDGETS, tuple(each.key for each in covering))
        guard = covering[0]
        if tenant.is_unready and not guard.spares_unready:
            return None
        if guard.budget.disruptions_allowed:
            return None
        return Guarded(Obstacle.POD_BUDGET, (guard.key,))
