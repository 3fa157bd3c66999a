"""Deletion costs of pods: a scale-in first deletes pods on nodes that are disrupted next."""

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
"""The cost of pods on terminating nodes."""
NODES_MAX: Final = 50
"""Nodes whose pods are patched in one cycle; terminating nodes do not count."""
_JOB: Final = ("batch/v1", "Job")
_SCALED_IN: Final = frozenset({REPLICA_SET, _JOB, DAEMON_SET})
"""Controllers whose pods can leave a node by themselves: by a scale-in, by completion."""
_SYSTEM: Final = "kube-system"
_PODS_SHOWN_MAX: Final = 5


class DeletionGroup(Enum):
    """What is going to happen to a node, on which the cost of its pods depends."""

    TERMINATING = "it is deleted, or a command disrupts it"
    DRIFTED = "it is drifted, and its budget allows its disruption next"
    CONSOLIDATED = "it saves most for the pods that move, and its budget allows its disruption next"
    KEPT = "it is kept for now"


class PodCost(Struct, frozen=True, gc=False):
    """The cost to write on a pod; None removes the annotation."""

    name: str
    namespace: str
    uid: str
    cost: int | None

    @property
    def text(self) -> str | None:
        """The value of the annotation."""
        return None if self.cost is None else str(self.cost)


class NodeCost(Struct, frozen=True, gc=False):
    """The cost of the pods on a node, and why."""

    node: str
    pool: str
    group: DeletionGroup
    cost: int | None = None
    """None if no cost is written on the pods of the node."""
    refusal: NodeRefusal | None = None
    """Why the node is not disrupted next."""
    writes: tuple[PodCost, ...] = ()
    """The pods with another value in their annotation."""
    is_postponed: bool = False
    """Whether the writes wait for a later cycle, because this one has `NODES_MAX` already."""


class DeletionCosts(Struct, frozen=True, gc=False):
    """The costs of all pods: terminating nodes first, then nodes in their order, then the rest."""

    nodes: tuple[NodeCost, ...] = ()

    def writes(self) -> Iterator[PodCost]:
        """Yield the pods to patch in this cycle."""
        for node in self.nodes:
            if not node.is_postponed:
                yield from node.writes

    @property
    def postponed(self) -> int:
        """How many nodes wait for a later cycle."""
        return sum(each.is_postponed for each in self.nodes)

    def pending(self) -> Mapping[str, int]:
        """Count by NodePool the nodes with a pod whose annotation has to change."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            counts[node.pool] = counts.get(node.pool, 0) + bool(node.writes)
        return counts


def find_deletion_costs(snapshot: Snapshot) -> DeletionCosts:
    """Return the cost of the pods on each node that this operator manages."""
    # Rank the nodes of proposed commands, too: nothing has been written on them yet.
    evaluation = Evaluation(replace(snapshot, in_command=frozenset()))
    nodes = sorted(
        (each for each in snapshot.nodes if each.claim_record is not None and not each.is_foreign),
        key=lambda each: (-_savings_ratio(each, evaluation), each.name),
    )
    terminating = [each for each in nodes if _is_terminating(each)]
    others = [each for each in nodes if not _is_terminating(each)]
    ranked, refusals = _rank(others, evaluation)
    costs = [_cost(each, DeletionGroup.TERMINATING, LEAST, evaluation) for each in terminating]
    # Costs end at -1: when the first node is deleted, the costs of the others stay the same.
    for place, (node, group) in enumerate(ranked):
        costs.append(_cost(node, group, place - len(ranked), evaluation))
    for node in others:
        if node.name in refusals:
            kept = _cost(node, DeletionGroup.KEPT, None, evaluation)
            costs.append(replace(kept, refusal=refusals[node.name]))
    return DeletionCosts(tuple(_within_cycle(costs)))


# Differs: a pod deletion cost that is not a negative number: Karpenter overwrites the annotation,
# and removes it from pods on nodes that are kept; Karpy leaves it alone, because only a user can
# have written it.
def is_managed(text: str | None) -> bool:
    """Say whether Karpy may write a deletion cost: there is none yet, or it is negative."""
    return text is None or read_cost(text) < 0


def _is_terminating(node: Node) -> bool:
    return node.is_deleting or any(is_disrupted(each) for each in node.taints)


def _savings_ratio(node: Node, evaluation: Evaluation) -> Fraction:
    """Return the price of a node divided by the cost of moving its pods."""
    _, moving_cost = evaluation.reschedulable_on(node)
    return Fraction(evaluation.prices.of(node), moving_cost)


def _rank(
    nodes: Iterable[Node], evaluation: Evaluation
) -> tuple[list[tuple[Node, DeletionGroup]], dict[str, NodeRefusal]]:
    """Return the nodes to be disrupted next, in order, and refusals of all others by name."""
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


# Differs: a static pod outside kube-system, for deletion costs: Karpenter assumes that no scale-in
# can empty its node; Karpy ignores the pod, because it ends with its node.
def _pins(pod: Pod) -> bool:
    """Say whether a pod stays on its node whatever is scaled in: no controller ends it."""
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
    """Say whether a pod belongs to a ReplicaSet and has no deletion cost of a user."""
    is_readable = pod.is_active and not pod.unreadable
    return is_readable and bool(replica_set_uid(pod)) and is_managed(pod.disruption.deletion_cost)


def _within_cycle(costs: Iterable[NodeCost]) -> Iterator[NodeCost]:
    """Postpone the writes of nodes to a later cycle once `NODES_MAX` is reached."""
    left = NODES_MAX
    for each in costs:
        if not each.writes or each.group is DeletionGroup.TERMINATING:
            yield each
        elif left:
            left -= 1
            yield each
        else:
            yield replace(each, is_postponed=True)
