"""
The results of decisions: launches and nominations, and a refusal for every object left alone.

Every refusal has a reason. The name of a reason is the interface, which JSON, events and metrics
carry; its value is the sentence people read.
"""

from datetime import datetime
from enum import Enum
from fractions import Fraction

from msgspec import Struct

from karpy.model.requirements import Requirements
from karpy.model.resources import Resources


class Reason(Enum):
    """Why a pod was left alone."""

    NOT_YET_UNSCHEDULABLE = (
        "kube-scheduler has not given up on it yet, or a scheduling gate holds it"
    )
    PREEMPTING = "it waits for the pods it preempts on another node"
    ON_ITS_WAY = "an earlier decision has found a node for it, and it is not bound there yet"
    PLACE_TAKEN = "other pods took its place; nodes of the same decision are not schedulable yet"
    LAUNCHED_IN_VAIN = "nodes were launched for it in vain, and the next launch waits a while"
    OPTED_OUT = "it asks for nodes that belong to no NodePool"
    RESTRICTED_LABEL = "it selects nodes by a label that may not be asked for"
    MATCH_FIELDS = "its node affinity uses matchFields, which no new node can promise"
    UNREADABLE = "it cannot be read"
    BAD_REQUIREMENT = "its node selector or affinity is malformed"
    DEVICE_CLAIMS = "it asks for devices by ResourceClaim, which is switched off"
    VOLUME_CLAIM_MISSING = "one of its PersistentVolumeClaims does not exist"
    VOLUME_CLAIM_DELETING = "one of its PersistentVolumeClaims is being deleted"
    VOLUME_CLAIM_LOST = "one of its PersistentVolumeClaims has lost its volume"
    VOLUME_CLAIM_BINDING = "one of its PersistentVolumeClaims is still being bound"
    VOLUME_CLAIM_IMMEDIATE = (
        "one of its PersistentVolumeClaims is bound before scheduling, but not yet"
    )
    VOLUME_MISSING = "one of its PersistentVolumes does not exist"
    VOLUME_DELETING = "one of its PersistentVolumes is being deleted"
    STORAGE_CLASS_MISSING = "the StorageClass of one of its claims does not exist"
    NO_POOL = "no NodePool is ready to make nodes"
    NO_HOST = "no node has room and no NodePool can make one that would"
    WAITS_FOR_RESERVATION = "reserved capacity that would suit it is taken for now"
    MIN_VALUES_TRUNCATED = "the cheapest types to launch with lack the variety minValues asks for"
    UNDECIDED = "time ran out before its turn; the next decision considers it again"
    TOO_COMPLEX = "it has very many constraints, so that it came last, and no time was left"
    DECISION_FAILED = "decisions fail with it, by a bug in karpy; without it they succeed"


class Constraint(Enum):
    """The constraint that kept a pod from a node, an instance type or a NodePool."""

    POOL_NOT_READY = "the NodePool is not ready"
    POOL_STATIC = "the NodePool keeps a fixed number of nodes"
    POOL_DELETING = "the NodePool is being deleted"
    POOL_EMPTY = "no instance type meets the NodePool's own requirements"
    TAINT = "a taint is not tolerated"
    UNDEFINED_LABEL = "a label it needs is not defined there"
    REQUIREMENT = "a node selector or affinity does not match"
    RESOURCE = "a resource does not suffice"
    OFFERING = "nothing that matches is on sale in an allowed zone and capacity type"
    LIMIT = "a limit of the NodePool is reached"
    NODE_LIMIT = "the NodePool has as many nodes as it may"
    SPREAD = "a topology spread constraint would be broken"
    AFFINITY = "no allowed domain holds the pods it must be near to"
    ANTI_AFFINITY = "every allowed domain holds pods it must be away from"
    HOST_PORT = "a host port is taken"
    VOLUME_TOPOLOGY = "its volumes are elsewhere"
    VOLUME_LIMIT = "no more volumes can be attached"
    MIN_VALUES = "too little variety is left for minValues"
    RESERVATION = "reserved capacity is taken"


