"""Delete one node in use, or replace it by one that is cheaper."""

from collections.abc import Iterator, Sequence

from karpy.core.disruption.budgets import Allowances, find_allowances, is_constrained
from karpy.core.disruption.candidates import Candidate, DisruptionClass, best_first, refuse
from karpy.core.disruption.consolidation import REASON, Consolidation, Move, find_eligible
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation, eligible_count
from karpy.core.disruption.moves import moved_counts, proposed_move, validate_move
from karpy.model.commands import Command
from karpy.model.refusals import NodeReason, NodeRefusal


class SingleNodeConsolidation:
    """Finds the first node that can go, the NodePools in turn and best savings first."""

    name = "single-node-consolidation"
    reason = REASON
    consolidation_type = "single"
    disruption_class = DisruptionClass.GRACEFUL
    is_validated = True

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Try each node that budgets allow until one can go; each other one gets its refusal."""
        eligible = find_eligible(evaluation, self.name)
        gauge = eligible_count(self, len(eligible.candidates))
        if not eligible.candidates:
            return Proposal((), eligible.refusals, eligible.notices, (gauge,), is_settled=True)
        allowances = find_allowances(evaluation, self.reason)
        consolidation = Consolidation(evaluation, self.name, self.consolidation_type)
        turns = iter(_in_turn(eligible.candidates))
        move, chosen, refused = self._first(turns, consolidation, allowances)
        refused += [refuse(each, NodeReason.NOT_CONSIDERED, self.name) for each in turns]
        return Proposal(
            () if move.command is None else (move.command,),
            (*eligible.refusals, *refused),
            (
                *eligible.notices,
                *allowances.notices,
                *proposed_move(move, chosen, consolidation, evaluation),
            ),
            (gauge, *allowances.counts, *moved_counts(move, chosen, consolidation)),
            allowances.remarks,
            is_settled=move.command is None and not is_constrained(refused),
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Keep the command if its node may still go, by the same kind of move."""
        return validate_move(self, command, evaluation, may_shrink=False)

    def _first(
        self, candidates: Iterator[Candidate], consolidation: Consolidation, allowances: Allowances
    ) -> tuple[Move, Sequence[Candidate], list[NodeRefusal]]:
        refused = list[NodeRefusal]()
        # Differs: Karpenter gives up after three minutes, with some nodes never tried.
        for each in candidates:
            if not allowances.by_pool[each.pool.name].remaining:
                refused.append(allowances.refusal_of(each, self.name))
                continue
            move = self._try(each, consolidation)
            if move.command is not None:
                return move, (each,), refused
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
        return Move(), (), refused

    def _try(self, candidate: Candidate, consolidation: Consolidation) -> Move:
        """Find the move of one node; a Balanced pool that would refuse its deletion ends it."""
        score = consolidation.balance.lowest_score((candidate,), candidate.price)
        if score is not None and not consolidation.balance.is_approved(score):
            return Move(why=NodeReason.SCORE_TOO_LOW, replacement=0, score=score)
        return consolidation.move((candidate,))


def _in_turn(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Take the best candidate of each NodePool, then the second of each; NodePools by name."""
    places: dict[str, int] = {}
    turns = []
    for each in best_first(candidates):
        place = places[each.pool.name] = places.get(each.pool.name, 0) + 1
        turns.append((place, each.pool.name, each))
    turns.sort(key=lambda turn: turn[:2])
    return [each for _, _, each in turns]
