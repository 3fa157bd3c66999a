"""Nodes in use that go to save money: which may, what replaces them, and whether that pays."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.balance import Balance
from karpy.core.disruption.candidates import Candidate, as_command_node, find_candidates, refuse
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.lifecycle.conditions import CONSOLIDATABLE
from karpy.core.scheduling.whatif import Relocation
from karpy.model.commands import Command, Replacement
from karpy.model.disruption import ConsolidationPolicy, DisruptionReason
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.nodes import Node
from karpy.model.notices import Notice
from karpy.model.refusals import NodeReason, NodeRefusal
from karpy.model.requirement import one_of
from karpy.model.requirements import Requirements, merge
from karpy.model.settings import ReservedMode
from karpy.model.verdicts import Launch

REASON: Final = DisruptionReason.UNDERUTILIZED
SPOT_TYPES_MIN: Final = 15
"""A single spot node is replaced by a spot node only if so many cheaper types could be that."""
_SPOT_ONLY: Final[Requirements] = {CAPACITY_TYPE: one_of(CAPACITY_TYPE, SPOT)}


class Eligible(Struct, frozen=True, gc=False):
    """Nodes in use that may be consolidated, and a refusal for every other one."""

    candidates: tuple[Candidate, ...] = ()
    refusals: tuple[NodeRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()


class Move(Struct, frozen=True, gc=False):
    """What becomes of some candidates together: a command, or why there is none."""

    command: Command | None = None
    why: NodeReason | None = None
    detail: str = ""
    pods: tuple[str, ...] = ()
    """Pods that find no place."""
    replacement: int | None = None
    """What the cheapest replacement costs that was found, in micro-dollars per hour."""
    score: Fraction | None = None


def find_eligible(
    evaluation: Evaluation, method: str, nodes: Iterable[Node] | None = None
) -> Eligible:
    """Sort nodes, by default all, into those in use that may be consolidated and all others."""
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
    """Say why a candidate takes no part in consolidation; None if it does."""
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
        until = evaluation.quiet_at(candidate.node)
        return refuse(candidate, NodeReason.NOT_QUIET, method, until=until)
    return _why_not_now(candidate, evaluation, method)


def _why_not_now(candidate: Candidate, evaluation: Evaluation, method: str) -> NodeRefusal | None:
    """Say why the pods of a candidate should not move at this moment; None if they may."""
    if evaluation.is_scaling_out:
        return refuse(candidate, NodeReason.SCALING_OUT, method)
    replaced = evaluation.in_rollout(candidate.pods)
    if replaced is None:
        return None
    return refuse(candidate, NodeReason.ROLLOUT, method, replaced.key, pods=(replaced.key,))


class Consolidation:
    """Finds moves on one snapshot."""

    def __init__(self, evaluation: Evaluation, method: str, consolidation_type: str) -> None:
        self._evaluation = evaluation
        self._method = method
        self._type = consolidation_type
        self.balance = Balance(evaluation)

    def move(self, candidates: Sequence[Candidate]) -> Move:
        """Delete candidates together, or replace them by one node that is cheaper."""
        price = sum(each.price for each in candidates)
        found = self.relocate(candidates, price)
        why = _why_no_place(found)
        if why is not None:
            return why
        if not found.launches:
            return self._approved(candidates, found)
        (launch,) = found.launches
        return self._replaced(candidates, found, launch, price)

    def relocate(
        self, candidates: Sequence[Candidate], price_below: int | None = None
    ) -> Relocation:
        """Ask where the pods of candidates go: to other nodes, and to one new node at most."""
        gone = {each.name for each in candidates}
        return self._evaluation.what_if.ask(
            gone,
            closed=self._evaluation.unsettled - gone,
            price_below=price_below,
            new_nodes_max=1,
            reserved_mode=ReservedMode.FALLBACK,
        )

    def _replaced(
        self, candidates: Sequence[Candidate], found: Relocation, launch: Launch, price: int
    ) -> Move:
        prices, cheapest = self._evaluation.prices, launch.price
        is_spot = all(each.node.labels.get(CAPACITY_TYPE) == SPOT for each in candidates)
        if is_spot and _allows(launch.requirements, SPOT):
            return self._spot_to_spot(candidates, found, launch, price)
        cheaper = prices.cheaper(launch, price)
        allows_both = _allows(launch.requirements, ON_DEMAND) and _allows(launch.requirements, SPOT)
        if cheaper is not None and allows_both:
            # The comparison was with spot prices; a launch on demand might cost more.
            cheaper = prices.cheaper(cheaper, price, merge(launch.requirements, _SPOT_ONLY))
        if cheaper is None:
            return Move(why=NodeReason.NOT_CHEAPER, replacement=cheapest)
        return self._approved(candidates, found, cheaper)

    def _spot_to_spot(
        self, candidates: Sequence[Candidate], found: Relocation, launch: Launch, price: int
    ) -> Move:
        evaluation = self._evaluation
        if not evaluation.snapshot.settings.spot_to_spot_consolidation:
            return Move(why=NodeReason.SPOT_TO_SPOT_DISABLED, replacement=launch.price)
        requirements = merge(launch.requirements, _SPOT_ONLY)
        cheaper = evaluation.prices.cheaper(launch, price, requirements)
        if cheaper is None:
            return Move(why=NodeReason.NOT_CHEAPER, replacement=launch.price)
        if len(candidates) == 1:
            if len(cheaper.options) < SPOT_TYPES_MIN:
                detail = str(len(cheaper.options))
                return Move(
                    why=NodeReason.SPOT_TO_SPOT_TYPES, detail=detail, replacement=cheaper.price
                )
            # Of more types a cheaper one would soon be found, and the node be replaced again.
            cheaper = self._cheapest_spot(cheaper)
        return self._approved(candidates, found, cheaper)

    def _cheapest_spot(self, launch: Launch) -> Launch:
        """Keep the cheapest types, as many as spot to spot asks for, or minValues."""
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
        score = self.balance.lowest_score(candidates, command.savings)
        cost = 0 if launch is None else launch.price
        if score is not None and not self.balance.is_approved(score):
            return Move(why=NodeReason.SCORE_TOO_LOW, replacement=cost, score=score)
        return Move(command, replacement=cost, score=score)

    def _below_same_type(self, candidates: Sequence[Candidate], launch: Launch) -> Launch | None:
        """Keep types that cost less than the cheapest candidate of a type the replacement has."""
        types = {each.instance_type for each in launch.options}
        same = [each.price for each in candidates if each.node.labels.get(INSTANCE_TYPE) in types]
        return launch if not same else self._evaluation.prices.cheaper(launch, min(same))


def _why_no_place(found: Relocation) -> Move | None:
    if found.needs_more_nodes:
        return Move(why=NodeReason.NEEDS_MORE_NODES, detail="2")
    if found.homeless:
        pods = tuple(each.partition(": ")[0] for each in found.homeless)
        return Move(why=NodeReason.NOT_CHEAPER, detail=found.homeless[0], pods=pods)
    return None


def _allows(requirements: Requirements, capacity_type: str) -> bool:
    allowed = requirements.get(CAPACITY_TYPE)
    return allowed is None or capacity_type in allowed


def options_of(launches: Iterable[Launch]) -> frozenset[str]:
    """Return the instance types that launches may become."""
    return frozenset(option.instance_type for launch in launches for option in launch.options)