class NodeReason(Enum):
    """Why a node was left alone."""

    GONE = "its NodeClaim does not exist any more"
    IN_COMMAND = "it is in a disruption command already"
    UNMANAGED = "it has no NodeClaim that Karpy manages"
    NO_NODE = "its NodeClaim has no Node yet"
    UNREADABLE = "its Node, NodeClaim or NodePool cannot be read"
    REBOOTING = "it is rebooting"
    DELETING = "it is being deleted"
    UNREGISTERED = "it is neither initialized nor registered"
    UNINITIALIZED = "it is not initialized"
    NOMINATED = "a pending pod is nominated to it"
    BACKING_OFF = "its last disruption command failed, and the next one waits a while"
    DO_NOT_DISRUPT = "its annotation karpenter.sh/do-not-disrupt forbids disruption"
    NO_POOL_LABEL = "no label says which NodePool it belongs to"
    POOL_MISSING = "its NodePool does not exist, or has no instance types"
    POD_UNREADABLE = "a pod there cannot be read"
    POD_DO_NOT_DISRUPT = "the annotation karpenter.sh/do-not-disrupt of a pod forbids disruption"
    POD_BUDGETS = "several PodDisruptionBudgets cover a pod, so that it cannot be evicted"
    POD_BUDGET = "a PodDisruptionBudget lets no pod go"
    BUDGET_SPENT = "the disruption budgets of its NodePool let no more nodes go"
    POOL_STATIC = "its NodePool keeps a fixed number of nodes"
    CONSOLIDATION_DISABLED = "consolidateAfter of its NodePool is Never"
    WHEN_EMPTY_ONLY = "its NodePool consolidates empty nodes only"
    NOT_QUIET = "pods came or went within consolidateAfter of its NodePool"
    BUFFER_PODS = "it keeps room for a CapacityBuffer"
    NOT_EMPTY = "pods there would have to move"
    EMPTY = "it is empty, which is decided by emptiness"
    TYPE_UNKNOWN = "the catalog does not have its instance type"
    LABEL_MISSING = "it lacks the label of its zone or capacity type"
    SCALING_OUT = "nodes for pending pods are on their way, and pods there are not moved meanwhile"
    ROLLOUT = "a Deployment with a pod there is in the middle of a rollout"
    PODS_UNPLACED = "pods there would find no other place"
    NEEDS_MORE_NODES = "its pods would take more than one new node"
    NOT_CHEAPER = "no replacement is cheaper than the node"
    SPOT_TO_SPOT_DISABLED = "a spot node is replaced by a spot node only behind a feature gate"
    SPOT_TO_SPOT_TYPES = "too few cheaper spot types would be left to choose from"
    SCORE_TOO_LOW = "the move would save too little for the pods that it disrupts"
    NOT_CONSIDERED = "another command was found first"
    OUT_OF_TIME = "time ran out before its turn; the next pass looks at it again"
    PINNED = "a pod there has no ReplicaSet, Job or DaemonSet, so that no scale-in removes it"
    NOT_DRIFTED = "it matches its NodePool and its node class"
    DO_NOT_REPAIR = "its annotation karpenter.sh/do-not-repair forbids repair"
    REPAIR_NEEDS_POOL = "it is broken, but without a NodePool nothing can replace it safely"
    REPAIR_NEEDS_GRACE = "it is broken, pods forbid its disruption, and no grace period limits that"
    MOSTLY_UNHEALTHY = "too many nodes of its NodePool are unhealthy at once"
    POOL_SHRINKING = "its NodePool has more nodes than replicas, and is about to delete some"
    POOL_SIZE = "its NodePool needs it to have as many nodes as replicas"
    NO_REPLACEMENT = "no replacement can be launched before it is deleted"
    CHANGED = "the cluster has changed since the decision to disrupt it"


class Exclusion(Struct, frozen=True, gc=False):
    """How many instance types (or nodes) one constraint rules out, on its own."""

    constraint: Constraint
    detail: str
    """The requirement, taint, resource or group of pods, as text."""
    count: int


class NearMiss(Struct, frozen=True, gc=False):
    """The instance type that comes closest to fitting, and what it lacks."""

    instance_type: str
    lacks: tuple[str, ...]


