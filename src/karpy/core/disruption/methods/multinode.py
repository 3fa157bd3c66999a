"""Multi-node consolidation: delete nodes together, or replace them by one cheaper node."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from karpy.core.disruption.budgets import find_allowances
from karpy.core.disruption.candidates import Candidate, DisruptionClass, best_first, refuse
from karpy.core.disruption.consolidation import (
    REASON,
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
from karpy.model.verdicts import NodeReason

_LEAST: Final = 2
_SKIPPED_MAX: Final = 4
"""How many nodes may be skipped before a run, and how many are tried one by one after it."""


class _Run(NamedTuple):
    """Consecutive candidates that can be consolidated together; empty if there are none."""

    move: Move = Move()
    nodes: Sequence[Candidate] = ()
    counts: tuple[Count, ...] = ()
    """The metrics of the move, or of the last rejected move if there is none."""


class MultiNodeConsolidation:
    """Consolidates the longest run of nodes, in order of savings, that can go together."""

    name = "multi-node-consolidation"
    reason = REASON
    consolidation_type = "multi"
    disruption_class = DisruptionClass.GRACEFUL
    is_validated = True

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Find the longest run by binary search, over as many nodes as budgets allow."""
        eligible = find_eligible(evaluation, self.name)
        gauge = eligible_count(self, len(eligible.candidates))
        if not eligible.candidates:
            settled = is_settled(Move(), eligible.refusals)
            return Proposal((), eligible.refusals, eligible.notices, (gauge,), is_settled=settled)
        allowances = find_allowances(evaluation, self.reason)
        # Pods with very many constraints would slow down every search over their nodes;
        # single-node consolidation considers these nodes.
        light = [each for each in eligible.candidates if not is_heavy(each.pods)]
        chosen, spent = allowances.within(best_first(light), self.name)
        consolidation = Consolidation(evaluation, self.name, self.consolidation_type)
        move, nodes, counts = self._search(consolidation, chosen)
        refusals = [*eligible.refusals, *spent]
        if move.command is not None:
            heavy = (each for each in eligible.candidates if each not in light)
            kept = (each for each in (*chosen, *heavy) if each not in nodes)
            refusals += [refuse(each, NodeReason.NOT_CONSIDERED, self.name) for each in kept]
        return Proposal(
            () if move.command is None else (move.command,),
            tuple(refusals),
            (
                *eligible.notices,
                *allowances.notices,
                *move_notices(move, nodes, consolidation, evaluation),
            ),
            (gauge, *allowances.counts, *counts),
            allowances.remarks,
            is_settled=is_settled(move, refusals),
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Compute the move again for the nodes that may still be disrupted."""
        return validate_move(self, command, evaluation, may_shrink=True)

    def _search(self, consolidation: Consolidation, candidates: Sequence[Candidate]) -> _Run:
        """Find a run, skipping up to `_SKIPPED_MAX` nodes at the beginning."""
        run = self._longest(consolidation, candidates)
        # Differs: multi-node consolidation where one of the first two nodes cannot be disrupted:
        # Karpenter finds no command; Karpy skips up to four nodes at the beginning.
        for start in range(1, min(_SKIPPED_MAX + 1, len(candidates) - 1)):
            if run.nodes:
                break
            if consolidation.move(candidates[start : start + _LEAST]).command is not None:
                run = self._longest(consolidation, candidates[start:])
        return run

    def _longest(self, consolidation: Consolidation, candidates: Sequence[Candidate]) -> _Run:
        """Find by binary search how many of the first candidates can go together."""
        run = _Run()
        # Differs: multi-node consolidation of many nodes: Karpenter considers 100 nodes (101 if the
        # first 100 can go) and stops after one minute; Karpy considers all nodes, so that none is
        # left out for its place in the order.
        least, most = _LEAST, len(candidates)
        while least <= most:
            middle = (least + most) // 2
            move = consolidation.move(candidates[:middle])
            if move.command is not None:
                run, least = _Run(move, candidates[:middle], move.counts), middle + 1
            else:
                most = middle - 1
                if not run.nodes:
                    run = _Run(counts=move.counts or run.counts)
        return self._with_more(consolidation, run, candidates[least:]) if run.nodes else run

    def _with_more(
        self, consolidation: Consolidation, run: _Run, rest: Sequence[Candidate]
    ) -> _Run:
        """Add candidates after the first one that cannot go, if they save more."""
        # Differs: multi-node consolidation where a node after the longest prefix could go, too:
        # Karpenter ends the prefix at the first node that cannot go; Karpy also tries up to four
        # nodes after it.
        for each in rest[:_SKIPPED_MAX]:
            nodes = (*run.nodes, each)
            move = consolidation.move(nodes)
            if _savings_of(move) > _savings_of(run.move):
                run = _Run(move, nodes, move.counts)
        return run


def _savings_of(move: Move) -> int:
    return 0 if move.command is None else move.command.savings
