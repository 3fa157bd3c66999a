"""The eviction subresource, which respects PodDisruptionBudgets."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import selector_of
from karpy.errors import ServerFault, Throttled
from karpy.model.kinds import DISRUPTION_BUDGET, POD
from karpy.ports.objects import Removal
from karpy.sim.store.answers import forbidden
from karpy.sim.store.conditions import condition_of, is_true, with_condition
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.registry import Served
from karpy.sim.store.remover import Remover

_TOO_MANY: Final = 429
_FAULT: Final = 500
_PATIENCE: Final = 10.0
_DISRUPTED_MAX: Final = 2000
_BEYOND_BUDGETS: Final = frozenset({"Succeeded", "Failed", "Pending"})
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
SUCCESS: Final[JsonObject] = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
_TARGETED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


class BudgetSpent(Throttled):
    """A PodDisruptionBudget forbids an eviction; `details` name it and the reason."""

    def __init__(self, why: str, *, retry_after: float | None = None) -> None:
        super().__init__(_REFUSED, status=_TOO_MANY, retry_after=retry_after, hint=why)
        self.details: JsonObject = {
            "causes": [{"reason": "DisruptionBudget", "message": why}],
        }


class Evictions:
    """Carries out evictions."""

    def __init__(self, ledger: Ledger, remover: Remover, times: ObjectTimes) -> None:
        self._ledger = ledger
        self._remover = remover
        self._times = times

    def evict(
        self, served: Served, pod: JsonObject, eviction: JsonObject, *, is_dry: bool
    ) -> JsonObject:
        """Delete a pod if its budget allows; raise Throttled if it does not."""
        removal = removal_of(eviction.get("deleteOptions") or {})
        status = pod.get("status") or {}
        is_ending = "deletionTimestamp" in pod["metadata"]
        if not is_ending and status.get("phase") not in _BEYOND_BUDGETS:
            self._spend(pod, is_dry=is_dry)
        self._remover.check(served, pod, removal)
        if not is_dry:
            marked = {**pod, "status": with_condition(status, _TARGETED, self._times.text())}
            if marked != pod:
                pod = self._ledger.change(self._ledger.table(POD), marked, pod)
            removal = Removal(removal.grace_seconds, propagation=removal.propagation)
            self._remover.remove(served, pod, removal)
        return SUCCESS

    def _spend(self, pod: JsonObject, *, is_dry: bool) -> None:
        budgets = self._budgets(pod)
        if not budgets:
            return
        if len(budgets) > 1:
            raise ServerFault(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support.",
                status=_FAULT,
                hint="leave one PodDisruptionBudget that selects the pod",
            )
        budget = budgets[0]
        if not is_true(pod, "Ready") and _lets_unready_go(budget):
            return
        spent = self._decremented(budget, pod["metadata"]["name"])
        if not is_dry:
            self._ledger.change(self._ledger.table(DISRUPTION_BUDGET), spent, budget)

    def _budgets(self, pod: JsonObject) -> list[JsonObject]:
        meta = pod["metadata"]
        found = []
        for budget in self._ledger.table(DISRUPTION_BUDGET).walk(meta["namespace"]):
            selector = selector_of((budget.get("spec") or {}).get("selector"))
            if selector is not None and selector.matches(meta.get("labels")):
                found.append(budget)
        return found

    def _decremented(self, budget: JsonObject, pod: str) -> JsonObject:
        meta, status = budget["metadata"], budget.get("status") or {}
        name = meta["name"]
        if status.get("observedGeneration", 0) < meta.get("generation", 0):
            raise BudgetSpent(
                f"The disruption budget {name} is still being processed by the server.",
                retry_after=_PATIENCE,
            )
        allowed = status.get("disruptionsAllowed", 0)
        disrupted = status.get("disruptedPods") or {}
        if allowed < 0:
            raise forbidden(DISRUPTION_BUDGET, name, "pdb disruptions allowed is negative")
        if len(disrupted) > _DISRUPTED_MAX:
            why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise forbidden(DISRUPTION_BUDGET, name, why)
        if allowed == 0:
            raise BudgetSpent(_why_spent(budget))
        now = self._times.text()
        status = {
            **status,
            "disruptionsAllowed": allowed - 1,
            "disruptedPods": {**disrupted, pod: now},
        }
        if allowed == 1:
            status = with_condition(status, _none_left(meta), now)
        return {**budget, "status": status}


def removal_of(options: JsonObject) -> Removal:
    """Read DeleteOptions."""
    conditions = options.get("preconditions") or {}
    return Removal(
        grace_seconds=options.get("gracePeriodSeconds"),
        uid=conditions.get("uid") or "",
        version=conditions.get("resourceVersion") or "",
        propagation=options.get("propagationPolicy") or "",
    )


def _lets_unready_go(budget: JsonObject) -> bool:
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and bool(status.get("currentHealthy", 0) >= desired)


def _why_spent(budget: JsonObject) -> str:
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    condition = condition_of(budget, "DisruptionAllowed") or {}
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    why = condition.get("message") if condition.get("status") == "False" else ""
    if why and condition.get("reason") == "SyncFailed":
        return (
            f"The disruption budget {name} does not allow evicting pods currently because it "
            f"failed sync: {why}"
        )
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    if why:
        return (
            f"The disruption budget {name} does not allow evicting pods currently "
            f"({condition.get('reason', '')}): {why}"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _none_left(meta: JsonObject) -> JsonObject:
    return {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": meta.get("generation", 0),
    }
