"""Answers to questions about nodes: what to disrupt, what still holds, and why not the rest."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from karpy.core.disruption.candidates import refusal_notices
from karpy.core.disruption.confirmation import confirm
from karpy.core.disruption.consolidation import out_of_time
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import DisruptionMethod, Proposal, Validation
from karpy.core.disruption.methods.drift import Drift
from karpy.core.disruption.methods.emptiness import Emptiness
from karpy.core.disruption.methods.multinode import MultiNodeConsolidation
from karpy.core.disruption.methods.repair import Repair
from karpy.core.disruption.methods.singlenode import SingleNodeConsolidation
from karpy.core.disruption.methods.staticdrift import StaticDrift
from karpy.core.lifecycle.repair import Repair as LegacyRepair
from karpy.core.lifecycle.repair import repair
from karpy.core.scheduling.effort import KeepGoing, OutOfTime
from karpy.model.commands import Command, CommandNode, DisruptionVerdict
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import (
    ConfirmationQuestion,
    DisruptionQuestion,
    LegacyRepairQuestion,
    NodeQuestion,
    ValidationQuestion,
)
from karpy.model.verdicts import NodeReason, NodeRefusal

METHODS: Final[tuple[DisruptionMethod, ...]] = (
    Repair(),
    Emptiness(),
    StaticDrift(),
    Drift(),
    MultiNodeConsolidation(),
    SingleNodeConsolidation(),
)
"""In the order in which they are asked: the first with a command ends a pass."""
_BY_NAME: Final = {each.name: each for each in METHODS}
_PUT_OFF: Final = frozenset({NodeReason.NOT_CONSIDERED, NodeReason.OUT_OF_TIME})
LEGACY_REPAIR: Final = "legacy-repair"


class Pass:
    """One go through the methods, on one snapshot, until one of them has a command."""

    def __init__(self, question: DisruptionQuestion, previous: "Pass | None" = None) -> None:
        """Take a question; what the previous pass derived from equal parts is kept."""
        self.question = question
        # Differs: the cost of moving the pods of a node after its NodeClaim has changed: Karpenter
        # loses it until the Node changes, so that moves in Balanced NodePools get a wrong score;
        # Karpy derives all costs from the snapshot.
        before: Evaluation | None = None if previous is None else previous.evaluation
        self.evaluation: Evaluation = Evaluation(question.snapshot, before, question.put_off)
        self._proposals: dict[str, Proposal] = {}
        self._late: set[str] = set()
        """Names of nodes that some method had no time for."""
        self.is_complete = True
        """Whether no method ran out of time."""

    def methods(self) -> Iterator[DisruptionMethod]:
        """Give the methods to ask, one after the other, until one has a command."""
        for method in METHODS:
            if method.name not in self._unasked:
                yield method
                # One that failed has no proposal, and keeps no other from its turn.
                proposal = self._proposals.get(method.name)
                if proposal is not None and proposal.commands:
                    return

    def propose(self, method: DisruptionMethod, keep_going: KeepGoing | None = None) -> Proposal:
        """
        Ask one method; events on refusals that others have given before are left out.

        When `keep_going` says False the method ends with what it has.
        """
        known = {_key(each) for some in self._proposals.values() for each in some.refusals}
        self.evaluation.begin(keep_going)
        try:
            made = method.propose(self.evaluation)
            self._note_late(made)
        except OutOfTime:
            made, self.is_complete = Proposal(refusals=_all_out_of_time(method, self)), False
        self.is_complete = self.is_complete and not self.evaluation.was_cut
        self._proposals[method.name] = made
        news = [each for each in made.refusals if _key(each) not in known]
        notices = (*made.notices, *refusal_notices(news, self.evaluation))
        return replace(made, refusals=tuple(news), notices=notices)

    def put_off(self) -> frozenset[str]:
        """Return the names of the nodes that come first in the next pass."""
        if self.is_complete:
            return self.question.put_off if self.verdict().commands else frozenset()
        # Those that had their turn since wait until all others have had theirs.
        return frozenset(self.question.put_off & self._late or self._late)

    def settled(self) -> frozenset[str]:
        """Return the methods that find nothing until the cluster changes, or `settled_until`."""
        if any(each.why is NodeReason.SCALING_OUT for each in self._refusals()):
            # It ends soon even if nothing changes: a pod that finds no place holds nothing up.
            return self.question.settled
        if not self.is_complete:
            return self.question.settled
        found = {name for name, each in self._proposals.items() if each.is_settled}
        return self.question.settled | found

    def settled_until(self) -> datetime | None:
        """Return when the first refusal ends by itself; None if none does."""
        now = self.question.snapshot.now
        ends = (each.until for each in self._refusals())
        return min((each for each in ends if each is not None and each > now), default=None)

    def considered(self) -> frozenset[str]:
        """Return the names of the nodes that all methods have had their say about."""
        unasked = {each.name for each in METHODS} - self._unasked - self._proposals.keys()
        chosen = {node.node for node in self.verdict().nodes}
        if unasked:
            return frozenset(chosen)
        put_off = {each.node for each in self._refusals() if each.why in _PUT_OFF}
        return frozenset({each.name for each in self.question.snapshot.nodes} - put_off | chosen)

    @property
    def _unasked(self) -> frozenset[str]:
        return self.question.settled | self.question.passed_over

    def _note_late(self, made: Proposal) -> None:
        late = [each.node for each in made.refusals if each.why is NodeReason.OUT_OF_TIME]
        # Where no question was answered at all, the first one had all the time there is.
        self._late.update(late if self.evaluation.answered.difference(late) else late[1:])

    def _refusals(self) -> Iterator[NodeRefusal]:
        return (each for made in self._proposals.values() for each in made.refusals)

    def verdict(self) -> DisruptionVerdict:
        """Return what the methods asked so far come to."""
        refusals: dict[tuple[object, ...], NodeRefusal] = {}
        name, commands = "", tuple[Command, ...]()
        for method, made in self._proposals.items():
            for each in made.refusals:
                refusals.setdefault(_key(each), each)
            if made.commands:
                name, commands = method, made.commands
        chosen = {each.node for command in commands for each in command.nodes}
        left = tuple(each for each in refusals.values() if each.node not in chosen)
        return DisruptionVerdict(name, commands, left, self.is_complete)


def _all_out_of_time(method: DisruptionMethod, made: Pass) -> tuple[NodeRefusal, ...]:
    nodes = made.evaluation.nodes.values()
    return tuple(
        NodeRefusal(NodeReason.OUT_OF_TIME, each.name, method=method.name) for each in nodes
    )


def decide_nodes(question: NodeQuestion) -> DisruptionVerdict:
    """Answer a question about nodes; equal questions have equal verdicts, always."""
    match question:
        case DisruptionQuestion():
            return decide_disruption(question)
        case ValidationQuestion():
            return verdict_of_validation(question, validate(question))
        case ConfirmationQuestion():
            return confirm(question, _BY_NAME[question.method].reason)
        case LegacyRepairQuestion():
            return verdict_of_legacy_repair(question, repair_at_once(question))


def decide_disruption(question: DisruptionQuestion) -> DisruptionVerdict:
    """Ask the methods in their order until one has a command."""
    made = Pass(question)
    for method in made.methods():
        made.propose(method)
    return made.verdict()


def method_of(command: Command) -> DisruptionMethod:
    """Return the method of a command."""
    return _BY_NAME[command.method]


def validate(
    question: ValidationQuestion,
    previous: Pass | None = None,
    keep_going: KeepGoing | None = None,
) -> Validation:
    """Say what of a command still holds; if time is not enough for that, it is given up."""
    command = question.command
    before = None if previous is None else previous.evaluation
    evaluation = Evaluation(question.snapshot, before)
    evaluation.begin(keep_going)
    try:
        made = method_of(command).validate(command, evaluation)
    except OutOfTime:
        made = out_of_time(command, evaluation)
    made = replace(made, is_complete=made.is_complete and not evaluation.was_cut)
    return replace(made, notices=(*made.notices, *refusal_notices(made.refusals, evaluation)))


def verdict_of_validation(
    question: ValidationQuestion, validation: Validation
) -> DisruptionVerdict:
    """Return a validation as recordings keep it."""
    kept = validation.command
    commands = () if kept is None else (kept,)
    refusals, is_complete = validation.refusals, validation.is_complete
    return DisruptionVerdict(question.command.method, commands, refusals, is_complete)


def repair_at_once(question: LegacyRepairQuestion) -> LegacyRepair:
    """Delete the NodeClaim of a broken node, or say why not: Karpenter's way before v1.15."""
    snapshot = question.snapshot
    broken = next((each for each in snapshot.nodes if each.claim == question.claim), None)
    if broken is None or broken.claim_record is None or broken.node_record is None:
        return LegacyRepair()
    peers = [each.node_record for each in snapshot.nodes if each.node_record is not None]
    pods = sum(
        pod.node_name == broken.node_record.name and pod.is_reschedulable for pod in snapshot.pods
    )
    policies = snapshot.repair.policies
    return repair(broken.claim_record, broken.node_record, policies, peers, snapshot.now, pods)