class PoolRefusal(Struct, frozen=True, gc=False):
    """Why one NodePool cannot make a node for a pod."""

    pool: str
    decisive: Exclusion
    """The exclusion whose removal helps most; see `is_single`."""
    is_single: bool
    """Whether the removal of `decisive` alone would allow an instance type."""
    types: int
    """How many instance types the pool has."""
    exclusions: tuple[Exclusion, ...] = ()
    nearest: NearMiss | None = None


class Refusal(Struct, frozen=True, gc=False):
    """Why pods that are alike were left alone."""

    reason: Reason
    pods: tuple[str, ...]
    detail: str = ""
    pools: tuple[PoolRefusal, ...] = ()
    nodes: tuple[Exclusion, ...] = ()
    """How many existing nodes and new claims each constraint excluded; the first one counts."""


class NodeRefusal(Struct, frozen=True, gc=False):
    """Why one node was left alone, with the numbers behind it."""

    why: NodeReason
    node: str
    """Its name, or that of its NodeClaim while there is no Node."""
    detail: str = ""
    """The pod, budget, pool or resource that `why` is about."""
    method: str = ""
    """The disruption method that refused it; empty if no method may disrupt it."""
    pods: tuple[str, ...] = ()
    """The first few pods that forbid its disruption, as `namespace/name`."""
    price: int | None = None
    """Its price in micro-dollars per hour; None if it is unknown or was not compared."""
    replacement: int | None = None
    """The price of the cheapest replacement; None if none was found."""
    score: Fraction | None = None
    """The score of the move under the policy Balanced; one half or more is approved."""
    until: datetime | None = None
    """When the reason ends without a change, if that is known."""

    @property
    def saving(self) -> int | None:
        """Micro-dollars per hour that the cheapest replacement saves; may be 0 or negative."""
        if self.price is None or self.replacement is None:
            return None
        return self.price - self.replacement


class LaunchOption(Struct, frozen=True, gc=False):
    """An instance type that a NodeClaim may be launched with, and its cheapest offering."""

    instance_type: str
    price: int
    """Micro-dollars per hour."""
    zone: str
    capacity_type: str


class Launch(Struct, frozen=True, gc=False):
    """A NodeClaim to create."""

    name: str
    """A placeholder within the verdict; the API server generates the real name."""
    pool: str
    pods: tuple[str, ...]
    """The pods placed on it, as `namespace/name`, in the order of placement."""
    requirements: Requirements
    resources: Resources
    """The sum of the requests of these pods and of DaemonSet pods."""
    options: tuple[LaunchOption, ...]
    """Cheapest first, at most 600; if empty, the cloud chooses by the requirements."""
    reservations: tuple[str, ...] = ()
    is_min_values_relaxed: bool = False

    @property
    def price(self) -> int:
        """Micro-dollars per hour of the cheapest option; 0 without options."""
        return self.options[0].price if self.options else 0


class Nomination(Struct, frozen=True, gc=False):
    """Pods placed on a node that exists or is being launched."""

    node: str
    pods: tuple[str, ...]


class PoolNotice(Struct, frozen=True, gc=False):
    """A NodePool that was left out of the decision, and why."""

    pool: str
    why: Exclusion


class Verdict(Struct, frozen=True, gc=False):
    """Launches and nominations, and a refusal for every other pod considered."""

    launches: tuple[Launch, ...] = ()
    nominations: tuple[Nomination, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    pools: tuple[PoolNotice, ...] = ()
    is_complete: bool = True
    """False if time ran out; pods without a decision have a refusal UNDECIDED."""

    @property
    def price(self) -> int:
        """Micro-dollars per hour of all launches."""
        return sum(launch.price for launch in self.launches)


class PoolVerdict(Struct, frozen=True, gc=False):
    """Nodes to create or delete for a static NodePool, and why missing nodes are not created."""

    pool: str
    creates: int = 0
    """How many NodeClaims to create, all alike."""
    launch: Launch | None = None
    """The template of each of these NodeClaims."""
    withheld: Exclusion | None = None
    """How many missing nodes cannot be created, and why."""
    deletes: tuple[str, ...] = ()
    """NodeClaims to delete, those without pods first."""
    refusals: tuple[NodeRefusal, ...] = ()
    """Why the other nodes stay, if some are deleted."""
