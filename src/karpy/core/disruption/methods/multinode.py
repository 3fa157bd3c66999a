"""Delete several nodes in use together, or replace them by one that is cheaper."""

from collections.abc import Sequence

from karpy.core.disruption.budgets import find_allowances, is_constrained
from karpy.core.disruption.candidates import Candidate, DisruptionClass, best_first
from karpy.core.disruption.consolidation import REASON, Consolidation, Move, find_eligible
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation, eligible_count
from karpy.core.disruption.moves import moved_counts, proposed_move, validate_move
from karpy.model.commands import Command

_LEAST = 2


class MultiNodeConsolidation:
    """Finds the longest run of nodes, best savings first, that can go together."""

    name = "multi-node-consolidation"
    reason = REASON
    consolidation_type = "multi"
    disruption_class = DisruptionClass.GRACEFUL
    is_validated = True

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Search the run by halving, over as many nodes as budgets allow."""
        eligible = find_eligible(evaluation, self.name)
        gauge = eligible_count(self, len(eligible.candidates))
        if not eligible.candidates:
            return Proposal((), eligible.refusals, eligible.notices, (gauge,), is_settled=True)
        allowances = find_allowances(evaluation, self.reason)
        chosen, spent = allowances.within(best_first(eligible.candidates), self.name)
        consolidation = Consolidation(evaluation, self.name, self.consolidation_type)
        move, nodes = self._longest(consolidation, chosen)
        return Proposal(
            () if move.command is None else (move.command,),
            (*eligible.refusals, *spent),
            (
                *eligible.notices,
                *allowances.notices,
                *proposed_move(move, nodes, consolidation, evaluation),
            ),
            (gauge, *allowances.counts, *moved_counts(move, nodes, consolidation)),
            allowances.remarks,
            is_settled=move.command is None and not is_constrained(spent),
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Keep the nodes that may still go, simulated again; some may be fewer than proposed."""
        return validate_move(self, command, evaluation, may_shrink=True)

    def _longest(
        self, consolidation: Consolidation, candidates: Sequence[Candidate]
    ) -> tuple[Move, Sequence[Candidate]]:
        best, nodes = Move(), candidates[:0]
        # Differs: Karpenter tries at most 100 nodes, and gives up after a minute.
        least, most = _LEAST, len(candidates)
        while least <= most:
            middle = (least + most) // 2
            move = consolidation.move(candidates[:middle])
            if move.command is None:
                most = middle - 1
            else:
                best, nodes, least = move, candidates[:middle], middle + 1
        return best, nodes
