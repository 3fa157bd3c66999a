"""What a disruption method is: it proposes commands, and says later whether these still hold."""

from typing import Protocol

from msgspec import Struct

from karpy.core.disruption.candidates import DisruptionClass
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.model.commands import Command
from karpy.model.nodes import Node
from karpy.model.notices import Notice
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import NodeReason, NodeRefusal


class Proposal(Struct, frozen=True, gc=False):
    """Commands of one method on one snapshot, and a refusal for every other node considered."""

    commands: tuple[Command, ...] = ()
    refusals: tuple[NodeRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()
    """Gauges and histograms: their metrics take these values."""
    remarks: tuple[Remark, ...] = ()
    is_settled: bool = False
    """Whether the method finds nothing until the cluster changes: it may be passed over."""

    def as_changes(self) -> Changes:
        """Return what is emitted of a proposal."""
        return Changes(notices=self.notices, counts=self.counts, remarks=self.remarks)


class Validation(Struct, frozen=True, gc=False):
    """What is left of a command, and a refusal for every node of it that is left alone now."""

    command: Command | None = None
    """The command as it is carried out; None if it is given up."""
    refusals: tuple[NodeRefusal, ...] = ()
    why: str = ""
    """Why it is given up, in the word that events use: budget, scheduling or churn."""
    notices: tuple[Notice, ...] = ()
    is_complete: bool = True
    """Whether time was enough to say it."""


class DisruptionMethod(Protocol):
    """One reason to disrupt nodes, with the rules of it."""

    @property
    def name(self) -> str:
        """The method's name in verdicts and recordings."""

    @property
    def reason(self) -> DisruptionReason:
        """What its commands are for; budgets are asked about it."""

    @property
    def consolidation_type(self) -> str:
        """What metrics call it; empty if it is no consolidation."""

    @property
    def disruption_class(self) -> DisruptionClass:
        """What it heeds of what pods and nodes forbid."""

    @property
    def is_validated(self) -> bool:
        """Whether its commands wait for a validation before they are carried out."""

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Choose commands, at least one if the method can do anything at all."""

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Say what of a command still holds on a later snapshot; its nodes are not in command."""


def eligible_count(method: DisruptionMethod, nodes: int) -> Count:
    """Return the gauge of nodes that a method could disrupt."""
    labels = {"reason": method.reason.value.lower()}
    return Count("voluntary_disruption_eligible_nodes", labels, float(nodes))


def still_there(command: Command, evaluation: Evaluation) -> tuple[list[Node], list[NodeRefusal]]:
    """Return the nodes of a command that exist, and a refusal for each that does not."""
    nodes = [node for each in command.nodes if (node := evaluation.nodes.get(each.claim))]
    gone = [
        NodeRefusal(NodeReason.GONE, each.node, method=command.method)
        for each in command.nodes
        if each.claim not in evaluation.nodes
    ]
    return nodes, gone
