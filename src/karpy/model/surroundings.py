"""Nodes with everything that disruption asks of them, and the cluster around."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from karpy.model.conditions import INSTANCE_TERMINATING, REBOOTING
from karpy.model.disruption import DisruptionPolicy
from karpy.model.instances import Catalog
from karpy.model.labels import INITIALIZED, NODE_POOL, REGISTERED
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.model.tenants import PodBudget, Tenant

_YES = "true"


class NodeState(Struct, frozen=True, gc=False):
    """A Node, the NodeClaim behind it, or both, with the pods there and what we think of it."""

    claim: ClaimRecord | None = None
    node: NodeRecord | None = None
    tenants: tuple[Tenant, ...] = ()
    nominated_until: datetime | None = None
    """Until when pending pods are expected on it."""
    is_marked: bool = False
    """Whether it is chosen to go, though nothing of it is deleted yet."""
    buffer_pods: int = 0
    """How many pods of CapacityBuffers have their place there."""
    unreadable: str = ""
    """Why its Node, NodeClaim or NodePool cannot be read; what is known is not current then."""

    @property
    def name(self) -> str:
        if self.node is not None and self.is_registered:
            return self.node.name
        return "" if self.claim is None else self.claim.name

    @property
    def provider_id(self) -> str:
        if self.claim is not None:
            return self.claim.provider_id
        return "" if self.node is None else self.node.provider_id

    @property
    def is_registered(self) -> bool:
        if self.claim is None:
            return self.node is not None
        return self.node is not None and self.node.meta.labels.get(REGISTERED) == _YES

    @property
    def is_initialized(self) -> bool:
        if self.claim is None:
            return self.node is not None
        return self.node is not None and self.node.meta.labels.get(INITIALIZED) == _YES

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the Node once it is registered, of the claim before."""
        return self._speaker.meta.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self._speaker.meta.annotations

    @property
    def pool(self) -> str:
        """Name of the NodePool, or empty."""
        return self.labels.get(NODE_POOL, "")

    @property
    def is_rebooting(self) -> bool:
        return self.claim is not None and self.claim.conditions.is_true(REBOOTING)

    @property
    def is_machine_ending(self) -> bool:
        """Whether it is drained and its machine was asked to end."""
        return self.claim is not None and self.claim.conditions.is_true(INSTANCE_TERMINATING)

    @property
    def is_deleting(self) -> bool:
        """Whether it is on its way out, by whose wish ever."""
        if self.claim is not None:
            return self.claim.meta.is_deleting or self.is_machine_ending
        return self.node is not None and self.node.meta.is_deleting

    @property
    def is_leaving(self) -> bool:
        """Whether it is on its way out, or chosen for it."""
        return self.is_marked or self.is_deleting

    def is_nominated(self, now: datetime) -> bool:
        return self.nominated_until is not None and now < self.nominated_until

    @property
    def _speaker(self) -> ClaimRecord | NodeRecord:
        if self.claim is None or (self.node is not None and self.is_registered):
            assert self.node is not None
            return self.node
        return self.claim


class Surroundings(Struct, frozen=True, gc=False):
    """The cluster as one look at disruption sees it."""

    now: datetime
    nodes: tuple[NodeState, ...] = ()
    pools: Mapping[str, PoolRecord] = {}
    policies: Mapping[str, DisruptionPolicy] = {}
    """By pool; one without has the defaults."""
    catalog: Catalog = Catalog()
    pod_budgets: tuple[PodBudget, ...] = ()
    busy: frozenset[str] = frozenset()
    """Names of the claims that a rollout is about already."""
    reads_deletion_cost: bool = True
    """False while we write `pod-deletion-cost` ourselves: then it is no wish of a user."""

    def policy_of(self, pool: str) -> DisruptionPolicy:
        return self.policies.get(pool, DisruptionPolicy())
