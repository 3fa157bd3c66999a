"""Which nodes may be touched at all, and why not the others."""

from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.cost import POD, moving_cost
from karpy.core.disruption.guards import Guards
from karpy.core.lifecycle.eviction import protection_of
from karpy.core.lifecycle.records import about_claim, about_node
from karpy.model.annotations import DO_NOT_DISRUPT
from karpy.model.disruption import DisruptionPolicy
from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.surroundings import NodeState, Surroundings

_TOLD: Final = {
    Obstacle.REPAIR_NEEDS_POOL: (
        "repair requires a NodePool to construct and budget a safe replacement"
    ),
    Obstacle.NO_NODE: "Nodeclaim does not have an associated node",
    Obstacle.UNREADABLE: "Node, NodeClaim or NodePool cannot be read: {detail}",
    Obstacle.REBOOTING: "Node is rebooting",
    Obstacle.LEAVING: "Node is deleting or marked for deletion",
    Obstacle.UNREGISTERED: "Node isn't initialized nor registered",
    Obstacle.UNINITIALIZED: "Node isn't initialized",
    Obstacle.NOMINATED: "Node is nominated for a pending pod",
    Obstacle.DO_NOT_DISRUPT: f'Disruption is blocked through the "{DO_NOT_DISRUPT}" annotation',
    Obstacle.NO_POOL_LABEL: f"Node doesn't have required label (label={NODE_POOL})",
    Obstacle.POOL_MISSING: "NodePool not found (NodePool={detail})",
    Obstacle.POD_UNREADABLE: "Pod cannot be read (Pod={detail})",
    Obstacle.POD_DO_NOT_DISRUPT: f'Pod has "{DO_NOT_DISRUPT}" annotation (Pod={{detail}})',
    Obstacle.POD_BUDGETS: (
        "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{detail}])"
    ),
    Obstacle.POD_BUDGET: "Pdb prevents pod evictions (PodDisruptionBudget=[{detail}])",
}
"""What events say; tools look for these texts."""


class Manner(Enum):
    """How a node is disrupted: by its pods' leave, or in the end against it."""

    GRACEFUL = "graceful"
    """What pods and their budgets forbid does not happen."""
    EVENTUAL = "eventual"
    """It happens when the claim's grace period is over, if it has one."""
    REPAIR = "repair"
    """What pods forbid is kept in mind; what the node itself forbids does not count."""


class Candidate(Struct, frozen=True, gc=False):
    """A node that may be touched, and what that would save and cost."""

    claim: ClaimRecord
    node: NodeRecord
    pool: PoolRecord
    policy: DisruptionPolicy
    price: int = 0
    """Micro-dollars per hour; nothing if that is not known."""
    moving_cost: int = POD
    """Trouble for the pods that need another node; `POD` if there are none."""
    pods: int = 0
    """How many need another node."""
    buffer_pods: int = 0
    is_blocked: bool = False
    """Whether pods there, or their budgets, forbid it for now."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_static(self) -> bool:
        return self.pool.replicas is not None

    @property
    def is_empty(self) -> bool:
        """Whether nobody minds: nothing needs to move, or nothing that counts."""
        return self.moving_cost <= POD

    @property
    def savings_ratio(self) -> Fraction:
        """Money per trouble."""
        return Fraction(self.price, self.moving_cost)


class Found(Struct, frozen=True, gc=False):
    """Nodes that may be touched, and a refusal for every other one."""

    candidates: tuple[Candidate, ...] = ()
    refusals: tuple[NodeRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()


def find_candidates(surroundings: Surroundings, manner: Manner = Manner.GRACEFUL) -> Found:
    """Sort the nodes of a cluster into those that may be touched and all others, by name."""
    guards, prices = Guards(surroundings.pod_budgets), _Prices(surroundings)
    candidates, refusals, notices = [], [], []
    for state in sorted(surroundings.nodes, key=lambda each: each.name):
        blocker, refusal = None, _why_not(state, surroundings, manner)
        if refusal is None:
            blocker, told = why_not_pods(state, surroundings, guards)
            notices += told
            refusal = None if _can_only_delay(state, manner) else blocker
        if refusal is None:
            candidate = _candidate(state, surroundings, prices.of(state))
            candidates.append(replace(candidate, is_blocked=blocker is not None))
        else:
            refusals.append(refusal)
            notices += blocked_notices(state, refusal)
    return Found(tuple(candidates), tuple(refusals), tuple(notices))


def best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Put those first that save most money per trouble; the name decides between equals."""
    return sorted(candidates, key=lambda each: (-each.savings_ratio, each.name))


def blocked_notices(state: NodeState, refusal: NodeRefusal, text: str = "") -> list[Notice]:
    """Tell a node and its claim why it is left alone, if anybody wants to hear that."""
    note = text or _TOLD.get(refusal.why, "").format(detail=refusal.detail)
    if not note:
        return []
    subjects = [about_node(state.node)] if state.node is not None else []
    subjects += [about_claim(state.claim)] if state.claim is not None else []
    return [
        Notice(each, "DisruptionBlocked", note, same_as=(each.uid,), can_wait=True)
        for each in subjects
    ]


