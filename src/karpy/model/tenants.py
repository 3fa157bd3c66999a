"""Pods on a node as disruption weighs them, and the budgets that protect them."""

from collections.abc import Mapping

from msgspec import Struct

from karpy.model.constraints import LabelSelector
from karpy.model.leaving import LeavingPod
from karpy.model.pods import DisruptionBudget


class Tenant(Struct, frozen=True, gc=False):
    """A pod on a node, with what its disruption costs."""

    pod: LeavingPod
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    priority: int = 0
    is_stateful: bool = False
    """Whether a StatefulSet owns it, which makes the next pod only after this one is gone."""
    is_unready: bool = False
    """Whether it says of itself that it is not ready."""

    @property
    def is_reschedulable(self) -> bool:
        """Whether it wants another node when this one goes."""
        if self.pod.is_daemon or self.pod.is_static:
            return False
        return self.pod.is_active or (self.is_stateful and self.pod.is_deleting)


class PodBudget(Struct, frozen=True, gc=False):
    """A PodDisruptionBudget, and whether it lets go of pods that are not ready anyway."""

    budget: DisruptionBudget
    spares_unready: bool = True
    """False if its policy for unhealthy pods is AlwaysAllow."""

    @property
    def key(self) -> str:
        """Namespace and name, as users write it."""
        return f"{self.budget.namespace}/{self.budget.name}"

    def covers(self, tenant: Tenant) -> bool:
        """Say whether it protects a pod."""
        budget = self.budget
        if budget.selector is None or budget.namespace != tenant.pod.namespace:
            return False
        return LabelSelector(budget.selector).selects(tenant.labels)
