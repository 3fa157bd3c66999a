"""
Why a node still exists, by all disruption methods, and which changes would let it be deleted.

Each method is asked about the cluster as it is, then about this node alone while its reasons to
keep the node are removed one by one. Every way reported as complete was tried on a snapshot.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.buffers import pods_by_node
from karpy.core.disruption.budgets import Allowance, find_allowances
from karpy.core.disruption.candidates import Candidate, find_candidates, why_not_pods
from karpy.core.disruption.consolidation import SINGLE_NODE, Consolidation, examine
from karpy.core.disruption.decide import METHODS
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.lifts import (
    ClusterChange,
    Lifted,
    RefusedNode,
    advice_on,
    lift,
    lift_preferences,
    lift_unsettled_nodes,
    without_pods,
)
from karpy.core.disruption.method import DisruptionMethod, Proposal
from karpy.core.lifecycle.conditions import DISRUPTION_REASON, DRIFTED
from karpy.model.commands import Command
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.pools import DisruptionReason
from karpy.model.resources import CPU, MEMORY
from karpy.model.settings import ReservedMode
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, LaunchOption, NodeReason, NodeRefusal, Verdict

REPAIR: Final = "repair"
EMPTINESS: Final = "emptiness"
STATIC_DRIFT: Final = "static-drift"
DRIFT: Final = "drift"
MULTI_NODE: Final = "multi-node-consolidation"
NOMINATION_TIME: Final = timedelta(seconds=20)
"""How long a nominated node is kept for its pods, with batches of the default length."""
CHANGES_MAX: Final = 12
"""The most changes tried for one node and method."""
_ALONE_MAX: Final = 30
"""The most pods tried to be removed alone, the smallest first."""
_TOGETHER_MAX: Final = 10
"""The most pods tried to be removed together, the largest first."""
_PLACES: Final = frozenset(
    {NodeReason.NOT_CHEAPER, NodeReason.NEEDS_MORE_NODES, NodeReason.PODS_UNPLACED}
)
"""Reasons that may end with fewer pods, or with more places for them."""


class NodeOutcome(Enum):
    """What becomes of a node."""

    GOES = "a method takes it now"
    WAITS = "a method would take it, and another command comes first"
    GOING = "it is being deleted"
    STAYS = "every method leaves it alone"


class Attempt(Struct, frozen=True, gc=False):
    """The answer of one method about a node now: a refusal, a command, or neither."""

    method: str
    refusal: NodeRefusal | None = None
    command: Command | None = None
    """The command of the method that includes the node."""


class Outlook(Struct, frozen=True, gc=False):
    """Where the pods of a node would go without it, at any price."""

    price: int
    """The price of the node in micro-dollars per hour; 0 if it is not known."""
    pods: int
    """How many pods have to move."""
    nodes: tuple[str, ...] = ()
    """Existing nodes with room for some of these pods."""
    new_nodes: int = 0
    """How many new nodes the other pods need; a command launches one at most."""
    replacement: LaunchOption | None = None
    """The cheapest type for the new node, if one is enough, at the price of its dearest zone."""
    cost: int | None = 0
    """The lowest price of the new nodes, in micro-dollars per hour; None if not known."""
    unplaced: tuple[str, ...] = ()
    """Pods without a place at any price, each as `namespace/name: reason`."""

    @property
    def saving(self) -> int | None:
        """Micro-dollars per hour, 0 or less if nothing is saved; None if not known."""
        if self.unplaced or self.cost is None or not self.price:
            return None
        return self.price - self.cost


class Way(Struct, frozen=True, gc=False):
    """The changes after which a method would disrupt a node."""

    method: str
    changes: tuple[ClusterChange, ...] = ()
    command: Command | None = None
    """The command of the method after these changes; None if it still refuses the node."""
    first: NodeRefusal | None = None
    """Why the method refuses the node now, asked about this node alone."""
    wall: NodeRefusal | None = None
    """The refusal that no change removes; None if the way is complete."""
    advice: str = ""
    """Advice against that refusal, which was not tried."""
    outlook: Outlook | None = None
    """Where the pods would go, for consolidation."""

    @property
    def is_complete(self) -> bool:
        return self.command is not None


class NodeExplanation(Struct, frozen=True, gc=False):
    """Why a node still exists; fields that do not apply are empty."""

    node: Node
    outcome: NodeOutcome
    sentence: str
    price: int = 0
    """Micro-dollars per hour; 0 if the price is not known."""
    pods: tuple[str, ...] = ()
    """Pods that need another node, as `namespace/name`."""
    daemons: int = 0
    """How many pods end with the node: pods of DaemonSets, and static pods."""
    attempts: tuple[Attempt, ...] = ()
    """One for each method, in the order of a pass."""
    ways: tuple[Way, ...] = ()
    """Fewest changes first; incomplete ways come last."""
    allowances: tuple[tuple[DisruptionReason, Allowance], ...] = ()
    """What the budgets of its NodePool allow now."""
    unknown: tuple[str, ...] = ()
    """What the answer depends on but is missing from the snapshot, as sentences."""

    @property
    def is_no(self) -> bool:
        return self.outcome is NodeOutcome.STAYS

    @property
    def way(self) -> Way | None:
        """The complete way with the fewest changes, or else the best incomplete way."""
        return self.ways[0] if self.ways else None

    @property
    def outlook(self) -> Outlook | None:
        """Where its pods would go, if consolidation considers the node."""
        return next((each.outlook for each in self.ways if each.outlook is not None), None)


def find_node(snapshot: Snapshot, name: str) -> Node | None:
    """Return the node of a name, or the node of a NodeClaim of that name."""
    by_name = (each for each in snapshot.nodes if name in {each.name, _object_name(each)})
    by_claim = (each for each in snapshot.nodes if each.claim == name)
    return next(by_name, None) or next(by_claim, None)


def with_inferred_state(snapshot: Snapshot, verdict: Verdict) -> Snapshot:
    """
    Add the state that an operator holds in memory, as far as API objects show it.

    NodeClaims with the condition DisruptionReason are in a command. Nodes that a verdict chooses
    for pending pods are nominated; those that it chooses for virtual pods have buffer pods.
    """
    chosen = frozenset(
        each.claim
        for each in snapshot.nodes
        if each.claim_record is not None
        and not each.is_deleting
        and each.claim_record.conditions.is_true(DISRUPTION_REASON)
    )
    virtual = [each for each in snapshot.pods if each.is_virtual]
    kept = pods_by_node(virtual, verdict)
    nominated = frozenset(
        each.node for each in verdict.nominations if len(each.pods) > kept.get(each.node, 0)
    )
    until = snapshot.now + NOMINATION_TIME
    nodes = tuple(
        replace(
            each,
            nominated_until=until if each.name in nominated else each.nominated_until,
            buffer_pods=kept.get(each.name, each.buffer_pods),
        )
        for each in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes, in_command=snapshot.in_command | chosen)


def explain_node(snapshot: Snapshot, name: str) -> NodeExplanation:
    """Explain why a node of the snapshot still exists, and what would let it be deleted."""
    node = find_node(snapshot, name)
    assert node is not None
    evaluation = Evaluation(snapshot)
    here = evaluation.pods_on(node)
    pods = tuple(sorted(each.key for each in here if each.is_reschedulable))
    bare = NodeExplanation(
        node,
        NodeOutcome.STAYS,
        "",
        price=evaluation.prices.of(node),
        pods=pods,
        daemons=sum(each.is_active and (each.is_daemon or each.is_static) for each in here),
        allowances=tuple(_allowances(node, evaluation)),
        unknown=tuple(_unknown(node, evaluation)),
    )
    if node.is_deleting or node.claim in snapshot.in_command:
        return replace(bare, outcome=NodeOutcome.GOING, sentence=_why_deleting(node, evaluation))
    proposals = [(each, each.propose(evaluation)) for each in METHODS]
    is_static = node.pool in evaluation.pools and evaluation.pools[node.pool].is_static
    other = DRIFT if is_static else STATIC_DRIFT
    attempts = tuple(
        _attempt(method, made, node) for method, made in proposals if method.name != other
    )
    first = next((each for each, made in proposals if made.commands), None)
    ways = tuple(sorted(_ways(snapshot, node, attempts), key=_smallest_first))
    explained = replace(bare, attempts=attempts, ways=ways)
    taken = next((each for each in attempts if first and each.method == first.name), None)
    if taken is not None and taken.command is not None:
        sentence = f"goes: {_action_text(taken.command)}"
        return replace(explained, outcome=NodeOutcome.GOES, sentence=sentence)
    if ways and ways[0].is_complete and not ways[0].changes:
        sentence = f"waits its turn: {ways[0].method} would take it, another command comes first"
        return replace(explained, outcome=NodeOutcome.WAITS, sentence=sentence)
    return replace(explained, sentence=f"stays: {_headline(explained)}")


def _attempt(method: DisruptionMethod, made: Proposal, node: Node) -> Attempt:
    return Attempt(
        method.name,
        next((each for each in made.refusals if each.node == node.name), None),
        next((each for each in made.commands if _includes(each, node)), None),
    )


def _object_name(node: Node) -> str:
    return node.name if node.node_record is None else node.node_record.name


def _includes(command: Command, node: Node) -> bool:
    return any(each.claim == node.claim for each in command.nodes)


def _action_text(command: Command) -> str:
    """Say what a command does, in a few words."""
    if command.is_reboot:
        return f"{command.method} reboots it"
    if not command.replacements:
        return f"{command.method} deletes it"
    return f"{command.method} replaces it"


def _why_deleting(node: Node, evaluation: Evaluation) -> str:
    claim = node.claim_record
    reason = None if claim is None else claim.conditions.get(DISRUPTION_REASON)
    why = f" ({reason.reason})" if reason is not None and reason.is_true else ""
    if not node.is_deleting:
        return f"goes: a disruption command is about it{why}"
    blocked, _ = why_not_pods(node, evaluation)
    held = "" if blocked is None else f"; its drain waits: {blocked.why.value} ({blocked.detail})"
    return f"is being deleted{why}{held}"


def _headline(explained: NodeExplanation) -> str:
    """Return why a node is kept: the first reason of its best way."""
    way = explained.way
    refusals = [each.refusal for each in explained.attempts if each.refusal is not None]
    if way is not None and way.first is not None:
        return way.first.why.value
    return refusals[0].why.value if refusals else NodeOutcome.STAYS.value


# --- ways ----------------------------------------------------------------------------------------


def _ways(snapshot: Snapshot, node: Node, attempts: Sequence[Attempt]) -> Iterator[Way]:
    """Find a way with each method that considers the node."""
    answers = {each.method: each.command or each.refusal for each in attempts}
    for method in METHODS:
        answer = answers.get(method.name)
        # Multi-node consolidation refuses a node for the same reasons as single-node consolidation.
        if answer is not None and method.name != MULTI_NODE:
            yield _find_way(method, snapshot, node, answer)


def _find_way(
    method: DisruptionMethod, snapshot: Snapshot, node: Node, answer: Command | NodeRefusal | None
) -> Way:
    """Remove one reason after the other until the method disrupts the node, or no change helps."""
    changes = list[ClusterChange]()
    if isinstance(answer, NodeRefusal) and answer.why is NodeReason.NOT_CONSIDERED:
        answer = _ask(method, snapshot, node)
    first = _examined(answer, snapshot, node) if isinstance(answer, NodeRefusal) else None
    while isinstance(answer, NodeRefusal):
        refused = RefusedNode(snapshot, _current(snapshot, node), answer, method.reason)
        lifted = lift(refused) if len(changes) < CHANGES_MAX else None
        if lifted is None:
            return replace(_blocked_way(method, refused, changes), first=first)
        changes.append(lifted.change)
        snapshot = lifted.snapshot
        answer = _ask(method, snapshot, node)
    outlook = _outlook(method, snapshot, node)
    return Way(method.name, tuple(changes), answer, first, outlook=outlook)


def _blocked_way(
    method: DisruptionMethod, refused: RefusedNode, changes: list[ClusterChange]
) -> Way:
    """Return a way whose last refusal no change removes, or only a change of its pods."""
    outlook = _outlook(method, refused.snapshot, refused.node)
    refused = replace(refused, refusal=_examined(refused.refusal, refused.snapshot, refused.node))
    if refused.refusal.why in _PLACES:
        for lifted in _placements_to_try(refused):
            answer = _ask(method, lifted.snapshot, refused.node)
            if isinstance(answer, Command):
                done = (*changes, lifted.change)
                return Way(method.name, done, answer, outlook=outlook)
    return Way(
        method.name,
        tuple(changes),
        wall=refused.refusal,
        advice=advice_on(refused),
        outlook=outlook,
    )


def _examined(refusal: NodeRefusal, snapshot: Snapshot, node: Node) -> NodeRefusal:
    """Return a refusal by consolidation with what `examine` finds at any price."""
    if refusal.method != SINGLE_NODE or refusal.why not in _PLACES:
        return refusal
    evaluation = Evaluation(snapshot)
    (candidate,) = find_candidates(evaluation, nodes=[_current(snapshot, node)]).candidates
    move = examine(candidate, evaluation)
    if move.why is None:
        return refusal
    return replace(
        refusal, why=move.why, detail=move.detail, pods=move.pods, replacement=move.replacement
    )


def _ask(method: DisruptionMethod, snapshot: Snapshot, node: Node) -> Command | NodeRefusal | None:
    """Ask a method about a node as if all other nodes were in commands."""
    others = frozenset(each.claim for each in snapshot.nodes if each.claim) - {node.claim}
    alone = replace(snapshot, in_command=snapshot.in_command | others)
    made = method.propose(Evaluation(alone))
    command = next((each for each in made.commands if _includes(each, node)), None)
    refusal = next((each for each in made.refusals if each.node == node.name), None)
    return command or refusal


def _placements_to_try(refused: RefusedNode) -> Iterator[Lifted]:
    """Yield changes after which the pods of a node may have a place."""
    for lifted in (lift_unsettled_nodes(refused), lift_preferences(refused)):
        if lifted is not None:
            yield lifted
    if refused.refusal.why is NodeReason.PODS_UNPLACED:
        yield without_pods(refused, refused.refusal.pods)
        return
    evaluation = Evaluation(refused.snapshot)
    found = find_candidates(evaluation, nodes=[refused.node]).candidates
    for candidate in found:
        blocking = _blocking_pods(candidate, evaluation)
        if blocking:
            yield without_pods(refused, blocking)


def _blocking_pods(candidate: Candidate, evaluation: Evaluation) -> tuple[str, ...]:
    """Return the fewest pods without which the other pods have a cheaper place."""
    pods = sorted(candidate.pods, key=lambda each: (-_share(each, candidate.node), each.key))
    for each in reversed(pods[-_ALONE_MAX:]):
        if _is_free_without((each,), candidate, evaluation):
            return (each.key,)
    for count in range(2, min(len(pods), _TOGETHER_MAX + 1)):
        if _is_free_without(pods[:count], candidate, evaluation):
            return tuple(each.key for each in pods[:count])
    return ()


def _is_free_without(gone: Sequence[Pod], candidate: Candidate, evaluation: Evaluation) -> bool:
    """Say whether the pods of a node have a cheaper place, if the pods in `gone` end."""
    left_out = {each.uid for each in gone}
    moved = [each for each in candidate.pods if each.uid not in left_out]
    found = evaluation.what_if.ask(
        {candidate.name},
        moved=moved,
        closed=evaluation.unsettled - {candidate.name},
        price_below=candidate.price,
        new_nodes_max=1,
        reserved_mode=ReservedMode.FALLBACK,
        keeps_places=True,
        is_crowded=True,
    )
    return not (found.unplaced or found.needs_more_nodes)


def _share(pod: Pod, node: Node) -> float:
    """Return the share of a node that a pod requests, of CPU or memory, whichever is more."""
    return max(
        pod.requests.get(name, 0) / (node.allocatable.get(name) or 1) for name in (CPU, MEMORY)
    )


def _outlook(method: DisruptionMethod, snapshot: Snapshot, node: Node) -> Outlook | None:
    """Return where the pods of a node would go at any price; None except for consolidation."""
    if method.name != SINGLE_NODE:
        return None
    evaluation = Evaluation(snapshot)
    found = find_candidates(evaluation, nodes=[_current(snapshot, node)]).candidates
    if not found or not found[0].pods:
        return None
    (candidate,) = found
    moves = Consolidation(evaluation, method.name, method.consolidation_type)
    places = moves.relocate([candidate], stops_early=False)
    best = [_best_option(each, evaluation) for each in places.launches]
    return Outlook(
        candidate.price,
        len(candidate.pods),
        places.nodes,
        len(places.launches),
        best[0] if len(best) == 1 else None,
        None if None in best else sum(each.price for each in best if each is not None),
        places.unplaced,
    )


def _best_option(launch: Launch, evaluation: Evaluation) -> LaunchOption | None:
    """Return the type of a launch that is cheapest in its dearest zone, at that price."""
    options = (
        replace(each, price=price)
        for each in launch.options
        if (price := evaluation.prices.least_worst(replace(launch, options=(each,)))) is not None
    )
    return min(options, key=lambda each: (each.price, each.instance_type), default=None)


def _current(snapshot: Snapshot, node: Node) -> Node:
    """Return a node as it is in a changed snapshot."""
    return next(each for each in snapshot.nodes if each.name == node.name)


def _smallest_first(way: Way) -> tuple[bool, int, int, int]:
    """Sort complete ways first, then by the number of manual changes, then of all changes."""
    by_hand = sum(not each.is_wait for each in way.changes)
    order = [each.name for each in METHODS].index(way.method)
    if way.is_complete:
        return False, by_hand, len(way.changes), order
    return True, _distance(way), by_hand, order


def _distance(way: Way) -> int:
    """Return how far an incomplete way is from a method that considers the node."""
    why = None if way.wall is None else way.wall.why
    if why in {NodeReason.NOT_DRIFTED, NodeReason.EMPTY, None}:
        return 3
    if why in {NodeReason.NOT_EMPTY, NodeReason.POOL_STATIC}:
        return 2
    return 1


# --- what else decides ---------------------------------------------------------------------------


def _allowances(node: Node, evaluation: Evaluation) -> Iterator[tuple[DisruptionReason, Allowance]]:
    """Yield the allowances of the reasons for which methods may disrupt a node."""
    if node.pool not in evaluation.pools or node.claim_record is None:
        return
    claim, pool = node.claim_record, evaluation.pools[node.pool]
    reasons = [DisruptionReason.DRIFTED] if claim.conditions.is_true(DRIFTED) else []
    if not pool.is_static:
        is_empty = not any(each.is_reschedulable for each in evaluation.pods_on(node))
        more = DisruptionReason.EMPTY if is_empty else DisruptionReason.UNDERUTILIZED
        reasons.append(more)
    for reason in reasons:
        yield reason, find_allowances(evaluation, reason).by_pool[node.pool]


def _unknown(node: Node, evaluation: Evaluation) -> Iterator[str]:
    """Yield what the answer about a node depends on but is missing from the snapshot."""
    claim = node.claim_record
    if claim is None and not node.pool:
        return
    if claim is None:
        yield (
            "its NodeClaim, without which no method is about it; its label says that NodePool"
            f" {node.pool} made it"
        )
    if claim is not None and node.is_initialized and not claim.conditions.items:
        yield f"the status of NodeClaim {claim.name}: nothing is known of Consolidatable or Drifted"
    if node.node_record is not None and node.is_initialized and not node.node_record.conditions:
        yield f"the status of Node {node.node_record.name}: it counts as not ready"
    if node.pool and node.pool not in evaluation.pools:
        yield f"NodePool {node.pool}, with its policy and budgets"
    pods = [each for each in evaluation.pods_on(node) if each.is_reschedulable]
    for budget in evaluation.snapshot.budgets:
        if budget.disruptions_allowed is None and any(map(budget.covers, pods)):
            yield f"the status of PodDisruptionBudget {budget.key}: it counts as allowing none"
    if node.pool in evaluation.pools and claim is not None and not evaluation.prices.of(node):
        yield "its price: the catalog does not have its instance type in its zone and capacity type"
