"""Events on nodes that are left alone: Karpenter's reasons and texts, which tools look for."""

from collections.abc import Iterable, Iterator
from typing import Final

from karpy.core.disruption.evaluation import Evaluation
from karpy.core.lifecycle.records import about_claim, about_node
from karpy.model.commands import Command
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.labels import DO_NOT_DISRUPT, DO_NOT_REPAIR, NODE_POOL
from karpy.model.nodes import Node
from karpy.model.notices import Notice, Subject
from karpy.model.verdicts import NodeReason, NodeRefusal

UNCONSOLIDATABLE_WINDOW: Final = 15 * 60.0
_BLOCKED: Final = {
    NodeReason.REPAIR_NEEDS_POOL: (
        "repair requires a NodePool to construct and budget a safe replacement"
    ),
    NodeReason.NO_NODE: "Nodeclaim does not have an associated node",
    NodeReason.UNREADABLE: "Node, NodeClaim or NodePool cannot be read: {detail}",
    NodeReason.REBOOTING: "Node is rebooting",
    NodeReason.DELETING: "Node is deleting or marked for deletion",
    NodeReason.UNREGISTERED: "Node isn't initialized nor registered",
    NodeReason.UNINITIALIZED: "Node isn't initialized",
    NodeReason.NOMINATED: "Node is nominated for a pending pod",
    NodeReason.DO_NOT_DISRUPT: f'Disruption is blocked through the "{DO_NOT_DISRUPT}" annotation',
    NodeReason.NO_POOL_LABEL: f"Node doesn't have required label (label={NODE_POOL})",
    NodeReason.POOL_MISSING: "NodePool not found (NodePool={detail})",
    NodeReason.POD_UNREADABLE: "Pod cannot be read (Pod={detail})",
    NodeReason.POD_DO_NOT_DISRUPT: f'Pod has "{DO_NOT_DISRUPT}" annotation (Pod={{detail}})',
    NodeReason.POD_BUDGETS: (
        "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{detail}])"
    ),
    NodeReason.POD_BUDGET: "Pdb prevents pod evictions (PodDisruptionBudget=[{detail}])",
    NodeReason.DO_NOT_REPAIR: f'repair is blocked through the "{DO_NOT_REPAIR}" annotation',
    NodeReason.REPAIR_NEEDS_GRACE: (
        "repair requires a termination grace period to bypass blocking pods"
    ),
    NodeReason.PODS_UNPLACED: "not all pods would schedule, {detail}",
    NodeReason.NO_REPLACEMENT: "{detail}",
}
_UNCONSOLIDATABLE: Final = {
    NodeReason.CONSOLIDATION_DISABLED: 'NodePool "{pool}" has consolidation disabled',
    NodeReason.WHEN_EMPTY_ONLY: 'NodePool "{pool}" has non-empty consolidation disabled',
    NodeReason.BUFFER_PODS: 'Node "{node}" has buffer pods',
    NodeReason.TYPE_UNKNOWN: 'Instance Type "{detail}" not found',
    NodeReason.LABEL_MISSING: 'Node does not have label "{detail}"',
    NodeReason.NEEDS_MORE_NODES: "Can't remove without creating {detail} candidates",
    NodeReason.NOT_CHEAPER: "Can't replace with a cheaper node",
    NodeReason.SPOT_TO_SPOT_DISABLED: (
        "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
    ),
    NodeReason.SPOT_TO_SPOT_TYPES: (
        "SpotToSpotConsolidation requires 15 cheaper instance type options than the current"
        " candidate to consolidate, got {detail}"
    ),
}


def refusal_notices(refusals: Iterable[NodeRefusal], evaluation: Evaluation) -> Iterator[Notice]:
    """Return the events on nodes, and on their NodeClaims, that are left alone."""
    nodes = {each.name: each for each in evaluation.snapshot.nodes}
    for each in refusals:
        node = nodes.get(each.node)
        if node is None:
            continue
        words = {"detail": each.detail, "node": each.node, "pool": node.pool}
        if each.why in _BLOCKED:
            note = _BLOCKED[each.why].format(**words)
            yield from blocked_notices(node, note)
        elif each.why in _UNCONSOLIDATABLE:
            note = _UNCONSOLIDATABLE[each.why].format(**words)
            for subject in subjects_of(node):
                yield Notice(
                    subject,
                    "Unconsolidatable",
                    note,
                    same_as=(subject.uid,),
                    window_seconds=UNCONSOLIDATABLE_WINDOW,
                    can_wait=True,
                )


def blocked_notices(node: Node, note: str) -> Iterator[Notice]:
    """Return the events that say why the disruption of a node is blocked."""
    for subject in subjects_of(node):
        yield Notice(subject, "DisruptionBlocked", note, same_as=(subject.uid,), can_wait=True)


def candidate_notices(command: Command, evaluation: Evaluation) -> Iterator[Notice]:
    """Return the events on the nodes of a consolidation that was proposed."""
    for subject, text in _each_node(command, evaluation):
        note = f"Consolidation candidate: {text} {_savings(command)}"
        yield Notice(subject, "ConsolidationCandidate", note, same_as=(subject.uid, text))


def rejected_notices(command: Command, why: str, evaluation: Evaluation) -> Iterator[Notice]:
    """Return the events on the nodes of a consolidation whose validation failed."""
    for subject, text in _each_node(command, evaluation):
        note = f"Consolidation rejected: {text}, reason: {why} {_savings(command)}"
        yield Notice(subject, "ConsolidationRejected", note, same_as=(subject.uid, text, why))


def subjects_of(node: Node) -> list[Subject]:
    """Return the Node and the NodeClaim behind it, as far as they exist."""
    subjects = [] if node.node_record is None else [about_node(node.node_record)]
    return subjects if node.claim_record is None else [*subjects, about_claim(node.claim_record)]


def _each_node(command: Command, evaluation: Evaluation) -> Iterator[tuple[Subject, str]]:
    for each in command.nodes:
        node = evaluation.nodes.get(each.claim)
        text = f"{command.decision}: [{each.node}]"
        if len(command.nodes) > 1:
            text += f" (part of {len(command.nodes)}-node consolidation)"
        for subject in [] if node is None else subjects_of(node):
            yield subject, text


def _savings(command: Command) -> str:
    return f"(savings: ${command.savings / MICROS_PER_DOLLAR:.2f})"
