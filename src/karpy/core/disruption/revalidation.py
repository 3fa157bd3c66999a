"""What validations of all methods have in common."""

from karpy.core.disruption.evaluation import Evaluation
from karpy.model.commands import Command
from karpy.model.nodes import Node
from karpy.model.verdicts import NodeReason, NodeRefusal


def still_there(command: Command, evaluation: Evaluation) -> tuple[list[Node], list[NodeRefusal]]:
    """Return the nodes of a command that exist, and a refusal for each that does not."""
    nodes = [node for each in command.nodes if (node := evaluation.nodes.get(each.claim))]
    gone = [
        NodeRefusal(NodeReason.GONE, each.node, method=command.method)
        for each in command.nodes
        if each.claim not in evaluation.nodes
    ]
    return nodes, gone
