"""Answer a question about the disruption of nodes, from what was seen to a verdict."""

from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.emptiness import Proposal, propose_empty
from karpy.core.disruption.repairing import REASON, Triage, triage
from karpy.model.questions import DisruptionQuestion, EmptyNodesQuestion
from karpy.model.repairs import RepairAction
from karpy.model.verdicts import DisruptionVerdict, NodeChoice


def decide_disruption(question: DisruptionQuestion) -> DisruptionVerdict:
    """Decide which nodes are to be disrupted; the same question has the same verdict, always."""
    if isinstance(question, EmptyNodesQuestion):
        return verdict_of_proposal(propose_empty(question.surroundings))
    return verdict_of_triage(triage(question.surroundings, question.policies, question.reboots))


def verdict_of_proposal(proposal: Proposal) -> DisruptionVerdict:
    """Say which nodes should go, and why not the others."""
    choices = tuple(_choice(each) for each in proposal.candidates)
    return DisruptionVerdict(proposal.reason, choices, proposal.refusals)


def verdict_of_triage(found: Triage) -> DisruptionVerdict:
    """Say which broken nodes should be repaired, and why not the others."""
    choices = tuple(_choice(each.candidate, each.remedy.action) for each in found.patients)
    return DisruptionVerdict(REASON, choices, found.refusals)


def is_news(verdict: DisruptionVerdict, before: DisruptionVerdict | None) -> bool:
    """Say whether a verdict is worth telling after another: it does something, or has changed."""
    known = DisruptionVerdict(verdict.reason) if before is None else before
    # A broken node is chosen again and again as long as nothing can be done about it.
    is_acted_on = bool(verdict.choices) and verdict.reason is not REASON
    return is_acted_on or verdict != known


def _choice(candidate: Candidate, remedy: RepairAction | None = None) -> NodeChoice:
    return NodeChoice(
        candidate.name, candidate.claim.name, candidate.pool.name, candidate.price, remedy
    )
