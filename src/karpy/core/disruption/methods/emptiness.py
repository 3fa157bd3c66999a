"""Emptiness: delete nodes without reschedulable pods."""

from typing import Final

from msgspec.structs import replace

from karpy.core.disruption.budgets import find_allowances, is_constrained
from karpy.core.disruption.candidates import (
    Candidate,
    DisruptionClass,
    as_command_node,
    best_first,
    find_candidates,
    refuse,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation, eligible_count, existing_nodes
from karpy.core.lifecycle.conditions import CONSOLIDATABLE
from karpy.model.commands import Command
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import NodeReason, NodeRefusal

_SHOWN_MAX: Final = 5


class Emptiness:
    """Deletes, in one command, all nodes that have been empty for consolidateAfter."""

    name = "emptiness"
    reason = DisruptionReason.EMPTY
    consolidation_type = "empty"
    disruption_class = DisruptionClass.GRACEFUL
    is_validated = True

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Choose empty nodes until the budget of each pool is spent."""
        found = find_candidates(evaluation)
        refusals, eligible = [*found.refusals], list[Candidate]()
        for each in found.candidates:
            refusal = self._why_kept(each, evaluation)
            if refusal is None:
                eligible.append(each)
            else:
                refusals.append(refusal)
        gauge = eligible_count(self, len(eligible))
        if not eligible:
            return Proposal((), tuple(refusals), found.notices, (gauge,))
        allowances = find_allowances(evaluation, self.reason)
        chosen, spent = allowances.within(best_first(eligible), self.name)
        nodes = tuple(as_command_node(each) for each in chosen)
        command = Command(
            self.name,
            self.reason,
            nodes,
            consolidation_type=self.consolidation_type,
            proposed=evaluation.now,
        )
        return Proposal(
            (command,) if nodes else (),
            (*refusals, *spent),
            (*found.notices, *allowances.notices),
            (gauge, *allowances.counts),
            allowances.remarks,
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Keep the nodes that are still empty, as many as budgets allow now."""
        nodes, gone = existing_nodes(command, evaluation)
        found = find_candidates(evaluation, nodes=nodes)
        refusals, valid = [*gone, *found.refusals], dict[str, Candidate]()
        for each in found.candidates:
            refusal = self._why_kept(each, evaluation)
            if refusal is None:
                valid[each.claim.name] = each
            else:
                refusals.append(refusal)
        in_order = [valid[each.claim] for each in command.nodes if each.claim in valid]
        chosen, spent = find_allowances(evaluation, self.reason).within(in_order, self.name)
        kept = replace(command, nodes=tuple(as_command_node(each) for each in chosen))
        why = "" if chosen else "budget" if is_constrained(spent) else "churn"
        return Validation(kept if chosen else None, (*refusals, *spent), why)

    def _why_kept(self, candidate: Candidate, evaluation: Evaluation) -> NodeRefusal | None:
        if candidate.pool.is_static:
            return refuse(candidate, NodeReason.POOL_STATIC, self.name)
        if candidate.pool.policy.consolidate_after is None:
            return refuse(candidate, NodeReason.CONSOLIDATION_DISABLED, self.name)
        if candidate.node.buffer_pods:
            detail = f"{candidate.node.buffer_pods} pods"
            return refuse(candidate, NodeReason.BUFFER_PODS, self.name, detail)
        if not candidate.is_empty:
            pods = tuple(sorted(each.key for each in candidate.pods)[:_SHOWN_MAX])
            detail = f"{len(candidate.pods)} pods"
            return refuse(candidate, NodeReason.NOT_EMPTY, self.name, detail, pods=pods)
        if not candidate.claim.conditions.is_true(CONSOLIDATABLE):
            until = evaluation.consolidatable_at(candidate.node)
            return refuse(candidate, NodeReason.NOT_QUIET, self.name, until=until)
        return None
