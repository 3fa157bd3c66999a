"""Which nodes may be disrupted at all, refusals of all other nodes, and their events."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.cost import POD
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.lifecycle.changes import about_claim, about_node
from karpy.core.lifecycle.eviction import protection_of
from karpy.model.commands import Command, CommandNode
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.labels import DO_NOT_DISRUPT, DO_NOT_REPAIR, NODE_POOL
from karpy.model.nodes import Node
from karpy.model.notices import Notice, Subject
from karpy.model.pods import Pod
from karpy.model.pools import NodePool
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.verdicts import NodeReason, NodeRefusal

PODS_SHOWN_MAX: Final = 5
_YES: Final = "true"
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


class DisruptionClass(Enum):
    """Which protections of pods and nodes a method respects."""

    GRACEFUL = "graceful"
    """Pods and PodDisruptionBudgets can block the disruption."""
    EVENTUAL = "eventual"
    """Pods block it only if the NodeClaim has no terminationGracePeriod."""
    REPAIR = "repair"
    """Pods are recorded as the blocker; the annotation do-not-disrupt of the node is ignored."""


class Candidate(Struct, frozen=True, gc=False):
    """A node that may be disrupted, with its price and the cost of moving its pods."""

    node: Node
    claim: ClaimRecord
    record: NodeRecord
    pool: NodePool
    pods: tuple[Pod, ...] = ()
    """The reschedulable pods on the node."""
    price: int = 0
    """Micro-dollars per hour; 0 if the price is not known."""
    moving_cost: int = POD
    """The cost of moving its pods; `POD` if it has none."""
    blocker: NodeRefusal | None = None
    """Why pods, or their budgets, forbid the disruption now, if the method may override that."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_empty(self) -> bool:
        """Whether the node has no reschedulable pods, or only pods that cost nothing to move."""
        return self.moving_cost <= POD

    @property
    def savings_ratio(self) -> Fraction:
        """The price divided by the cost of moving the pods."""
        return Fraction(self.price, self.moving_cost)


