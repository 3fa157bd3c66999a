"""Answer a question about the disruption of nodes, from what was seen to a verdict."""

from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.confirming import confirm
from karpy.core.disruption.emptiness import Proposal, propose_empty
from karpy.core.disruption.repairing import REASON, Triage, triage
from karpy.core.disruption.secondlook import SecondLook, requeue_after
from karpy.core.disruption.treatment import Visit, visit
from karpy.core.lifecycle.repair import Repair, repair
from karpy.model.disruption import DisruptionReason
from karpy.model.questions import (
    BrokenNodesQuestion,
    ConfirmationQuestion,
    DisruptionQuestion,
    EmptyConfirmationQuestion,
    EmptyNodesQuestion,
    LegacyRepairQuestion,
    RepairConfirmationQuestion,
    SecondLookQuestion,
    TreatmentQuestion,
)
from karpy.model.repairs import RepairAction
from karpy.model.surroundings import NodeState
from karpy.model.verdicts import DisruptionVerdict, NodeChoice


def decide_disruption(question: DisruptionQuestion) -> DisruptionVerdict:
    """Decide which nodes are to be disrupted; the same question has the same verdict, always."""
    if isinstance(question, EmptyNodesQuestion):
        return verdict_of_proposal(propose_empty(question.surroundings))
    if isinstance(question, SecondLookQuestion):
        return verdict_of_second_look(requeue_after(question))
    if isinstance(question, ConfirmationQuestion):
        return confirm(question)
    if isinstance(question, LegacyRepairQuestion):
        return verdict_of_repair(question.broken, give_up(question))
    found = triage(question.surroundings, question.policies, question.reboots)
    if isinstance(question, TreatmentQuestion):
        return verdict_of_visit(visit(question, found.patients))
    return verdict_of_triage(found)


def verdict_of_proposal(proposal: Proposal) -> DisruptionVerdict:
    """Say which nodes should go, and why not the others."""
    choices = tuple(_choice(each) for each in proposal.candidates)
    return DisruptionVerdict(proposal.reason, choices, proposal.refusals)


def verdict_of_second_look(seen: SecondLook) -> DisruptionVerdict:
    """Say which proposed nodes should still go, and why not the others."""
    choices = tuple(_choice(each) for each in seen.candidates)
    return DisruptionVerdict(DisruptionReason.EMPTY, choices, seen.refusals)


def verdict_of_triage(found: Triage) -> DisruptionVerdict:
    """Say which broken nodes should be repaired, and why not the others."""
    choices = tuple(_choice(each.candidate, each.remedy.action) for each in found.patients)
    return DisruptionVerdict(REASON, choices, found.refusals)


def verdict_of_visit(visited: Visit) -> DisruptionVerdict:
    """Say which broken node is repaired and what replaces it, and why not those before it."""
    refusals = tuple(each.refusal for each in visited.refused if each.refusal is not None)
    patient, treatment = visited.patient, visited.treatment
    if patient is None:
        return DisruptionVerdict(REASON, (), refusals)
    rollout = treatment.rollout
    return DisruptionVerdict(
        REASON,
        (_choice(patient.candidate, patient.remedy.action),),
        refusals,
        launches=() if rollout is None else tuple(each.launch for each in rollout.replacements),
        expected_on=treatment.expected_on,
        goes_first="" if rollout is None else rollout.goes_first,
    )


def give_up(question: LegacyRepairQuestion, pods: int = 0) -> Repair:
    """Give up a broken node, or say why not; `pods` are those that will have to move."""
    claim, node = question.broken.claim, question.broken.node
    if claim is None or node is None:
        return Repair()
    around = question.surroundings
    peers = [each.node for each in around.nodes if each.node is not None]
    return repair(claim, node, question.policies, peers, around.now, pods)


def verdict_of_repair(broken: NodeState, repaired: Repair) -> DisruptionVerdict:
    """Say whether a broken node is given up, and why not if it stays."""
    refusals = () if repaired.refusal is None else (repaired.refusal,)
    claim, node = broken.claim, broken.node
    if not repaired.changes.deletes_claim or claim is None or node is None:
        return DisruptionVerdict(REASON, (), refusals)
    choice = NodeChoice(node.name, claim.name, claim.pool, remedy=RepairAction.REPLACE)
    return DisruptionVerdict(REASON, (choice,), refusals)


def is_news(
    question: DisruptionQuestion, verdict: DisruptionVerdict, before: DisruptionVerdict | None
) -> bool:
    """Say whether a verdict is worth telling after another: it does something, or has changed."""
    known = DisruptionVerdict(verdict.reason) if before is None else before
    match question:
        case SecondLookQuestion() | EmptyConfirmationQuestion() | RepairConfirmationQuestion():
            # The one is taken once for each proposal, the others are told if a node is refused.
            return True
        case BrokenNodesQuestion():
            # They are chosen again and again as long as nothing can be done about them.
            return verdict != known
    return bool(verdict.choices) or verdict != known


def _choice(candidate: Candidate, remedy: RepairAction | None = None) -> NodeChoice:
    return NodeChoice(
        candidate.name, candidate.claim.name, candidate.pool.name, candidate.price, remedy
    )
