"""
Confirm nodes before anything is done to them, with what the API server lists there at that moment.

Watches may be late, and a node with a pod on it that was bound a moment ago is not empty.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.candidates import why_not_pods
from karpy.core.disruption.cost import eviction_cost
from karpy.core.disruption.guards import Guards
from karpy.model.disruption import DisruptionReason
from karpy.model.questions import (
    ConfirmationQuestion,
    EmptyConfirmationQuestion,
    ProposedNode,
    RepairConfirmationQuestion,
)
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.surroundings import NodeState, Surroundings
from karpy.model.tenants import PodBudget, Tenant
from karpy.model.verdicts import DisruptionVerdict, NodeChoice


class Occupancy(Struct, frozen=True):
    """What the API server lists on nodes, and which budgets protect that."""

    tenants: Mapping[str, tuple[Tenant, ...]]
    """By node."""
    budgets: tuple[PodBudget, ...] = ()


def ask(
    reason: DisruptionReason,
    nodes: Sequence[ProposedNode],
    surroundings: Surroundings,
    occupancy: Occupancy,
) -> ConfirmationQuestion:
    """Ask whether nodes may go, going by what was listed there."""
    states = by_claim(surroundings)
    listed = Surroundings(
        now=surroundings.now,
        nodes=tuple(
            replace(states[each.claim], tenants=occupancy.tenants[each.node]) for each in nodes
        ),
        pod_budgets=occupancy.budgets,
        reads_deletion_cost=surroundings.reads_deletion_cost,
    )
    if reason is DisruptionReason.EMPTY:
        return EmptyConfirmationQuestion(listed, tuple(nodes))
    return RepairConfirmationQuestion(listed, tuple(nodes))


def confirm(question: ConfirmationQuestion) -> DisruptionVerdict:
    """Say which nodes may go, and why not the others."""
    around, is_empty = question.surroundings, isinstance(question, EmptyConfirmationQuestion)
    guards, states = Guards(around.pod_budgets), by_claim(around)
    choices, refusals = [], []
    for each in question.proposed:
        state = states.get(each.claim)
        if state is None:
            refusals.append(NodeRefusal(Obstacle.GONE, each.node))
            continue
        refusal, _ = why_not_pods(state, around, guards)
        if refusal is None and is_empty:
            refusal = _why_not_empty(state, around)
        if refusal is None:
            choices.append(NodeChoice(each.node, each.claim, state.pool))
        else:
            refusals.append(replace(refusal, node=each.node))
    reason = DisruptionReason.EMPTY if is_empty else DisruptionReason.UNHEALTHY
    return DisruptionVerdict(reason, tuple(choices), tuple(refusals))


def _why_not_empty(state: NodeState, surroundings: Surroundings) -> NodeRefusal | None:
    """Name the first pod that would have to move, if there is one."""
    reads = surroundings.reads_deletion_cost
    movers = [
        each.pod.key
        for each in state.tenants
        if each.is_reschedulable and eviction_cost(each, reads_deletion_cost=reads) > 0
    ]
    return NodeRefusal(Obstacle.NOT_EMPTY, state.name, min(movers)) if movers else None


def by_claim(surroundings: Surroundings) -> dict[str, NodeState]:
    """Return the nodes that have a NodeClaim, by its name."""
    return {each.claim.name: each for each in surroundings.nodes if each.claim is not None}
