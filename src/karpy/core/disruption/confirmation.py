"""
The last check before a node is tainted or deleted, on the pods that the API server lists there.

Watches may be late: a pod that was bound a moment ago may be missing from the snapshot.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.candidates import why_not_pods
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.progress import Progress
from karpy.model.commands import Command, CommandNode, DisruptionVerdict, Stage
from karpy.model.nodes import Node
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import ConfirmationQuestion, Snapshot
from karpy.model.verdicts import NodeReason, NodeRefusal


class Occupancy(Struct, frozen=True):
    """The pods that the API server lists on nodes, and all PodDisruptionBudgets."""

    pods: Mapping[str, tuple[Pod, ...]]
    """By the name of the node."""
    budgets: tuple[DisruptionBudget, ...] = ()


def nodes_to_confirm(progress: Progress, snapshot: Snapshot) -> tuple[CommandNode, ...]:
    """List the nodes to be tainted or deleted now whose pods may still forbid the disruption."""
    nodes = {each.claim: each for each in snapshot.nodes if each.claim}
    disrupted = {each.claim for each in progress.changes if each.is_disruptive}
    return tuple(
        each
        for each in progress.command.nodes
        if each.claim in disrupted and not _is_forced(progress.command, each, nodes[each.claim])
    )


def confirmation_question(
    command: Command, nodes: Sequence[CommandNode], snapshot: Snapshot, occupancy: Occupancy
) -> ConfirmationQuestion:
    """Return the question whether nodes may be disrupted with the pods that were listed there."""
    claims = {each.claim for each in nodes}
    listed = Snapshot(
        now=snapshot.now,
        pods=tuple(pod for each in nodes for pod in occupancy.pods[each.node]),
        nodes=tuple(each for each in snapshot.nodes if each.claim in claims),
        budgets=occupancy.budgets,
        settings=snapshot.settings,
    )
    are_replaced = command.stage is Stage.WAITING and bool(command.replacements)
    return ConfirmationQuestion(listed, command.method, tuple(nodes), are_replaced)


def confirm(question: ConfirmationQuestion, reason: DisruptionReason) -> DisruptionVerdict:
    """Return the nodes whose pods allow the disruption, and a refusal for every other node."""
    snapshot = question.snapshot
    if question.are_replaced:
        # The replacements are initialized already: a PodDisruptionBudget that allows no eviction
        # now only delays the drain.
        snapshot = replace(snapshot, budgets=tuple(map(_unspent, snapshot.budgets)))
    evaluation = Evaluation(snapshot)
    kept, refusals = [], []
    for each in question.nodes:
        node = evaluation.nodes.get(each.claim)
        if node is None:
            refusals.append(NodeRefusal(NodeReason.GONE, each.node, method=question.method))
            continue
        refusal, _ = why_not_pods(node, evaluation)
        if refusal is None and reason is DisruptionReason.EMPTY:
            refusal = _why_not_empty(node, evaluation)
        if refusal is None:
            kept.append(each)
        else:
            refusals.append(replace(refusal, node=each.node, method=question.method))
    command = Command(question.method, reason, tuple(kept))
    return DisruptionVerdict(question.method, (command,) if kept else (), tuple(refusals))


def _unspent(budget: DisruptionBudget) -> DisruptionBudget:
    """Return a budget that allows a disruption, unless it never allows any."""
    return budget if budget.forbids_all else replace(budget, disruptions_allowed=1)


def _why_not_empty(node: Node, evaluation: Evaluation) -> NodeRefusal | None:
    """Name the first pod whose move costs something; None if there is no such pod."""
    moving = [
        pod.key
        for pod in evaluation.pods_on(node)
        if pod.is_reschedulable and evaluation.costs.of(pod) > 0
    ]
    if not moving:
        return None
    return NodeRefusal(NodeReason.NOT_EMPTY, node.name, min(moving), pods=(min(moving),))


def _is_forced(command: Command, chosen: CommandNode, node: Node) -> bool:
    """Say whether no pod can stop a disruption: drift or repair, and a drain with a limit."""
    claim = node.claim_record
    has_end = chosen.drain_bound is not None or (
        claim is not None and claim.grace_period is not None
    )
    return has_end and command.reason in {DisruptionReason.UNHEALTHY, DisruptionReason.DRIFTED}
