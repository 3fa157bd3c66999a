"""All nodes of a cluster, with price, requests, state and blockers, and the pods without a node."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.candidates import find_candidates, why_not_pods
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.explain import asks_of
from karpy.core.lifecycle.conditions import DISRUPTION_REASON, DRIFTED, INITIALIZED
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY, Resources, add
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, NodeReason, NodeRefusal, Refusal, Verdict

_CAPACITY_LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    "eks.amazonaws.com/capacityType": {"SPOT": SPOT, "ON_DEMAND": ON_DEMAND},
    "kubernetes.azure.com/scalesetpriority": {"spot": SPOT, "regular": ON_DEMAND},
    "cloud.google.com/gke-spot": {"true": SPOT},
}
"""Labels that the clouds' node groups have in place of `karpenter.sh/capacity-type`."""
_SHOWN_BY_STATE: Final = frozenset(
    {
        NodeReason.IN_COMMAND,
        NodeReason.UNMANAGED,
        NodeReason.NO_NODE,
        NodeReason.REBOOTING,
        NodeReason.DELETING,
        NodeReason.UNREGISTERED,
        NodeReason.UNINITIALIZED,
    }
)
"""Reasons that the state of a node already expresses."""


class NodeState(Enum):
    """The state of a node: the first of these that applies."""

    DELETING = "deleting"
    CHOSEN = "to be disrupted"
    REBOOTING = "rebooting"
    STARTING = "starting"
    NOT_READY = "not ready"
    CORDONED = "cordoned"
    READY = "ready"


class NodeView(Struct, frozen=True, gc=False):
    """One node in the list of nodes."""

    name: str
    state: NodeState
    pool: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: int | None = None
    """Micro-dollars per hour; None if unknown."""
    allocatable: Resources = {}
    requests: Resources = {}
    """The sum of the requests of its pods."""
    pods: tuple[str, ...] = ()
    """Its pods, as `namespace/name`."""
    daemons: int = 0
    """How many of its pods belong to a DaemonSet or are static."""
    created: datetime | None = None
    since: datetime | None = None
    """When its deletion or disruption began."""
    reason: str = ""
    """Why it is disrupted, from the condition of its NodeClaim."""
    drifted: str = ""
    """Why it has drifted; empty if it has not."""
    empty_since: datetime | None = None
    """Since when none of its pods would need another node; None if unknown."""
    is_empty: bool = False
    blocker: NodeRefusal | None = None
    """What blocks its disruption, or its drain."""
    nominated_pods: int = 0
    """How many pending pods are nominated to it."""
    buffer_pods: int = 0
    """For how many virtual pods of CapacityBuffers it keeps room."""
    labels: Mapping[str, str] = {}

    def fill(self, resource: str) -> float | None:
        """Return the requested share of a resource; None if the node does not list the resource."""
        allocatable = self.allocatable.get(resource, 0)
        return self.requests.get(resource, 0) / allocatable if allocatable else None


class WaitingPod(Struct, frozen=True, gc=False):
    """A pod without a node: its launch, its node or its refusal, if it was decided on."""

    key: str
    created: datetime
    asks: tuple[str, ...] = ()
    launch: Launch | None = None
    node: str = ""
    """The node it is nominated to."""
    refusal: Refusal | None = None


class Totals(Struct, frozen=True, gc=False):
    """Sums over nodes."""

    nodes: int = 0
    pods: int = 0
    price: int = 0
    """Micro-dollars per hour of the nodes whose price is known."""
    unpriced: int = 0
    """How many nodes have no known price."""
    allocatable: Resources = {}
    requests: Resources = {}
    by_capacity_type: tuple[tuple[str, int], ...] = ()
    """How many nodes of each capacity type, most first."""

    def fill(self, resource: str) -> float:
        """Return the requested share of a resource."""
        allocatable = self.allocatable.get(resource, 0)
        return self.requests.get(resource, 0) / allocatable if allocatable else 0.0


class Overview(Struct, frozen=True, gc=False):
    """A cluster at one moment: its nodes, and its pods without a node."""

    now: datetime
    nodes: tuple[NodeView, ...] = ()
    """Ordered by name."""
    waiting: tuple[WaitingPod, ...] = ()
    """Refused pods first, then by age, oldest first."""


def overview(snapshot: Snapshot, verdict: Verdict) -> Overview:
    """Return the overview of a cluster and of a decision about its pending pods."""
    evaluation = Evaluation(snapshot)
    virtual = {pod.key for pod in snapshot.pods if pod.is_virtual}
    nominated_pods = {
        each.node: sum(key not in virtual for key in each.pods) for each in verdict.nominations
    }
    blockers = {each.node: each for each in find_candidates(evaluation).refusals}
    nodes = tuple(
        _node_view(each, evaluation, blockers.get(each.name), nominated_pods.get(each.name, 0))
        for each in sorted(snapshot.nodes, key=lambda each: each.name)
    )
    return Overview(snapshot.now, nodes, _waiting(snapshot.pods, verdict))