class Candidates(Struct, frozen=True, gc=False):
    """Nodes that may be disrupted, and a refusal for every other node."""

    candidates: tuple[Candidate, ...] = ()
    refusals: tuple[NodeRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()
    """Events on pods whose annotation do-not-disrupt is a duration, or is invalid."""


def find_candidates(
    evaluation: Evaluation,
    class_: DisruptionClass = DisruptionClass.GRACEFUL,
    nodes: Iterable[Node] | None = None,
) -> Candidates:
    """Find the nodes, among all nodes by default, that may be disrupted; both lists by name."""
    candidates, refusals, notices = [], [], list[Notice]()
    chosen = evaluation.snapshot.nodes if nodes is None else nodes
    for node in sorted(chosen, key=lambda each: each.name):
        refusal = _why_not_node(node, evaluation, class_)
        blocker = None
        if refusal is None:
            blocker, pod_notices = why_not_pods(node, evaluation)
            notices += pod_notices
            refusal = None if _can_only_delay(node, class_) else blocker
        if refusal is None:
            candidates.append(_candidate(node, evaluation, blocker))
        else:
            refusals.append(refusal)
    return Candidates(tuple(candidates), tuple(refusals), tuple(notices))


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort by price per cost of moving the pods, highest first; names decide ties."""
    return sorted(candidates, key=lambda each: (-each.savings_ratio, each.name))


def as_command_node(candidate: Candidate) -> CommandNode:
    """Return the node of a command for a candidate."""
    return CommandNode(
        candidate.name,
        candidate.claim.name,
        candidate.pool.name,
        candidate.price,
        len(candidate.pods),
    )


def refuse(
    candidate: Candidate, why: NodeReason, method: str, detail: str = "", **numbers: object
) -> NodeRefusal:
    """Return the refusal of a candidate by a method, with the price of the node."""
    refusal = NodeRefusal(why, candidate.name, detail, method, price=candidate.price)
    return replace(refusal, **numbers) if numbers else refusal


def why_not_pods(node: Node, evaluation: Evaluation) -> tuple[NodeRefusal | None, list[Notice]]:
    """Return why pods forbid to disrupt a node, or None; and events on their annotations."""
    notices: list[Notice] = []
    now, protected, unreadable = evaluation.now, list[str](), ""
    until: datetime | None = None
    for pod in evaluation.pods_on(node):
        # The annotation also counts on pods of DaemonSets and static pods: it was set on purpose.
        if pod.disruption.do_not_disrupt is not None and pod.is_active:
            protection = protection_of(pod, now)
            notices += protection.notices
            if protection.is_active:
                protected.append(pod.key)
                until = _later(until, protection.until, is_first=len(protected) == 1)
        if pod.rules.unreadable and pod.is_reschedulable:
            unreadable = min(unreadable or pod.key, pod.key)
    if protected:
        return _blocked_by(NodeReason.POD_DO_NOT_DISRUPT, node, protected, until=until), notices
    if unreadable:
        return _blocked_by(NodeReason.POD_UNREADABLE, node, [unreadable]), notices
    return _why_not_evicted(node, evaluation), notices


def _later(known: datetime | None, other: datetime | None, *, is_first: bool) -> datetime | None:
    """Return the later of two ends; None means no end."""
    if is_first:
        return other
    return None if known is None or other is None else max(known, other)


def _why_not_evicted(node: Node, evaluation: Evaluation) -> NodeRefusal | None:
    if evaluation.budgets.is_empty:
        return None
    held: dict[tuple[NodeReason, str], list[str]] = {}
    for pod in evaluation.pods_on(node):
        blocked = evaluation.budgets.why_not_evicted(pod, evaluation.now)
        if blocked is not None:
            held.setdefault((blocked.why, " ".join(blocked.budgets)), []).append(pod.key)
    if not held:
        return None
    (why, budgets), pods = min(held.items(), key=lambda each: min(each[1]))
    return _blocked_by(why, node, pods, budgets)


def _blocked_by(
    why: NodeReason,
    node: Node,
    pods: Sequence[str],
    detail: str = "",
    until: datetime | None = None,
) -> NodeRefusal:
    shown = tuple(sorted(pods)[:PODS_SHOWN_MAX])
    return NodeRefusal(why, node.name, detail or shown[0], pods=shown, until=until)


def _why_not_node(
    node: Node, evaluation: Evaluation, class_: DisruptionClass
) -> NodeRefusal | None:
    why = _why_not_managed(node, evaluation, class_) or _why_not_ready(node, evaluation, class_)
    if why is not None:
        detail = node.unreadable if why is NodeReason.UNREADABLE else ""
        until = node.nominated_until if why is NodeReason.NOMINATED else None
        return NodeRefusal(why, node.name, detail, until=until)
    catalog = evaluation.snapshot.catalog
    if node.pool not in evaluation.pools or not catalog.types_for(node.pool):
        return NodeRefusal(NodeReason.POOL_MISSING, node.name, node.pool)
    # Differs: a disruption command that fails: Karpenter proposes it again at once, and commands
    # for other nodes wait; Karpy does not disrupt its nodes for a while, longer after each failure.
    free_at = evaluation.snapshot.command_backoffs.get(node.claim)
    if free_at is not None and evaluation.now < free_at:
        return NodeRefusal(NodeReason.BACKING_OFF, node.name, until=free_at)
    return None


def _why_not_managed(
    node: Node, evaluation: Evaluation, class_: DisruptionClass
) -> NodeReason | None:
    claim = node.claim_record
    if claim is None or node.is_foreign:
        return NodeReason.UNMANAGED
    if claim.name in evaluation.snapshot.in_command:
        return NodeReason.IN_COMMAND
    if class_ is DisruptionClass.REPAIR and not claim.pool:
        return NodeReason.REPAIR_NEEDS_POOL
    pool = evaluation.pools.get(claim.pool)
    if node.unreadable or (pool is not None and pool.unreadable):
        return NodeReason.UNREADABLE
    return NodeReason.NO_NODE if node.node_record is None else None


def _why_not_ready(
    node: Node, evaluation: Evaluation, class_: DisruptionClass
) -> NodeReason | None:
    if node.is_rebooting:
        return NodeReason.REBOOTING
    if node.is_deleting:
        return NodeReason.DELETING
    if not node.is_registered:
        return NodeReason.UNREGISTERED
    is_repair = class_ is DisruptionClass.REPAIR
    if not node.is_initialized:
        # A node that failed before its initialization runs no pods that a repair could harm.
        return None if is_repair else NodeReason.UNINITIALIZED
    if node.is_nominated(evaluation.now):
        return NodeReason.NOMINATED
    if not is_repair and node.annotations.get(DO_NOT_DISRUPT) == _YES:
        return NodeReason.DO_NOT_DISRUPT
    return None if NODE_POOL in node.labels else NodeReason.NO_POOL_LABEL


def _can_only_delay(node: Node, class_: DisruptionClass) -> bool:
    """Say whether pods can only delay the disruption of a node."""
    if class_ is DisruptionClass.EVENTUAL:
        return node.claim_record is not None and node.claim_record.grace_period is not None
    return class_ is DisruptionClass.REPAIR


def _candidate(node: Node, evaluation: Evaluation, blocker: NodeRefusal | None) -> Candidate:
    assert node.claim_record is not None
    assert node.node_record is not None
    pods, moving_cost = evaluation.reschedulable_on(node)
    return Candidate(
        node=node,
        claim=node.claim_record,
        record=node.node_record,
        pool=evaluation.pools[node.pool],
        pods=pods,
        price=evaluation.prices.of(node),
        moving_cost=moving_cost,
        blocker=blocker,
    )


def refusal_notices(refusals: Iterable[NodeRefusal], evaluation: Evaluation) -> Iterator[Notice]:
    """Yield the events of refusals, on Nodes and NodeClaims."""
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
    """Yield the events that say why the disruption of a node is blocked."""
    for subject in subjects_of(node):
        yield Notice(subject, "DisruptionBlocked", note, same_as=(subject.uid,), can_wait=True)


def candidate_notices(command: Command, evaluation: Evaluation) -> Iterator[Notice]:
    """Yield the events of a proposed consolidation, on each of its nodes."""
    for subject, text in _each_node(command, evaluation):
        note = f"Consolidation candidate: {text} {_savings(command)}"
        yield Notice(subject, "ConsolidationCandidate", note, same_as=(subject.uid, text))


def rejected_notices(command: Command, why: str, evaluation: Evaluation) -> Iterator[Notice]:
    """Yield the events of a consolidation whose validation failed, on each of its nodes."""
    for subject, text in _each_node(command, evaluation):
        note = f"Consolidation rejected: {text}, reason: {why} {_savings(command)}"
        yield Notice(subject, "ConsolidationRejected", note, same_as=(subject.uid, text, why))


def subjects_of(node: Node) -> list[Subject]:
    """Return the Node and its NodeClaim, as far as they exist."""
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
