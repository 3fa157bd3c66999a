"""A Node and its NodeClaim as one value, and the policies by which broken nodes are repaired."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.conditions import INSTANCE_TERMINATING
from karpy.model.constraints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    REBOOTING_TAINT,
    UNREGISTERED_TAINT,
    Taint,
    is_gate,
)
from karpy.model.labels import HOSTNAME, INITIALIZED, NODE_POOL, REGISTERED
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.resources import NODES, Resources

_EPHEMERAL = frozenset(
    {
        ("node.kubernetes.io/not-ready", NO_SCHEDULE),
        ("node.kubernetes.io/not-ready", NO_EXECUTE),
        ("node.kubernetes.io/unreachable", NO_SCHEDULE),
        ("node.cloudprovider.kubernetes.io/uninitialized", NO_SCHEDULE),
        (UNREGISTERED_TAINT, NO_EXECUTE),
        (REBOOTING_TAINT, NO_SCHEDULE),
    }
)
_EPHEMERAL_PREFIX = "readiness.k8s.io/"

_CORDON: Final = Taint("node.kubernetes.io/unschedulable", NO_SCHEDULE)
_YES: Final = "true"


class Node(Struct, frozen=True, gc=False):
    """
    A node that pods run on or will run on: registered, booting, or only a NodeClaim yet.

    `taints` are those that count for scheduling. `name` is the claim's while there is no Node.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    capacity: Resources = {}
    allocatable: Resources = {}
    is_initialized: bool = True
    is_deleting: bool = False
    """Whether its pods need another node: it is being deleted, or a command will delete it."""
    claim: str = ""
    """Name of the NodeClaim; empty for a node without one."""
    volume_limits: Mapping[str, int | None] = {}
    """Attachable volumes by CSI driver as the node publishes them; None is unlimited."""
    node_record: NodeRecord | None = None
    """The Node object, if there is one."""
    claim_record: ClaimRecord | None = None
    """The NodeClaim object, if there is one."""
    nominated_until: datetime | None = None
    """When its nomination for pending pods ends."""
    buffer_pods: int = 0
    """How many virtual pods of CapacityBuffers are placed on it."""
    unreadable: str = ""
    """Why its Node, NodeClaim or NodePool cannot be read; the other fields may then be stale."""
    is_foreign: bool = False
    """Whether its NodeClaim has a node class that another provider serves."""

    @property
    def hostname(self) -> str:
        return self.labels.get(HOSTNAME) or self.name

    @property
    def pool(self) -> str:
        """Name of the NodePool, or empty."""
        return self.labels.get(NODE_POOL, "")

    @property
    def has_machine(self) -> bool:
        """Whether the resources of its machine are known."""
        return any(resource != NODES for resource in self.capacity)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the Node if it is registered, else of the NodeClaim."""
        if self.node_record is not None and (self.claim_record is None or self.is_registered):
            return self.node_record.meta.annotations
        return {} if self.claim_record is None else self.claim_record.meta.annotations

    @property
    def provider_id(self) -> str:
        if self.claim_record is not None:
            return self.claim_record.provider_id
        return "" if self.node_record is None else self.node_record.provider_id

    @property
    def is_registered(self) -> bool:
        if self.claim_record is None:
            return self.node_record is not None
        node = self.node_record
        return node is not None and node.meta.labels.get(REGISTERED) == _YES

    @property
    def is_rebooting(self) -> bool:
        return self.claim_record is not None and self.claim_record.is_rebooting

    @property
    def is_instance_terminating(self) -> bool:
        """Whether it is drained and the cloud was asked to terminate its machine."""
        claim = self.claim_record
        return claim is not None and claim.conditions.is_true(INSTANCE_TERMINATING)

    @property
    def is_terminating(self) -> bool:
        """Whether its NodeClaim, or without one its Node, is being deleted."""
        if self.claim_record is not None:
            return self.claim_record.meta.is_deleting or self.is_instance_terminating
        return self.node_record is not None and self.node_record.meta.is_deleting

    def is_nominated(self, now: datetime) -> bool:
        return self.nominated_until is not None and now < self.nominated_until


def join_node(
    node: NodeRecord | None,
    claim: ClaimRecord | None,
    volume_limits: Mapping[str, int | None] | None = None,
) -> Node:
    """
    Join a Node and its NodeClaim.

    Until the Node is registered, labels, taints and name are those of the claim. Until it is
    initialized, and during a reboot, temporary taints do not count. Until it is initialized, the
    claim fills in resources that the kubelet has not reported yet.
    """
    assert node is not None or claim is not None
    # Differs: a Node with a NodePool label and no NodeClaim in the input: Karpenter does not count
    # it as managed; Karpy does, because recordings and manifests may hold Nodes alone.
    is_managed = claim is not None or (node is not None and NODE_POOL in node.meta.labels)
    is_registered = node is not None and (
        not is_managed or node.meta.labels.get(REGISTERED) == _YES
    )
    is_initialized = node is not None and (
        not is_managed or node.meta.labels.get(INITIALIZED) == _YES
    )
    if claim is None or (node is not None and is_registered):
        assert node is not None
        name, labels, taints = node.name, node.meta.labels, _taints_of(node)
    else:
        name, labels, taints = claim.name, claim.meta.labels, claim.taints
    if not is_initialized or (claim is not None and claim.is_rebooting):
        startup = {(taint.key, taint.effect) for taint in claim.startup_taints} if claim else set()
        taints = tuple(taint for taint in taints if not _is_temporary(taint, startup))
    joined = Node(
        name=name,
        labels=labels,
        taints=taints,
        capacity={**_capacity(node, None if is_initialized else claim), NODES: 1},
        allocatable=_reported("allocatable", node, None if is_initialized else claim),
        is_initialized=is_initialized,
        claim=claim.name if claim else "",
        volume_limits=volume_limits or {},
        node_record=node,
        claim_record=claim,
    )
    return replace(joined, is_deleting=True) if joined.is_terminating else joined


def _taints_of(node: NodeRecord) -> tuple[Taint, ...]:
    """Return the taints of a Node; `spec.unschedulable` counts as its taint."""
    if node.is_unschedulable and _CORDON not in node.taints:
        return (*node.taints, _CORDON)
    return node.taints


def _is_temporary(taint: Taint, startup: set[tuple[str, str]]) -> bool:
    known = (taint.key, taint.effect)
    if known in _EPHEMERAL or known in startup or is_gate(taint):
        return True
    return taint.key.startswith(_EPHEMERAL_PREFIX)


def _capacity(node: NodeRecord | None, claim: ClaimRecord | None) -> dict[str, int]:
    if node is None and claim is not None and not claim.provider_id:
        # The instance type is not known yet: limits count at least what the claim requests.
        return {**claim.requests, **claim.capacity}
    return _reported("capacity", node, claim)


def _reported(field: str, node: NodeRecord | None, claim: ClaimRecord | None) -> dict[str, int]:
    amounts: dict[str, int] = {}
    if node is not None:
        # A Node without `status.allocatable` has all of its capacity for pods.
        amounts = dict(getattr(node, field) or node.capacity)
    if claim:
        for name, amount in getattr(claim, field).items():
            if not amounts.get(name):
                amounts[name] = amount
    return amounts


class RepairAction(Enum):
    """How a node is repaired, in ascending order of disruption."""

    REBOOT = "RebootNode"
    REPLACE = "ReplaceNode"


class RepairPolicy(Struct, frozen=True, gc=False):
    """A condition of a node that calls for its repair."""

    condition: str
    """Type of the node's condition."""
    status: str
    toleration: timedelta
    """How long the condition must last before the node is repaired."""
    reason_pattern: str = ""
    """A regular expression that matches a part of the condition's reason; empty matches any."""
    action: RepairAction = RepairAction.REPLACE
    priority: int = 0
    grace_period: timedelta | None = None
    """The longest drain; None takes the terminationGracePeriod of the NodeClaim."""


class RepairRules(Struct, frozen=True, gc=False):
    """Repair policies, and the latest reboots; without policies no node is repaired."""

    policies: tuple[RepairPolicy, ...] = ()
    reboots: Mapping[str, tuple[datetime, ...]] = {}
    """When nodes were rebooted, by the UID of their NodeClaim."""
