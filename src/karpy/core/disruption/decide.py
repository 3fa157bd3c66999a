"""Verdicts on nodes: commands to disrupt them, validations of commands, refusals."""

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
from karpy.core.lifecycle.repair import NodeRepair as LegacyRepair
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
"""In the order of a pass, which ends at the first method with a command."""
_BY_NAME: Final = {each.name: each for each in METHODS}
_PUT_OFF: Final = frozenset({NodeReason.NOT_CONSIDERED, NodeReason.OUT_OF_TIME})
LEGACY_REPAIR: Final = "legacy-repair"


class Pass:
    """One pass over the methods on one snapshot, until a method has a command."""

    def __init__(self, question: DisruptionQuestion, previous: "Pass | None" = None) -> None:
        """Take a question; reuse what the previous pass derived from unchanged objects."""
        self.question = question
        # Differs: the cost of moving the pods of a node after its NodeClaim has changed: Karpenter
        # loses this cost until the Node changes, so that moves in Balanced NodePools get a wrong
        # score; Karpy derives all costs from the snapshot.
        before: Evaluation | None = None if previous is None else previous.evaluation
        self.evaluation: Evaluation = Evaluation(question.snapshot, before, question.put_off)
        self._proposals: dict[str, Proposal] = {}
        self._out_of_time: set[str] = set()
        """Names of nodes that a method had no time for."""
        self.is_complete = True
        """Whether no method ran out of time."""

    def methods(self) -> Iterator[DisruptionMethod]:
        """Yield the methods to ask, in order, until one has a command."""
        for method in METHODS:
            if method.name not in self._skipped:
                yield method
                # A method that raised an error has no proposal; the next methods are still asked.
                proposal = self._proposals.get(method.name)
                if proposal is not None and proposal.commands:
                    return

    def propose(self, method: DisruptionMethod, keep_going: KeepGoing | None = None) -> Proposal:
        """
        Ask one method; leave out refusals and events that an earlier method gave.

        When `keep_going` returns False, the method ends with what it has found.
        """
        known = {_key(each) for some in self._proposals.values() for each in some.refusals}
        self.evaluation.begin(keep_going)
        try:
            made = method.propose(self.evaluation)
            self._note_out_of_time(made)
        except OutOfTime:
            made, self.is_complete = Proposal(refusals=_all_out_of_time(method, self)), False
        self.is_complete = self.is_complete and not self.evaluation.was_cut
        self._proposals[method.name] = made
        news = [each for each in made.refusals if _key(each) not in known]
        notices = (*made.notices, *refusal_notices(news, self.evaluation))
        return replace(made, refusals=tuple(news), notices=notices)

    def put_off(self) -> frozenset[str]:
        """Return the names of the nodes that the next pass considers first."""
        if self.is_complete:
            return self.question.put_off if self.verdict().commands else frozenset()
        # Of the nodes postponed before, keep those that are still not considered; only when there
        # are none, take those that this pass had no time for.
        return frozenset(self.question.put_off & self._out_of_time or self._out_of_time)

    def settled(self) -> frozenset[str]:
        """Return the methods that find nothing until the cluster changes, or `settled_until`."""
        if any(each.why is NodeReason.SCALING_OUT for each in self._refusals()):
            # A scale-out ends soon even if nothing changes: its time is limited.
            return self.question.settled
        if not self.is_complete:
            return self.question.settled
        found = {name for name, each in self._proposals.items() if each.is_settled}
        return self.question.settled | found

    def settled_until(self) -> datetime | None:
        """Return when the first refusal ends by itself; None if no refusal does."""
        now = self.question.snapshot.now
        ends = (each.until for each in self._refusals())
        return min((each for each in ends if each is not None and each > now), default=None)

    def considered(self) -> frozenset[str]:
        """Return the names of the nodes that all methods have decided on."""
        unasked = {each.name for each in METHODS} - self._skipped - self._proposals.keys()
        chosen = {node.node for node in self.verdict().nodes}
        if unasked:
            return frozenset(chosen)
        put_off = {each.node for each in self._refusals() if each.why in _PUT_OFF}
        return frozenset({each.name for each in self.question.snapshot.nodes} - put_off | chosen)

    @property
    def _skipped(self) -> frozenset[str]:
        return self.question.settled | self.question.passed_over

    def _note_out_of_time(self, made: Proposal) -> None:
        late = [each.node for each in made.refusals if each.why is NodeReason.OUT_OF_TIME]
        # If no question was answered at all, the first node used up all the time by itself; it
        # must not come first again.
        self._out_of_time.update(late if self.evaluation.answered.difference(late) else late[1:])

    def _refusals(self) -> Iterator[NodeRefusal]:
        return (each for made in self._proposals.values() for each in made.refusals)

    def verdict(self) -> DisruptionVerdict:
        """Return the commands and refusals of the methods asked so far."""
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
    """Decide a question about nodes; equal questions always have equal verdicts."""
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
    """Validate a proposed command; a command is abandoned if time runs out."""
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
    """Return a validation in the form that the journal records."""
    kept = validation.command
    commands = () if kept is None else (kept,)
    refusals, is_complete = validation.refusals, validation.is_complete
    return DisruptionVerdict(question.command.method, commands, refusals, is_complete)


def repair_at_once(question: LegacyRepairQuestion) -> LegacyRepair:
    """Delete the NodeClaim of a broken node, or say why not, as Karpenter did before v1.15."""
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
    """Return a repair as a verdict: a command that deletes the broken node, or a refusal."""
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
    """Say whether to record a verdict after the one before: it has commands, or has changed."""
    if isinstance(question, ValidationQuestion | ConfirmationQuestion) or verdict.commands:
        return True
    known = {} if before is None else {_key(each): each.method for each in before.refusals}
    refused = {_key(each) for each in verdict.refusals}
    # Settled methods were not asked; they would refuse the same nodes again.
    settled = question.settled if isinstance(question, DisruptionQuestion) else frozenset[str]()
    ended = (key not in refused and method not in settled for key, method in known.items())
    return bool(refused - known.keys()) or any(ended)


def _key(refusal: NodeRefusal) -> tuple[object, ...]:
    return refusal.node, refusal.why, refusal.detail