def total_of(nodes: Iterable[NodeView]) -> Totals:
    """Return the sums over nodes."""
    views = tuple(nodes)
    counts: dict[str, int] = {}
    for each in views:
        counts[each.capacity_type] = counts.get(each.capacity_type, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Totals(
        len(views),
        sum(len(each.pods) for each in views),
        sum(each.price or 0 for each in views),
        sum(each.price is None for each in views),
        add(*(_plain(each.allocatable) for each in views)),
        add(*(_plain(each.requests) for each in views)),
        tuple(ranked),
    )


def _plain(resources: Resources) -> Resources:
    return {key: resources.get(key, 0) for key in (CPU, MEMORY)}


def _node_view(
    node: Node, evaluation: Evaluation, refusal: NodeRefusal | None, nominated_pods: int
) -> NodeView:
    pods = [each for each in evaluation.pods_on(node) if not each.is_terminal]
    is_empty = not any(each.is_reschedulable for each in pods)
    record = node.claim_record or node.node_record
    state = _state_of(node)
    drifted = None if node.claim_record is None else node.claim_record.conditions.get(DRIFTED)
    since, reason = _disruption_of(node)
    capacity_type = _capacity_type(node.labels)
    return NodeView(
        name=node.name,
        state=state,
        pool=node.pool,
        instance_type=node.labels.get(INSTANCE_TYPE, ""),
        zone=node.labels.get(ZONE, ""),
        capacity_type=capacity_type,
        price=_price_of(node, capacity_type, evaluation),
        allocatable=node.allocatable,
        requests=add(*(each.requests for each in pods)),
        pods=tuple(sorted(each.key for each in pods)),
        daemons=sum(each.is_daemon or each.is_static for each in pods),
        created=None if record is None else record.meta.created,
        since=since,
        reason=reason,
        drifted=drifted.reason or DRIFTED if drifted is not None and drifted.is_true else "",
        empty_since=_empty_since(node) if is_empty else None,
        is_empty=is_empty,
        blocker=_blocker_of(node, evaluation, refusal),
        nominated_pods=nominated_pods,
        buffer_pods=node.buffer_pods,
        labels=node.labels,
    )


def _state_of(node: Node) -> NodeState:
    claim, record = node.claim_record, node.node_record
    if node.is_terminating:
        return NodeState.DELETING
    if node.is_deleting or (claim is not None and claim.conditions.is_true(DISRUPTION_REASON)):
        return NodeState.CHOSEN
    if node.is_rebooting:
        return NodeState.REBOOTING
    if record is None or not node.is_initialized:
        return NodeState.STARTING
    if not record.is_ready:
        return NodeState.NOT_READY
    return NodeState.CORDONED if record.is_unschedulable else NodeState.READY


def _disruption_of(node: Node) -> tuple[datetime | None, str]:
    """Return when the deletion or disruption of a node began, and why."""
    claim, record = node.claim_record, node.node_record
    disruption = None if claim is None else claim.conditions.get(DISRUPTION_REASON)
    reason = disruption.reason if disruption is not None and disruption.is_true else ""
    deleted = [each.meta.deleted for each in (claim, record) if each and each.meta.deleted]
    if deleted:
        return min(deleted), reason
    return (disruption.changed if disruption is not None and reason else None), reason


def _empty_since(node: Node) -> datetime | None:
    claim = node.claim_record
    if claim is None:
        return None
    initialized = claim.conditions.get(INITIALIZED)
    if initialized is None or not initialized.is_true:
        return None
    return claim.last_pod_event or initialized.changed


def _capacity_type(labels: Mapping[str, str]) -> str:
    if CAPACITY_TYPE in labels:
        return labels[CAPACITY_TYPE]
    for key, meanings in _CAPACITY_LABELS.items():
        if labels.get(key) in meanings:
            return meanings[labels[key]]
    return ""


def _price_of(node: Node, capacity_type: str, evaluation: Evaluation) -> int | None:
    """Return the price of a node; a node without NodePool and capacity type counts as on-demand."""
    wanted = capacity_type or ("" if node.pool else ON_DEMAND)
    if wanted != node.labels.get(CAPACITY_TYPE, ""):
        node = replace(node, labels={**node.labels, CAPACITY_TYPE: wanted})
    return evaluation.prices.of(node) or None


def _blocker_of(
    node: Node, evaluation: Evaluation, refusal: NodeRefusal | None
) -> NodeRefusal | None:
    if node.is_terminating:
        return why_not_pods(node, evaluation)[0]
    return None if refusal is None or refusal.why in _SHOWN_BY_STATE else refusal


def _waiting(pods: Sequence[Pod], verdict: Verdict) -> tuple[WaitingPod, ...]:
    launches = {key: each for each in verdict.launches for key in each.pods}
    nodes = {key: each.node for each in verdict.nominations for key in each.pods}
    refusals = {key: each for each in verdict.refusals for key in each.pods}
    waiting = [
        WaitingPod(
            each.key,
            each.created,
            asks_of(each),
            launches.get(each.key),
            nodes.get(each.key, ""),
            refusals.get(each.key),
        )
        for each in pods
        if not each.node_name and each.is_active and not each.is_virtual
    ]
    return tuple(sorted(waiting, key=lambda each: (each.refusal is None, each.created, each.key)))
