"""Deletion costs of pods: a ReplicaSet that scales in deletes those first whose nodes go next."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.budgets import find_allowances
from karpy.core.disruption.candidates import Candidate, best_first, find_candidates, refuse
from karpy.core.disruption.cost import read_cost
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.rollouts import REPLICA_SET, replica_set_uid
from karpy.core.lifecycle.conditions import DRIFTED
from karpy.model.constraints import is_disrupted
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import NodeReason, NodeRefusal

METHOD: Final = "deletion-cost"
LEAST: Final = -(2**31)
"""What pods cost whose node goes away."""
NODES_MAX: Final = 50
"""Pods of so many nodes are written in one cycle, those of nodes that go away not counted."""
_JOB: Final = ("batch/v1", "Job")
_SCALED_IN: Final = frozenset({REPLICA_SET, _JOB, DAEMON_SET})
"""Controllers whose pods do not keep a node from becoming empty by itself."""
_SYSTEM: Final = "kube-system"
_PODS_SHOWN_MAX: Final = 5


class DeletionGroup(Enum):
    """What becomes of a node, which decides what its pods cost."""

    TERMINATING = "it goes away"
    DRIFTED = "it is drifted, and its budget lets it go next"
    CONSOLIDATED = "it saves most for the pods that move, and its budget lets it go next"
    KEPT = "it stays for now"


class PodCost(Struct, frozen=True, gc=False):
    """What a pod is to cost; None removes the annotation."""

    name: str
    namespace: str
    uid: str
    cost: int | None

    @property
    def text(self) -> str | None:
        """The value of the annotation."""
        return None if self.cost is None else str(self.cost)


class NodeCost(Struct, frozen=True, gc=False):
    """What the pods of a node cost, and why."""

    node: str
    pool: str
    group: DeletionGroup
    cost: int | None = None
    """None if no cost is written on the pods of the node."""
    refusal: NodeRefusal | None = None
    """Why a node is kept."""
    writes: tuple[PodCost, ...] = ()
    """The pods whose annotation says something else yet."""
    is_postponed: bool = False
    """Whether the writes are left to a later cycle: there are too many in this one."""


class DeletionCosts(Struct, frozen=True, gc=False):
    """What pods cost: nodes that go away first, then those that go next, then all others."""

    nodes: tuple[NodeCost, ...] = ()

    def writes(self) -> Iterator[PodCost]:
        """Return the pods to write in this cycle."""
        for node in self.nodes:
            if not node.is_postponed:
                yield from node.writes

    @property
    def postponed(self) -> int:
        """How many nodes are left to a later cycle."""
        return sum(each.is_postponed for each in self.nodes)

    def pending(self) -> Mapping[str, int]:
        """Count by NodePool the nodes that have a pod with another cost than it should."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            counts[node.pool] = counts.get(node.pool, 0) + bool(node.writes)
        return counts


def find_deletion_costs(snapshot: Snapshot) -> DeletionCosts:
    """Say what the pods of each node of ours should cost."""
    # A command that is only proposed has changed nothing: its nodes rank as they did before it.
    evaluation = Evaluation(replace(snapshot, in_command=frozenset()))
    nodes = sorted(
        (each for each in snapshot.nodes if each.claim_record is not None and not each.is_foreign),
        key=lambda each: (-_savings_ratio(each, evaluation), each.name),
    )
    terminating = [each for each in nodes if _is_terminating(each)]
    others = [each for each in nodes if not _is_terminating(each)]
    ranked, refusals = _rank(others, evaluation)
    costs = [_cost(each, DeletionGroup.TERMINATING, LEAST, evaluation) for each in terminating]
    # Up to -1: the costs of the others stay as they are when the first of them goes.
    for place, (node, group) in enumerate(ranked):
        costs.append(_cost(node, group, place - len(ranked), evaluation))
    for node in others:
        if node.name in refusals:
            kept = _cost(node, DeletionGroup.KEPT, None, evaluation)
            costs.append(replace(kept, refusal=refusals[node.name]))
    return DeletionCosts(tuple(_within_cycle(costs)))


# Differs: a pod deletion cost that is not a negative number: Karpenter overwrites it, and deletes
# it from pods of nodes that stay; Karpy leaves it as it is, because only a user can have written
# it.
def is_managed(text: str | None) -> bool:
    """Say whether a deletion cost is ours to write: there is none, or it is below zero."""
    return text is None or read_cost(text) < 0


