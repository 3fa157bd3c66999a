"""Consolidation of nodes in use: which are eligible, what replaces them, what that saves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.budgets import find_allowances, is_constrained
from karpy.core.disruption.candidates import (
    Candidate,
    as_command_node,
    candidate_notices,
    find_candidates,
    refuse,
    rejected_notices,
    subjects_of,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import DisruptionMethod, Validation, existing_nodes
from karpy.core.lifecycle.changes import Count
from karpy.core.lifecycle.conditions import CONSOLIDATABLE
from karpy.core.scheduling.whatif import Relocation
from karpy.model.commands import Command, Replacement
from karpy.model.kinds import NODE_POOL
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.nodes import Node
from karpy.model.notices import Notice, Subject
from karpy.model.pools import ConsolidationPolicy, DisruptionReason
from karpy.model.requirements import Requirements, merge, one_of
from karpy.model.settings import ReservedMode
from karpy.model.verdicts import Launch, NodeReason, NodeRefusal

REASON: Final = DisruptionReason.UNDERUTILIZED
SINGLE_NODE: Final = "single-node-consolidation"
SINGLE: Final = "single"
"""The label `consolidation_type` of metrics."""
SPOT_TYPES_MIN: Final = 15
"""Cheaper spot types that must be available before a spot node is replaced by a spot node."""
_SPOT_ONLY: Final[Requirements] = {CAPACITY_TYPE: one_of(CAPACITY_TYPE, SPOT)}
_ON_DEMAND_ONLY: Final[Requirements] = {CAPACITY_TYPE: one_of(CAPACITY_TYPE, ON_DEMAND)}
_TEMPORARY: Final = frozenset(
    {
        NodeReason.BUDGET_SPENT,
        NodeReason.NOMINATED,
        NodeReason.OUT_OF_TIME,
        NodeReason.ROLLOUT,
        NodeReason.SCALING_OUT,
    }
)
"""Reasons that end by themselves, while the rest of the cluster stays the same."""
BALANCE_K: Final = 2
"""A move may disrupt at most this many times the share of the pods that it saves of the price."""
BALANCE_THRESHOLD: Final = Fraction(1, BALANCE_K)


class Eligible(Struct, frozen=True, gc=False):
    """Nodes in use that may be consolidated, and a refusal for every other node."""

    candidates: tuple[Candidate, ...] = ()
    refusals: tuple[NodeRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()


class Move(Struct, frozen=True, gc=False):
    """The result of consolidating some candidates together: a command, or why there is none."""

    command: Command | None = None
    why: NodeReason | None = None
    detail: str = ""
    pods: tuple[str, ...] = ()
    """Pods without another place."""
    replacement: int | None = None
    """The price of the cheapest replacement found, in micro-dollars per hour."""
    saving: int | None = None
    """What that replacement, or the deletion, saves; 0 or less is no saving."""
    score: Fraction | None = None
    counts: tuple[Count, ...] = ()
    """The metrics of the move and its score."""


def find_eligible(
    evaluation: Evaluation, method: str, nodes: Iterable[Node] | None = None
) -> Eligible:
    """Find the nodes in use, among all nodes by default, that may be consolidated."""
    found = find_candidates(evaluation, nodes=nodes)
    eligible, refusals = [], [*found.refusals]
    for each in found.candidates:
        refusal = _why_not(each, evaluation, method)
        if refusal is None:
            eligible.append(each)
        else:
            refusals.append(refusal)
    return Eligible(tuple(eligible), tuple(refusals), found.notices)


def _why_not(candidate: Candidate, evaluation: Evaluation, method: str) -> NodeRefusal | None:
    """Say why a candidate is not eligible for consolidation; None if it is."""
    pool, labels = candidate.pool, candidate.node.labels
    if pool.is_static:
        return refuse(candidate, NodeReason.POOL_STATIC, method)
    if evaluation.prices.type_of(candidate.node) is None:
        detail = labels.get(INSTANCE_TYPE, "")
        return refuse(candidate, NodeReason.TYPE_UNKNOWN, method, detail)
    for label in (CAPACITY_TYPE, ZONE):
        if label not in labels:
            return refuse(candidate, NodeReason.LABEL_MISSING, method, label)
    if pool.policy.consolidate_after is None:
        return refuse(candidate, NodeReason.CONSOLIDATION_DISABLED, method)
    if candidate.is_empty:
        return refuse(candidate, NodeReason.EMPTY, method)
    if pool.policy.consolidation is ConsolidationPolicy.WHEN_EMPTY:
        return refuse(candidate, NodeReason.WHEN_EMPTY_ONLY, method)
    if not candidate.claim.conditions.is_true(CONSOLIDATABLE):
        until = evaluation.consolidatable_at(candidate.node)
        return refuse(candidate, NodeReason.NOT_QUIET, method, until=until)
    return _why_not_now(candidate, evaluation, method)


def _why_not_now(candidate: Candidate, evaluation: Evaluation, method: str) -> NodeRefusal | None:
    """Say why the pods of a candidate should not move now; None if they may."""
    if evaluation.is_scaling_out:
        return refuse(candidate, NodeReason.SCALING_OUT, method)
    replaced = evaluation.first_in_rollout(candidate.pods)
    if replaced is None:
        return None
    return refuse(candidate, NodeReason.ROLLOUT, method, replaced.key, pods=(replaced.key,))


def is_settled(move: Move, refusals: Iterable[NodeRefusal]) -> bool:
    """Say whether a method finds no command now, nor until the cluster changes."""
    return move.command is None and not any(each.why in _TEMPORARY for each in refusals)


def examine(candidate: Candidate, evaluation: Evaluation) -> Move:
    """
    Return the move of one candidate in more detail, for `karpy explain`.

    If no cheaper node has room for its pods, places are searched again at any price: the move then
    names every pod without a place, or the price of the best replacement.
    """
    consolidation = Consolidation(evaluation, SINGLE_NODE, SINGLE)
    move = consolidation.move([candidate])
    if move.why not in {NodeReason.NOT_CHEAPER, NodeReason.NEEDS_MORE_NODES}:
        return move
    found = consolidation.relocate([candidate], stops_early=False)
    if found.unplaced:
        pods = tuple(each.partition(": ")[0] for each in found.unplaced)
        return Move(why=NodeReason.PODS_UNPLACED, detail=found.unplaced[0], pods=pods)
    prices = [evaluation.prices.least_worst(each) or 0 for each in found.launches]
    is_one = len(prices) == 1
    return Move(
        why=NodeReason.NOT_CHEAPER if is_one else NodeReason.NEEDS_MORE_NODES,
        detail="" if is_one else str(len(prices)),
        replacement=sum(prices),
        saving=candidate.price - sum(prices),
    )


class Consolidation:
    """Searches for moves on one snapshot."""

    def __init__(self, evaluation: Evaluation, method: str, consolidation_type: str) -> None:
        self._evaluation = evaluation
        self._method = method
        self._type = consolidation_type
        self.balance = Balance(evaluation)

    def move(self, candidates: Sequence[Candidate]) -> Move:
        """Delete candidates together, or replace them by one cheaper node."""
        price = sum(each.price for each in candidates)
        found = self.relocate(candidates, price)
        if any(each.is_min_values_relaxed for each in found.launches):
            # Search at any price: few types below the price are no reason to relax minValues.
            found = self.relocate(candidates)
        if found.is_out_of_time:
            return Move(why=NodeReason.OUT_OF_TIME)
        why = _why_no_place(found)
        if why is not None:
            return why
        if not found.launches:
            return self._approved(candidates, found)
        (launch,) = found.launches
        return self._replaced(candidates, found, launch, price)

    def relocate(
        self,
        candidates: Sequence[Candidate],
        price_below: int | None = None,
        *,
        stops_early: bool = True,
    ) -> Relocation:
        """
        Find places for the pods of candidates: on other nodes, and on one new node at most.

        With `stops_early` False, all pods are placed, on any number of new nodes.
        """
        gone = {each.name for each in candidates}
        return self._evaluation.what_if.ask(
            gone,
            closed=self._evaluation.unsettled - gone,
            price_below=price_below,
            new_nodes_max=1 if stops_early else None,
            reserved_mode=ReservedMode.FALLBACK,
            stops_early=stops_early,
            keeps_places=True,
            is_crowded=True,
        )

    def _replaced(
        self, candidates: Sequence[Candidate], found: Relocation, launch: Launch, price: int
    ) -> Move:
        prices = self._evaluation.prices
        is_spot = all(each.node.labels.get(CAPACITY_TYPE) == SPOT for each in candidates)
        if is_spot and _allows(launch.requirements, SPOT):
            return self._spot_to_spot(candidates, found, launch, price)
        cheaper = prices.cheaper(launch, price)
        allows_both = _allows(launch.requirements, ON_DEMAND) and _allows(launch.requirements, SPOT)
        if cheaper is not None and allows_both:
            cheaper = self._of_one_capacity_type(cheaper, price)
        if cheaper is None:
            return _refused_move(NodeReason.NOT_CHEAPER, launch, price)
        return self._approved(candidates, found, cheaper)

    def _of_one_capacity_type(self, launch: Launch, price: int) -> Launch | None:
        """Restrict a launch to spot, or else to on-demand, so that its price is certain."""
        # Prices were compared as spot; an on-demand launch might cost more than the candidates.
        # Differs: a replacement that may be spot or on-demand while no spot capacity is on sale:
        # Karpenter launches spot and fails; Karpy launches on-demand if that is also cheaper.
        prices = self._evaluation.prices
        spot = prices.cheaper(launch, price, merge(launch.requirements, _SPOT_ONLY))
        return spot or prices.cheaper(launch, price, merge(launch.requirements, _ON_DEMAND_ONLY))

    def _spot_to_spot(
        self, candidates: Sequence[Candidate], found: Relocation, launch: Launch, price: int
    ) -> Move:
        evaluation = self._evaluation
        if not evaluation.snapshot.settings.spot_to_spot_consolidation:
            return _refused_move(NodeReason.SPOT_TO_SPOT_DISABLED, launch, price)
        requirements = merge(launch.requirements, _SPOT_ONLY)
        cheaper = evaluation.prices.cheaper(launch, price, requirements)
        if cheaper is None:
            return _refused_move(NodeReason.NOT_CHEAPER, launch, price)
        if len(candidates) == 1:
            if len(cheaper.options) < SPOT_TYPES_MIN:
                detail = str(len(cheaper.options))
                return _refused_move(NodeReason.SPOT_TO_SPOT_TYPES, cheaper, price, detail)
            # With more types the node might be launched as a dear one, and soon be replaced again.
            cheaper = self._cheapest_spot(cheaper)
        return self._approved(candidates, found, cheaper)

    def _cheapest_spot(self, launch: Launch) -> Launch:
        """Keep the cheapest types: `SPOT_TYPES_MIN`, or as many as minValues need."""
        prices, most = self._evaluation.prices, SPOT_TYPES_MIN
        while prices.lacks_variety(launch, launch.options[:most]) and most < len(launch.options):
            most += 1
        return replace(launch, options=launch.options[:most])

    def _approved(
        self, candidates: Sequence[Candidate], found: Relocation, launch: Launch | None = None
    ) -> Move:
        if launch is not None and len(candidates) > 1:
            launch = self._below_same_type(candidates, launch)
            if launch is None:
                return Move(why=NodeReason.NOT_CHEAPER)
        command = Command(
            self._method,
            REASON,
            tuple(as_command_node(each) for each in candidates),
            () if launch is None else (Replacement(launch),),
            found.nodes,
            consolidation_type=self._type,
            proposed=self._evaluation.now,
        )
        return self._weighed(Move(command, saving=command.savings), candidates)

    def why_unprofitable(self, candidate: Candidate) -> Move | None:
        """Return the refused move of a candidate whose mere deletion saves too little, or None."""
        weighed = self._weighed(Move(saving=candidate.price), [candidate])
        return None if weighed.why is None else weighed

    def _weighed(self, move: Move, candidates: Sequence[Candidate]) -> Move:
        """Score a move in the Balanced NodePools of its candidates; approve or refuse it."""
        assert move.saving is not None
        scores = self.balance.scores(candidates, move.saving)
        score = min(scores.values(), default=None)
        is_approved = score is None or self.balance.is_approved(score)
        return replace(
            move,
            command=move.command if is_approved else None,
            why=None if is_approved else NodeReason.SCORE_TOO_LOW,
            replacement=sum(each.price for each in candidates) - move.saving,
            score=score,
            counts=tuple(self.balance.counts(candidates, scores)),
        )

    def _below_same_type(self, candidates: Sequence[Candidate], launch: Launch) -> Launch | None:
        """Keep types cheaper than the cheapest candidate whose type is among the replacement's."""
        types = {each.instance_type for each in launch.options}
        same = [each.price for each in candidates if each.node.labels.get(INSTANCE_TYPE) in types]
        return launch if not same else self._evaluation.prices.cheaper(launch, min(same))


