"""Consolidation commands: their events, and whether they still hold when they are validated."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from karpy.core.disruption.budgets import find_allowances, is_constrained
from karpy.core.disruption.candidates import Candidate, as_command_node
from karpy.core.disruption.consolidation import Consolidation, Move, find_eligible, options_of
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import DisruptionMethod, Validation
from karpy.core.disruption.notices import candidate_notices, rejected_notices
from karpy.core.disruption.revalidation import still_there
from karpy.core.scheduling.whatif import Relocation
from karpy.model.commands import Command
from karpy.model.notices import Notice
from karpy.model.verdicts import NodeReason, NodeRefusal


def proposed_move(
    move: Move,
    candidates: Sequence[Candidate],
    consolidation: Consolidation,
    evaluation: Evaluation,
) -> Iterator[Notice]:
    """Return the events on a move that was found."""
    if move.command is not None:
        yield from candidate_notices(move.command, evaluation)
        yield from consolidation.balance.notices(move.command, candidates)


def validate_move(
    method: DisruptionMethod, command: Command, evaluation: Evaluation, *, may_shrink: bool
) -> Validation:
    """
    Say what of a consolidation still holds.

    A command is kept if all of its nodes may still go and their pods still find places in the same
    way. With fewer nodes it is decided again for these, if it may shrink.
    """
    nodes, gone = still_there(command, evaluation)
    eligible = find_eligible(evaluation, method.name, nodes)
    valid = {each.claim.name: each for each in eligible.candidates}
    in_order = [valid[each.claim] for each in command.nodes if each.claim in valid]
    chosen, spent = find_allowances(evaluation, method.reason).within(in_order, method.name)
    refusals = (*gone, *eligible.refusals, *spent)
    consolidation = Consolidation(evaluation, method.name, method.consolidation_type)
    if len(chosen) == len(command.nodes):
        # Differs: validation of a consolidation command: Karpenter asks for places at any price,
        # and may carry out a command whose replacement is no longer cheaper; Karpy compares prices
        # again.
        found = consolidation.relocate(chosen, sum(each.price for each in chosen))
        why = _why_changed(command, found)
        if why is None:
            kept = tuple(as_command_node(each) for each in chosen)
            return Validation(replace(command, nodes=kept, nominated=found.nodes))
        refusals = (*refusals, *_changed(chosen, command, why))
        return _rejected(command, refusals, "scheduling", evaluation)
    if chosen and may_shrink:
        # Differs: a multi-node command of which one node has changed before validation: Karpenter
        # abandons the command; Karpy decides again about the nodes that are left, because they may
        # still go.
        move = consolidation.move(chosen)
        if move.command is not None:
            again = replace(
                move.command, id=command.id, proposed=command.proposed, stage=command.stage
            )
            return Validation(again, refusals)
        refusals = (*refusals, *_changed(chosen, command, f"without the others {_reason(move)}"))
    return _rejected(command, refusals, "budget" if is_constrained(spent) else "churn", evaluation)


def out_of_time(command: Command, evaluation: Evaluation) -> Validation:
    """Give a command up for which time was not enough."""
    refusals = tuple(
        NodeRefusal(NodeReason.OUT_OF_TIME, each.node, method=command.method)
        for each in command.nodes
    )
    given_up = _rejected(command, refusals, "scheduling", evaluation)
    return replace(given_up, is_complete=False)


def _why_changed(command: Command, found: Relocation) -> str | None:
    """Say how the places of the pods differ from what the command was decided for."""
    if found.homeless:
        return found.homeless[0]
    expected = len(command.replacements)
    if found.needs_more_nodes or len(found.launches) != expected:
        needed = "more" if found.needs_more_nodes else len(found.launches)
        return f"{expected} new nodes were expected, and {needed} are needed"
    asked = options_of(each.launch for each in command.replacements)
    if not asked <= options_of(found.launches):
        return "the pods need another instance type by now"
    return None


def _reason(move: Move) -> str:
    assert move.why is not None
    return move.why.value


def _changed(candidates: Sequence[Candidate], command: Command, why: str) -> list[NodeRefusal]:
    return [NodeRefusal(NodeReason.CHANGED, each.name, why, command.method) for each in candidates]


def _rejected(
    command: Command, refusals: tuple[NodeRefusal, ...], why: str, evaluation: Evaluation
) -> Validation:
    return Validation(None, refusals, why, tuple(rejected_notices(command, why, evaluation)))