def _is_terminating(node: Node) -> bool:
    return node.is_deleting or any(is_disrupted(each) for each in node.taints)


def _savings_ratio(node: Node, evaluation: Evaluation) -> Fraction:
    """Return the price of a node per cost of moving its pods, whether they may move or not."""
    _, moving_cost = evaluation.movers(node)
    return Fraction(evaluation.prices.of(node), moving_cost)


def _rank(
    nodes: Iterable[Node], evaluation: Evaluation
) -> tuple[list[tuple[Node, DeletionGroup]], dict[str, NodeRefusal]]:
    """Put the nodes that go next in their order, and refuse all others, by name."""
    found = find_candidates(evaluation, nodes=nodes)
    refusals = [*found.refusals]
    drifted, consolidated = list[Candidate](), list[Candidate]()
    for each in best_first(found.candidates):
        is_drifted = each.claim.conditions.is_true(DRIFTED) and not each.pool.is_static
        refusal = _why_kept(each, evaluation, is_drifted=is_drifted)
        if refusal is not None:
            refusals.append(refusal)
        else:
            (drifted if is_drifted else consolidated).append(each)
    ranked = []
    for candidates, group, reason in (
        (drifted, DeletionGroup.DRIFTED, DisruptionReason.DRIFTED),
        (consolidated, DeletionGroup.CONSOLIDATED, DisruptionReason.UNDERUTILIZED),
    ):
        chosen, spent = find_allowances(evaluation, reason).within(candidates, METHOD)
        ranked += [(each.node, group) for each in chosen]
        refusals += spent
    return ranked, {each.node: each for each in refusals}


def _why_kept(
    candidate: Candidate, evaluation: Evaluation, *, is_drifted: bool
) -> NodeRefusal | None:
    pinning = sorted(each.key for each in evaluation.pods_on(candidate.node) if _pins(each))
    if pinning:
        shown = tuple(pinning[:_PODS_SHOWN_MAX])
        return refuse(candidate, NodeReason.PINNED, METHOD, shown[0], pods=shown)
    if evaluation.prices.type_of(candidate.node) is None:
        detail = candidate.node.labels.get(INSTANCE_TYPE, "")
        return refuse(candidate, NodeReason.TYPE_UNKNOWN, METHOD, detail)
    if not is_drifted and candidate.pool.policy.consolidate_after is None:
        return refuse(candidate, NodeReason.CONSOLIDATION_DISABLED, METHOD)
    return None


# Differs: a static pod outside kube-system, for deletion costs: Karpenter takes its node for one
# that a scale-in cannot empty; Karpy ignores the pod, because it ends with its node.
def _pins(pod: Pod) -> bool:
    """Say whether a pod stays on its node whatever is scaled in."""
    if pod.namespace == _SYSTEM or not pod.is_reschedulable:
        return False
    controller = next((each for each in pod.owners if each.is_controller), None)
    return controller is None or (controller.api_version, controller.kind) not in _SCALED_IN


def _cost(node: Node, group: DeletionGroup, cost: int | None, evaluation: Evaluation) -> NodeCost:
    wanted = None if cost is None else str(cost)
    writes = tuple(
        PodCost(pod.name, pod.namespace, pod.uid, cost)
        for pod in sorted(evaluation.pods_on(node), key=lambda pod: (pod.key, pod.uid))
        if _is_written(pod) and pod.disruption.deletion_cost != wanted
    )
    return NodeCost(node.name, node.pool, group, cost, writes=writes)


def _is_written(pod: Pod) -> bool:
    """Say whether a pod is of a ReplicaSet, and its deletion cost not the user's own."""
    is_readable = pod.is_active and not pod.unreadable
    return is_readable and bool(replica_set_uid(pod)) and is_managed(pod.disruption.deletion_cost)


def _within_cycle(costs: Iterable[NodeCost]) -> Iterator[NodeCost]:
    """Leave the writes of nodes to a later cycle once there are enough."""
    left = NODES_MAX
    for each in costs:
        if not each.writes or each.group is DeletionGroup.TERMINATING:
            yield each
        elif left:
            left -= 1
            yield each
        else:
            yield replace(each, is_postponed=True)