def _why_no_place(found: Relocation) -> Move | None:
    if found.needs_more_nodes:
        return Move(why=NodeReason.NEEDS_MORE_NODES, detail="2")
    if found.unplaced:
        pods = tuple(each.partition(": ")[0] for each in found.unplaced)
        return Move(why=NodeReason.NOT_CHEAPER, detail=found.unplaced[0], pods=pods)
    return None


def _refused_move(why: NodeReason, launch: Launch, price: int, detail: str = "") -> Move:
    """Return a move whose replacement is not launched, with its price."""
    return Move(why=why, detail=detail, replacement=launch.price, saving=price - launch.price)


def _allows(requirements: Requirements, capacity_type: str) -> bool:
    allowed = requirements.get(CAPACITY_TYPE)
    return allowed is None or capacity_type in allowed


def options_of(launches: Iterable[Launch]) -> frozenset[str]:
    """Return the instance types that launches may become."""
    return frozenset(option.instance_type for launch in launches for option in launch.options)


class Balance:
    """Scores moves by the price of each NodePool and the cost of moving all its pods."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._totals: dict[str, tuple[int, int]] = {}

    def scores(self, candidates: Sequence[Candidate], savings: int) -> Mapping[str, Fraction]:
        """Score a move in each Balanced NodePool of its candidates."""
        scores = {}
        for pool in _pools_of(candidates):
            if self._is_balanced(pool):
                own = [each for each in candidates if each.pool.name == pool]
                total_price, total_cost = self._total(pool)
                cost = sum(each.moving_cost for each in own)
                saved = savings * _share(own, candidates)
                scores[pool] = _score(saved, cost, total_price, total_cost)
        return scores

    def is_approved(self, score: Fraction) -> bool:
        """Say whether a score reaches the threshold."""
        return score >= BALANCE_THRESHOLD

    def counts(
        self, candidates: Sequence[Candidate], scores: Mapping[str, Fraction]
    ) -> Iterator[Count]:
        """Yield the metrics of a move for each of its NodePools; scores for Balanced ones."""
        for pool in _pools_of(candidates):
            score = scores.get(pool)
            is_approved = score is None or self.is_approved(score)
            labels = {
                "decision": "approved" if is_approved else "rejected",
                "nodepool": pool,
                "policy": self._evaluation.pools[pool].policy.consolidation.value,
            }
            yield Count("consolidation_moves_total", labels)
            if score is not None:
                yield Count("consolidation_score", labels, float(score))

    def notices(self, command: Command, candidates: Sequence[Candidate]) -> Iterator[Notice]:
        """Yield the events of an approved move: on a single node, or else on NodePools."""
        for pool, score in self.scores(candidates, command.savings).items():
            note = self._note(pool, score, candidates, command.savings)
            for subject in self._subjects(pool, candidates):
                yield Notice(subject, "ConsolidationApproved", note, same_as=(subject.uid,))

    def _note(
        self, pool: str, score: Fraction, candidates: Sequence[Candidate], savings: int
    ) -> str:
        total_price, total_cost = self._total(pool)
        own = [each for each in candidates if each.pool.name == pool]
        cost = sum(each.moving_cost for each in own)
        saved = savings * _share(own, candidates) / total_price
        return (
            f"score {float(score):.2f} >= threshold {float(BALANCE_THRESHOLD):.2f} (k: {BALANCE_K},"
            f" savings {float(saved):.1%}, disruption {cost / total_cost:.1%})"
        )

    def _subjects(self, pool: str, candidates: Sequence[Candidate]) -> list[Subject]:
        if len(candidates) == 1:
            return subjects_of(candidates[0].node)
        record = self._evaluation.pools[pool].record
        return [Subject(NODE_POOL, pool, uid="" if record is None else record.meta.uid)]

    def _is_balanced(self, pool: str) -> bool:
        policy = self._evaluation.pools[pool].policy
        return policy.consolidation is ConsolidationPolicy.BALANCED

    def _total(self, pool: str) -> tuple[int, int]:
        """Return the price of all nodes of a pool, and the cost of moving all their pods."""
        if pool not in self._totals:
            evaluation = self._evaluation
            nodes = [each for each in evaluation.snapshot.nodes if each.pool == pool and each.claim]
            cost = sum(evaluation.reschedulable_on(node)[1] for node in nodes)
            self._totals[pool] = evaluation.prices.total(nodes), cost
        return self._totals[pool]


def _pools_of(candidates: Sequence[Candidate]) -> list[str]:
    return sorted({each.pool.name for each in candidates})


def _share(own: Sequence[Candidate], candidates: Sequence[Candidate]) -> Fraction:
    """Return the share of `own` in the price of all candidates."""
    price = sum(each.price for each in candidates)
    return Fraction(sum(each.price for each in own), price) if price else Fraction(0)


def _score(savings: Fraction, cost: int, total_price: int, total_cost: int) -> Fraction:
    """Divide the saved share of the pool's price by the share of its pods that move, by cost."""
    if savings <= 0 or not total_price or not total_cost:
        return Fraction(0)
    return (savings / total_price) / Fraction(cost, total_cost)


