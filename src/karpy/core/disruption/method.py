"""The interface of a disruption method: it proposes commands and validates them later."""

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
    """The values of gauges and histograms."""
    remarks: tuple[Remark, ...] = ()
    is_settled: bool = False
    """Whether the method finds no command until the cluster changes: passes may skip it."""

    def as_changes(self) -> Changes:
        """Return the events, metrics and log lines of a proposal."""
        return Changes(notices=self.notices, counts=self.counts, remarks=self.remarks)


class Validation(Struct, frozen=True, gc=False):
    """What is left of a proposed command, and a refusal for each of its nodes that is left out."""

    command: Command | None = None
    """The command to carry out; None if the command is abandoned."""
    refusals: tuple[NodeRefusal, ...] = ()
    why: str = ""
    """Why the command is abandoned, as events say it: `budget`, `scheduling` or `churn`."""
    notices: tuple[Notice, ...] = ()
    is_complete: bool = True
    """Whether the validation ended within its time limit."""


class DisruptionMethod(Protocol):
    """A reason to disrupt nodes, with its rules."""

    @property
    def name(self) -> str:
        """The name of the method in verdicts and recordings."""

    @property
    def reason(self) -> DisruptionReason:
        """The reason of its commands, to which budgets apply."""

    @property
    def consolidation_type(self) -> str:
        """The label `consolidation_type` of metrics; empty if the method is no consolidation."""

    @property
    def disruption_class(self) -> DisruptionClass:
        """Which protections of pods and nodes the method respects."""

    @property
    def is_validated(self) -> bool:
        """Whether its commands wait for a validation before they are carried out."""

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Return commands, at least one if the method finds a node to disrupt."""

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Check a command on a later snapshot, in which its nodes do not count as `in_command`."""


def eligible_count(method: DisruptionMethod, nodes: int) -> Count:
    """Return the gauge of nodes that a method could disrupt."""
    labels = {"reason": method.reason.value.lower()}
    return Count("voluntary_disruption_eligible_nodes", labels, float(nodes))


def existing_nodes(
    command: Command, evaluation: Evaluation
) -> tuple[list[Node], list[NodeRefusal]]:
    """Return the nodes of a command that exist, and a refusal for each that does not."""
    nodes = [node for each in command.nodes if (node := evaluation.nodes.get(each.claim))]
    gone = [
        NodeRefusal(NodeReason.GONE, each.node, method=command.method)
        for each in command.nodes
        if each.claim not in evaluation.nodes
    ]
    return nodes, gone
