"""Delete several nodes in use together, or replace them by one that is cheaper."""

from collections.abc import Sequence
from typing import Final

from karpy.core.disruption.budgets import find_allowances
from karpy.core.disruption.candidates import Candidate, DisruptionClass, best_first, refuse
from karpy.core.disruption.consolidation import (
    REASON,
    Consolidation,
    Move,
    find_eligible,
    is_settled,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation, eligible_count
from karpy.core.disruption.moves import proposed_move, validate_move
from karpy.core.lifecycle.changes import Count
from karpy.model.commands import Command
from karpy.model.refusals import NodeReason

_LEAST: Final = 2
_MORE_MAX: Final = 4
"""How many nodes behind the run are tried one by one: fewer than the search has tried."""


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
            settled = is_settled(Move(), eligible.refusals)
            return Proposal((), eligible.refusals, eligible.notices, (gauge,), is_settled=settled)
        allowances = find_allowances(evaluation, self.reason)
        chosen, spent = allowances.within(best_first(eligible.candidates), self.name)
        consolidation = Consolidation(evaluation, self.name, self.consolidation_type)
        move, nodes, counts = self._longest(consolidation, chosen)
        refusals = [*eligible.refusals, *spent]
        if move.command is not None:
            kept = (each for each in chosen if each not in nodes)
            refusals += [refuse(each, NodeReason.NOT_CONSIDERED, self.name) for each in kept]
        return Proposal(
            () if move.command is None else (move.command,),
            tuple(refusals),
            (
                *eligible.notices,
                *allowances.notices,
                *proposed_move(move, nodes, consolidation, evaluation),
            ),
            (gauge, *allowances.counts, *counts),
            allowances.remarks,
            is_settled=is_settled(move, refusals),
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Keep the nodes that may still go, simulated again; some may be fewer than proposed."""
        return validate_move(self, command, evaluation, may_shrink=True)

    def _longest(
        self, consolidation: Consolidation, candidates: Sequence[Candidate]
    ) -> tuple[Move, Sequence[Candidate], tuple[Count, ...]]:
        """Return the move of the most candidates, and what metrics count of the search."""
        best, nodes, counts = Move(), candidates[:0], tuple[Count, ...]()
        # Differs: Karpenter tries at most 100 nodes, and gives up after a minute.
        least, most = _LEAST, len(candidates)
        while least <= most:
            middle = (least + most) // 2
            move = consolidation.move(candidates[:middle])
            counts = move.counts or counts
            if move.command is None:
                most = middle - 1
            else:
                best, nodes, least = move, candidates[:middle], middle + 1
        if best.command is not None:
            best, nodes = self._with_more(consolidation, best, nodes, candidates[least:])
        return best, nodes, best.counts or counts

    def _with_more(
        self,
        consolidation: Consolidation,
        best: Move,
        nodes: Sequence[Candidate],
        rest: Sequence[Candidate],
    ) -> tuple[Move, Sequence[Candidate]]:
        """Add candidates that can go, too, although one before them cannot."""
        # Differs: Karpenter ends the run at the first node that cannot go.
        for each in rest[:_MORE_MAX]:
            move = consolidation.move([*nodes, each])
            if _saves(move) > _saves(best):
                best, nodes = move, [*nodes, each]
        return best, nodes


def _saves(move: Move) -> int:
    return 0 if move.command is None else move.command.savings
