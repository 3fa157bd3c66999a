"""Single-node consolidation: delete one node in use, or replace it by a cheaper one."""

from collections.abc import Collection, Iterator, Sequence

from karpy.core.disruption.budgets import Allowances, find_allowances
from karpy.core.disruption.candidates import Candidate, DisruptionClass, best_first, refuse
from karpy.core.disruption.consolidation import (
    REASON,
    SINGLE,
    SINGLE_NODE,
    Consolidation,
    Move,
    find_eligible,
    is_settled,
    move_notices,
    validate_move,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation, eligible_count
from karpy.core.lifecycle.changes import Count
from karpy.core.scheduling.effort import is_heavy
from karpy.model.commands import Command
from karpy.model.verdicts import NodeReason, NodeRefusal


class SingleNodeConsolidation:
    """Consolidates the first node that can go, NodePools in turn and best savings first."""

    name = SINGLE_NODE
    reason = REASON
    consolidation_type = SINGLE
    disruption_class = DisruptionClass.GRACEFUL
    is_validated = True

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Try the nodes that budgets allow until one can go; refuse all others."""
        eligible = find_eligible(evaluation, self.name)
        gauge = eligible_count(self, len(eligible.candidates))
        if not eligible.candidates:
            settled = is_settled(Move(), eligible.refusals)
            return Proposal((), eligible.refusals, eligible.notices, (gauge,), is_settled=settled)
        allowances = find_allowances(evaluation, self.reason)
        consolidation = Consolidation(evaluation, self.name, self.consolidation_type)
        turns = iter(_in_turn(eligible.candidates, evaluation.put_off))
        move, chosen, refused, counts = self._first(turns, consolidation, allowances)
        refused += [refuse(each, NodeReason.NOT_CONSIDERED, self.name) for each in turns]
        refusals = (*eligible.refusals, *refused)
        return Proposal(
            () if move.command is None else (move.command,),
            refusals,
            (
                *eligible.notices,
                *allowances.notices,
                *move_notices(move, chosen, consolidation, evaluation),
            ),
            (gauge, *allowances.counts, *counts),
            allowances.remarks,
            is_settled=is_settled(move, refusals),
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Keep the command if its node may still be disrupted, by the same kind of move."""
        return validate_move(self, command, evaluation, may_shrink=False)

    def _first(
        self, candidates: Iterator[Candidate], consolidation: Consolidation, allowances: Allowances
    ) -> tuple[Move, Sequence[Candidate], list[NodeRefusal], list[Count]]:
        refused, counts = list[NodeRefusal](), list[Count]()
        # Differs: single-node consolidation of many nodes: Karpenter stops after three minutes and
        # never tries some nodes; Karpy considers every node: thousands take a second or two.
        for each in candidates:
            if not allowances.by_pool[each.pool.name].remaining:
                refused.append(allowances.refusal_of(each, self.name))
                continue
            # If mere deletion scores too low for a Balanced pool, skip the search for places.
            move = consolidation.why_unprofitable(each) or consolidation.move((each,))
            counts += move.counts
            if move.command is not None:
                return move, (each,), refused, counts
            assert move.why is not None
            refused.append(
                refuse(
                    each,
                    move.why,
                    self.name,
                    move.detail,
                    pods=move.pods,
                    replacement=move.replacement,
                    score=move.score,
                )
            )
        return Move(), (), refused, counts


def _in_turn(candidates: Sequence[Candidate], put_off: Collection[str]) -> list[Candidate]:
    """
    Sort the best candidate of each NodePool first, then the second of each; NodePools by name.

    Nodes in `put_off` come before all others.
    """
    places: dict[str, int] = {}
    turns = []
    for each in best_first(candidates):
        place = places[each.pool.name] = places.get(each.pool.name, 0) + 1
        is_late = each.name not in put_off
        turns.append((is_late, is_heavy(each.pods), place, each.pool.name, each))
    # Nodes whose pods slow down the solver come last, so that time is left for all other nodes.
    turns.sort(key=lambda turn: turn[:4])
    return [turn[-1] for turn in turns]
