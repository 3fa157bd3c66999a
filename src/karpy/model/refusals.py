"""
Every reason for a no: a stable name, and the sentence people read.

The member names are the interface: JSON, events and metrics carry them. The values are prose.
"""

from enum import Enum

from msgspec import Struct


class Reason(Enum):
    """Why a pod was left alone."""

    NOT_YET_UNSCHEDULABLE = "kube-scheduler has not given up on it yet"
    PREEMPTING = "it waits for the pods it preempts on another node"
    ON_ITS_WAY = "an earlier decision has found a place for it, and it is about to get there"
    PLACE_TAKEN = "others took its place, and nodes that were made together with it are to open yet"
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
    UNDECIDED = "time ran out before its turn; the next decision is about it again"
    TOO_COMPLEX = "it has very many constraints; it comes after all others, and no time was left"
    DECISION_FAILED = "a decision with it failed by a mistake in karpy; without it, it does not"


class Constraint(Enum):
    """What kept a pod from a node, an instance type or a NodePool."""

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


class Obstacle(Enum):
    """Why a node was left alone."""

    GONE = "it is gone already"
    IN_ROLLOUT = "it is being disrupted already"
    UNMANAGED = "there is no NodeClaim behind it"
    NO_NODE = "its NodeClaim has no Node yet"
    UNREADABLE = "its Node, NodeClaim or NodePool cannot be read"
    REBOOTING = "it is rebooting"
    LEAVING = "it is being deleted, or chosen for it"
    UNREGISTERED = "it is neither initialized nor registered"
    UNINITIALIZED = "it is not initialized"
    NOMINATED = "a pending pod is expected on it"
    DO_NOT_DISRUPT = "its annotation forbids disruption"
    NO_POOL_LABEL = "no label says which NodePool it belongs to"
    POOL_MISSING = "its NodePool does not exist, or has no instance types"
    POD_UNREADABLE = "a pod there cannot be read"
    POD_DO_NOT_DISRUPT = "the annotation of a pod there forbids disruption"
    POD_BUDGETS = (
        "more than one PodDisruptionBudget covers a pod there, so that it cannot be evicted"
    )
    POD_BUDGET = "a PodDisruptionBudget lets no pod go"
    POOL_STATIC = "its NodePool keeps a fixed number of nodes"
    CONSOLIDATION_DISABLED = "its NodePool never consolidates"
    BUFFER_PODS = "it keeps room for a CapacityBuffer"
    NOT_EMPTY = "pods there would have to move"
    NOT_QUIET = "its pods have not been quiet for as long as the NodePool asks"
    BUDGET_SPENT = "the disruption budgets of its NodePool let no more nodes go"
    DO_NOT_REPAIR = "its annotation forbids repair"
    REPAIR_NEEDS_POOL = "it is broken, but without a NodePool nothing can replace it safely"
    REPAIR_NEEDS_GRACE = "pods there forbid disruption, and no grace period ends that"
    MOSTLY_UNHEALTHY = "too many nodes of its NodePool are unhealthy at once"
    POOL_SHRINKING = "its NodePool is about to give up nodes anyway"
    POOL_SIZE = "its NodePool needs it to have as many nodes as it should"
    NO_REPLACEMENT = "nothing that could take its place can be launched before it goes"
    PODS_UNPLACED = "pods there would find no other place"


class Exclusion(Struct, frozen=True, gc=False):
    """How many instance types (or nodes) one constraint rules out, on its own."""

    constraint: Constraint
    detail: str
    """The requirement, taint, resource or group meant, as text."""
    count: int


class NearMiss(Struct, frozen=True, gc=False):
    """The instance type that lacks least, and what it lacks."""

    instance_type: str
    lacks: tuple[str, ...]


class PoolRefusal(Struct, frozen=True, gc=False):
    """Why one NodePool cannot make a node for a pod."""

    pool: str
    decisive: Exclusion
    """Lifting this one helps most; it alone decides if everything else would allow a type."""
    is_single: bool
    """Whether lifting `decisive` alone would be enough."""
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
    """Existing nodes and new claims that said no, by their first reason."""


class NodeRefusal(Struct, frozen=True, gc=False):
    """Why one node was left alone."""

    why: Obstacle
    node: str
    """Its name, or that of its NodeClaim while there is no Node."""
    detail: str = ""
    """The pod, budget or pool meant."""
