"""Drift: replace nodes that differ from their NodePool or node class."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from karpy.core.disruption.budgets import Allowance, find_allowances
from karpy.core.disruption.candidates import (
    Candidate,
    DisruptionClass,
    as_command_node,
    find_candidates,
    refuse,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation, eligible_count
from karpy.core.disruption.relocations import relocate_keeping_places
from karpy.core.disruption.terminatefirst import (
    NO_RESERVED_CAPACITY,
    relocate_with_credit,
    with_missing_nodes,
)
from karpy.core.lifecycle.conditions import DRIFTED, changed
from karpy.core.lifecycle.eviction import is_held
from karpy.core.scheduling.whatif import Relocation
from karpy.model.commands import Command, Replacement
from karpy.model.pods import Pod
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import NodeReason, NodeRefusal

_SHOWN_MAX: Final = 3


class Drift:
    """Replaces one drifted node at a time, empty nodes first, then the oldest drift."""

    name = "drift"
    reason = DisruptionReason.DRIFTED
    consolidation_type = ""
    disruption_class = DisruptionClass.EVENTUAL
    is_validated = False

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Choose the first drifted node whose pods all have another place."""
        found = find_candidates(evaluation, self.disruption_class)
        drifted, refusals = list[Candidate](), [*found.refusals]
        for each in found.candidates:
            if each.pool.is_static:
                continue
            if each.claim.conditions.is_true(DRIFTED):
                drifted.append(each)
            else:
                refusals.append(refuse(each, NodeReason.NOT_DRIFTED, self.name))
        gauge = eligible_count(self, len(drifted))
        if not drifted:
            return Proposal((), tuple(refusals), found.notices, (gauge,))
        allowances = find_allowances(evaluation, self.reason)
        command = None
        for each in sorted(drifted, key=partial(_oldest_first, put_off=evaluation.put_off)):
            if command is not None:
                refusals.append(refuse(each, NodeReason.NOT_CONSIDERED, self.name))
            elif not allowances.by_pool[each.pool.name].remaining:
                refusals.append(allowances.refusal_of(each, self.name))
            else:
                decided = self._replace(each, allowances.by_pool[each.pool.name], evaluation)
                if isinstance(decided, Command):
                    command = decided
                else:
                    refusals.append(decided)
        return Proposal(
            () if command is None else (command,),
            tuple(refusals),
            (*found.notices, *allowances.notices),
            (gauge, *allowances.counts),
            allowances.remarks,
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Keep the command: drift is carried out at once."""
        del evaluation
        return Validation(command)

    def _replace(
        self, candidate: Candidate, allowance: Allowance, evaluation: Evaluation
    ) -> Command | NodeRefusal:
        moved = _movable(candidate, evaluation)
        found = relocate_keeping_places(candidate, evaluation, moved)
        if found.is_out_of_time:
            return refuse(candidate, NodeReason.OUT_OF_TIME, self.name)
        if not found.unplaced:
            return self._command(candidate, found, evaluation)
        if evaluation.snapshot.settings.terminate_first_drift:
            credited = relocate_with_credit(candidate, evaluation, moved)
            if credited is not None:
                left = with_missing_nodes(allowance, candidate.pool, evaluation)
                if not left.remaining:
                    return refuse(candidate, NodeReason.BUDGET_SPENT, self.name, str(left))
                return self._command(candidate, credited, evaluation, NO_RESERVED_CAPACITY)
        shown = "; ".join(found.unplaced[:_SHOWN_MAX])
        pods = tuple(each.partition(": ")[0] for each in found.unplaced)
        return refuse(candidate, NodeReason.PODS_UNPLACED, self.name, shown, pods=pods)

    def _command(
        self,
        candidate: Candidate,
        found: Relocation,
        evaluation: Evaluation,
        terminates_first: str = "",
    ) -> Command:
        return Command(
            self.name,
            self.reason,
            (as_command_node(candidate),),
            tuple(Replacement(each) for each in found.launches),
            found.nodes,
            terminates_first,
            proposed=evaluation.now,
        )


def _oldest_first(
    candidate: Candidate, put_off: Collection[str]
) -> tuple[bool, bool, datetime, str]:
    """
    Sort nodes without pods first, then by the time of their drift; names decide ties.

    Nodes in `put_off` come before all others.
    """
    is_late = candidate.name not in put_off
    return is_late, bool(candidate.pods), changed(candidate.claim, DRIFTED), candidate.name


def _movable(candidate: Candidate, evaluation: Evaluation) -> Sequence[Pod]:
    """Leave out pods that stay until the terminationGracePeriod ends: they need no place yet."""
    budgets, now = evaluation.snapshot.budgets, evaluation.now
    return [each for each in candidate.pods if not (each.unreadable or is_held(each, budgets, now))]