def _why_not(state: NodeState, surroundings: Surroundings, manner: Manner) -> NodeRefusal | None:
    why = _why_not_node(state, surroundings, manner)
    if why is not None:
        return NodeRefusal(why, state.name, state.unreadable if why is Obstacle.UNREADABLE else "")
    pool = state.pool
    if pool not in surroundings.pools or not surroundings.catalog.types_for(pool):
        return NodeRefusal(Obstacle.POOL_MISSING, state.name, pool)
    return None


def _why_not_node(state: NodeState, surroundings: Surroundings, manner: Manner) -> Obstacle | None:
    if state.claim is None:
        return Obstacle.UNMANAGED
    if state.claim.name in surroundings.busy:
        return Obstacle.IN_ROLLOUT
    if manner is Manner.REPAIR and not state.claim.pool:
        return Obstacle.REPAIR_NEEDS_POOL
    if state.unreadable:
        return Obstacle.UNREADABLE
    if state.node is None:
        return Obstacle.NO_NODE
    if state.is_rebooting:
        return Obstacle.REBOOTING
    if state.is_leaving:
        return Obstacle.LEAVING
    if not state.is_registered:
        return Obstacle.UNREGISTERED
    return _why_unwanted(state, surroundings, manner)


def _why_unwanted(state: NodeState, surroundings: Surroundings, manner: Manner) -> Obstacle | None:
    is_repair = manner is Manner.REPAIR
    if not state.is_initialized:
        # A node that broke before it was ready has nothing to lose.
        return None if is_repair else Obstacle.UNINITIALIZED
    if state.is_nominated(surroundings.now):
        return Obstacle.NOMINATED
    if not is_repair and state.annotations.get(DO_NOT_DISRUPT) == "true":
        return Obstacle.DO_NOT_DISRUPT
    return None if NODE_POOL in state.labels else Obstacle.NO_POOL_LABEL


def why_not_pods(
    state: NodeState, surroundings: Surroundings, guards: Guards
) -> tuple[NodeRefusal | None, list[Notice]]:
    """Return what pods there forbid, if anything, and what their owners are told."""
    notices: list[Notice] = []
    tenants = sorted(state.tenants, key=lambda each: each.pod.key)
    for tenant in tenants:
        # Daemons and static pods count here, too: somebody wrote the annotation on purpose.
        if tenant.pod.is_active and tenant.pod.do_not_disrupt is not None:
            protection = protection_of(tenant.pod, surroundings.now)
            notices += protection.notices
            if protection.is_active:
                why = Obstacle.POD_DO_NOT_DISRUPT
                return NodeRefusal(why, state.name, tenant.pod.key), notices
        if tenant.pod.unreadable and tenant.is_reschedulable:
            return NodeRefusal(Obstacle.POD_UNREADABLE, state.name, tenant.pod.key), notices
    for tenant in tenants:
        blocked = guards.why_not_evicted(tenant, surroundings.now)
        if blocked is not None:
            return NodeRefusal(blocked.why, state.name, " ".join(blocked.budgets)), notices
    return None, notices


def _can_only_delay(state: NodeState, manner: Manner) -> bool:
    """Say whether pods can only delay what is about to happen."""
    assert state.claim is not None
    if manner is Manner.EVENTUAL:
        return state.claim.grace_period is not None
    return manner is Manner.REPAIR


def _candidate(state: NodeState, surroundings: Surroundings, price: int) -> Candidate:
    assert state.claim is not None
    assert state.node is not None
    return Candidate(
        claim=state.claim,
        node=state.node,
        pool=surroundings.pools[state.pool],
        policy=surroundings.policy_of(state.pool),
        price=price,
        moving_cost=moving_cost(
            state.tenants, reads_deletion_cost=surroundings.reads_deletion_cost
        ),
        pods=sum(each.is_reschedulable for each in state.tenants),
        buffer_pods=state.buffer_pods,
    )


class _Prices:
    """What nodes cost; a type is found by its name, for there are many of both."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._catalog = surroundings.catalog
        self._types: dict[str, dict[str, InstanceType]] = {}

    def of(self, state: NodeState) -> int:
        """Return micro-dollars per hour; nothing if that is not known."""
        pool, labels = state.pool, state.labels
        if pool not in self._types:
            self._types[pool] = {each.name: each for each in self._catalog.types_for(pool)}
        type_ = self._types[pool].get(labels.get(INSTANCE_TYPE, ""))
        place = (labels.get(ZONE), labels.get(CAPACITY_TYPE))
        for offering in () if type_ is None else type_.offerings:
            if (offering.zone, offering.capacity_type) == place:
                return offering.price
        return 0