def move_notices(
    move: Move,
    candidates: Sequence[Candidate],
    consolidation: Consolidation,
    evaluation: Evaluation,
) -> Iterator[Notice]:
    """Yield the events of a move."""
    if move.command is not None:
        yield from candidate_notices(move.command, evaluation)
        yield from consolidation.balance.notices(move.command, candidates)


def validate_move(
    method: DisruptionMethod, command: Command, evaluation: Evaluation, *, may_shrink: bool
) -> Validation:
    """
    Validate a consolidation command.

    A command is kept if all its nodes may still be disrupted and their pods still have places in
    the same way. If only some nodes may, and `may_shrink`, the move is computed again for these.
    """
    nodes, gone = existing_nodes(command, evaluation)
    eligible = find_eligible(evaluation, method.name, nodes)
    valid = {each.claim.name: each for each in eligible.candidates}
    in_order = [valid[each.claim] for each in command.nodes if each.claim in valid]
    chosen, spent = find_allowances(evaluation, method.reason).within(in_order, method.name)
    refusals = (*gone, *eligible.refusals, *spent)
    consolidation = Consolidation(evaluation, method.name, method.consolidation_type)
    if len(chosen) == len(command.nodes):
        # Differs: validation of a consolidation command: Karpenter searches places at any price,
        # and may carry out a command whose replacement is no longer cheaper; Karpy compares prices
        # again.
        found = consolidation.relocate(chosen, sum(each.price for each in chosen))
        why = _why_changed(command, found)
        if why is None:
            kept = tuple(as_command_node(each) for each in chosen)
            return Validation(replace(command, nodes=kept, nominated=found.nodes))
        refusals = (*refusals, *_changed_refusals(chosen, command, why))
        return _rejected(command, refusals, "scheduling", evaluation)
    if chosen and may_shrink:
        # Differs: a multi-node command with a node that has changed before validation: Karpenter
        # abandons the command; Karpy computes the move again for the other nodes, because they can
        # still be disrupted.
        move = consolidation.move(chosen)
        if move.command is not None:
            again = replace(
                move.command, id=command.id, proposed=command.proposed, stage=command.stage
            )
            return Validation(again, refusals)
        refusals = (
            *refusals,
            *_changed_refusals(chosen, command, f"without the others {_reason_text(move)}"),
        )
    return _rejected(command, refusals, "budget" if is_constrained(spent) else "churn", evaluation)


