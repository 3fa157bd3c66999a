"""All nodes of a cluster: what each costs, holds and is kept by; and the pods that wait."""

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
"""What node groups of clouds say in place of `karpenter.sh/capacity-type`."""
_SAID_BY_STATE: Final = frozenset(
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
"""Reasons that the state of a node says already."""


class NodeState(Enum):
    """What a node is doing; the first of these that holds."""

    DELETING = "deleting"
    CHOSEN = "to be disrupted"
    REBOOTING = "rebooting"
    STARTING = "starting"
    NOT_READY = "not ready"
    CORDONED = "cordoned"
    READY = "ready"


class NodeView(Struct, frozen=True, gc=False):
    """One node as a list of nodes shows it."""

    name: str
    state: NodeState
    pool: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: int | None = None
    """Micro-dollars per hour; None if that is not known."""
    allocatable: Resources = {}
    requests: Resources = {}
    """What its pods ask for together."""
    pods: tuple[str, ...] = ()
    """Pods there, as `namespace/name`."""
    daemons: int = 0
    """How many of them go with the node: those of DaemonSets, and static ones."""
    created: datetime | None = None
    since: datetime | None = None
    """When it began to be deleted or to be disrupted."""
    reason: str = ""
    """Why it is disrupted, as its NodeClaim says."""
    drifted: str = ""
    """Why it has drifted; empty if it has not."""
    empty_since: datetime | None = None
    """Since when no pod there would need another node, if a controller keeps count of that."""
    is_empty: bool = False
    blocker: NodeRefusal | None = None
    """What keeps it, or its drain, for now."""
    coming: int = 0
    """How many pending pods are expected there."""
    labels: Mapping[str, str] = {}

    def fill(self, resource: str) -> float | None:
        """Return the share of a resource that pods ask for; None if the node says nothing of it."""
        there = self.allocatable.get(resource, 0)
        return self.requests.get(resource, 0) / there if there else None


class WaitingPod(Struct, frozen=True, gc=False):
    """A pod without a node, and what the decision about it is; none of them if it has none."""

    key: str
    created: datetime
    asks: tuple[str, ...] = ()
    launch: Launch | None = None
    node: str = ""
    """The node it goes to."""
    refusal: Refusal | None = None


class Totals(Struct, frozen=True, gc=False):
    """Some nodes together."""

    nodes: int = 0
    pods: int = 0
    price: int = 0
    """Micro-dollars per hour of the nodes whose price is known."""
    unpriced: int = 0
    """How many nodes have no known price."""
    allocatable: Resources = {}
    requests: Resources = {}
    by_capacity_type: tuple[tuple[str, int], ...] = ()
    """How many nodes of each, most first."""

    def fill(self, resource: str) -> float:
        """Return the share of a resource that pods ask for."""
        there = self.allocatable.get(resource, 0)
        return self.requests.get(resource, 0) / there if there else 0.0


class Overview(Struct, frozen=True, gc=False):
    """A cluster at one moment, as a list of nodes and of pods that wait."""

    now: datetime
    nodes: tuple[NodeView, ...] = ()
    """By name."""
    waiting: tuple[WaitingPod, ...] = ()
    """Refused ones first, then the oldest."""


def overview(snapshot: Snapshot, verdict: Verdict) -> Overview:
    """Gather what is to be seen of a cluster, and of a decision about its pending pods."""
    evaluation = Evaluation(snapshot)
    virtual = {pod.key for pod in snapshot.pods if pod.is_virtual}
    coming = {
        each.node: sum(key not in virtual for key in each.pods) for each in verdict.nominations
    }
    kept = {each.node: each for each in find_candidates(evaluation).refusals}
    nodes = tuple(
        _node_view(each, evaluation, kept.get(each.name), coming.get(each.name, 0))
        for each in sorted(snapshot.nodes, key=lambda each: each.name)
    )
    return Overview(snapshot.now, nodes, _waiting(snapshot.pods, verdict))


def total_of(nodes: Iterable[NodeView]) -> Totals:
    """Add nodes up."""
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
    node: Node, evaluation: Evaluation, refusal: NodeRefusal | None, coming: int
) -> NodeView:
    pods = [each for each in evaluation.pods_on(node) if not each.is_terminal]
    is_empty = not any(each.is_reschedulable for each in pods)
    record = node.claim_record or node.node_record
    state = _state_of(node)
    drifted = None if node.claim_record is None else node.claim_record.conditions.get(DRIFTED)
    since, reason = _end_of(node)
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
        coming=coming,
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


def _end_of(node: Node) -> tuple[datetime | None, str]:
    """Return since when a node is being deleted, and why."""
    claim, record = node.claim_record, node.node_record
    said = None if claim is None else claim.conditions.get(DISRUPTION_REASON)
    reason = said.reason if said is not None and said.is_true else ""
    deleted = [each.meta.deleted for each in (claim, record) if each and each.meta.deleted]
    if deleted:
        return min(deleted), reason
    return (said.changed if said is not None and reason else None), reason


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
    """Look the price of a node up; one of no NodePool is bought on demand if nothing is said."""
    wanted = capacity_type or ("" if node.pool else ON_DEMAND)
    if wanted != node.labels.get(CAPACITY_TYPE, ""):
        node = replace(node, labels={**node.labels, CAPACITY_TYPE: wanted})
    return evaluation.prices.of(node) or None


def _blocker_of(
    node: Node, evaluation: Evaluation, refusal: NodeRefusal | None
) -> NodeRefusal | None:
    if node.is_terminating:
        return why_not_pods(node, evaluation)[0]
    return None if refusal is None or refusal.why in _SAID_BY_STATE else refusal


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