def verdict_of_legacy_repair(
    question: LegacyRepairQuestion, repaired: LegacyRepair
) -> DisruptionVerdict:
    """Return whether a broken node is deleted, and why not if it stays."""
    refusals = () if repaired.refusal is None else (repaired.refusal,)
    broken = next((each for each in question.snapshot.nodes if each.claim == question.claim), None)
    if not repaired.changes.deletes_claim or broken is None:
        return DisruptionVerdict(LEGACY_REPAIR, (), refusals)
    node = CommandNode(broken.name, broken.claim, broken.pool)
    command = Command(LEGACY_REPAIR, DisruptionReason.UNHEALTHY, (node,))
    return DisruptionVerdict(LEGACY_REPAIR, (command,), refusals)


def is_news(
    question: NodeQuestion, verdict: DisruptionVerdict, before: DisruptionVerdict | None
) -> bool:
    """Say whether a verdict is worth recording after another: it does something, or has changed."""
    if isinstance(question, ValidationQuestion | ConfirmationQuestion) or verdict.commands:
        return True
    known = {} if before is None else {_key(each): each.method for each in before.refusals}
    refused = {_key(each) for each in verdict.refusals}
    # Methods that are passed over would refuse the same nodes again.
    settled = question.settled if isinstance(question, DisruptionQuestion) else frozenset[str]()
    ended = (key not in refused and method not in settled for key, method in known.items())
    return bool(refused - known.keys()) or any(ended)


def _key(refusal: NodeRefusal) -> tuple[object, ...]:
    return refusal.node, refusal.why, refusal.detail