def out_of_time(command: Command, evaluation: Evaluation) -> Validation:
    """Abandon a command whose validation ran out of time."""
    refusals = tuple(
        NodeRefusal(NodeReason.OUT_OF_TIME, each.node, method=command.method)
        for each in command.nodes
    )
    given_up = _rejected(command, refusals, "scheduling", evaluation)
    return replace(given_up, is_complete=False)


def _why_changed(command: Command, found: Relocation) -> str | None:
    """Say how the places of the pods differ from those of the command; None if they do not."""
    if found.unplaced:
        return found.unplaced[0]
    expected = len(command.replacements)
    if found.needs_more_nodes or len(found.launches) != expected:
        needed = "more" if found.needs_more_nodes else len(found.launches)
        return f"{expected} new nodes were expected, and {needed} are needed"
    asked = options_of(each.launch for each in command.replacements)
    if not asked <= options_of(found.launches):
        return "the pods need another instance type by now"
    return None


def _reason_text(move: Move) -> str:
    assert move.why is not None
    return move.why.value


def _changed_refusals(
    candidates: Sequence[Candidate], command: Command, why: str
) -> list[NodeRefusal]:
    return [NodeRefusal(NodeReason.CHANGED, each.name, why, command.method) for each in candidates]


def _rejected(
    command: Command, refusals: tuple[NodeRefusal, ...], why: str, evaluation: Evaluation
) -> Validation:
    return Validation(None, refusals, why, tuple(rejected_notices(command, why, evaluation)))
