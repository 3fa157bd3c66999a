"""What decisions about nodes are made on: each question has everything that its answer reads."""

from datetime import datetime

from msgspec import Struct

from karpy.model.commands import Command, CommandNode
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.pools import Headcount, NodePool
from karpy.model.records import PoolRecord
from karpy.model.snapshot import Snapshot


class DisruptionQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="disruption"):
    """Asks which nodes are to be disrupted, and why not the others."""

    snapshot: Snapshot
    settled: frozenset[str] = frozenset()
    """Methods that are passed over: they found nothing, and nothing has changed since."""


class ValidationQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="validation"):
    """Asks what of a command still holds, some time after it was proposed."""

    snapshot: Snapshot
    """Its own nodes are not `in_command`."""
    command: Command


class ConfirmationQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="confirmation"):
    """Asks whether pods forbid to disrupt nodes, just before these are tainted or deleted."""

    snapshot: Snapshot
    """The nodes alone, with the pods that the API server has just listed there."""
    method: str
    nodes: tuple[CommandNode, ...] = ()
    are_replaced: bool = False
    """Whether their replacements are initialized: budgets may delay the drain of the nodes."""


class LegacyRepairQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="legacy-repair"):
    """Asks whether a broken node is deleted at once: Karpenter's way before v1.15."""

    snapshot: Snapshot
    """The nodes of its NodePool, or all of them if it has none; and the pods on it."""
    claim: str


NodeQuestion = DisruptionQuestion | ValidationQuestion | ConfirmationQuestion | LegacyRepairQuestion
"""Everything that a decision about the disruption of nodes is made on."""


class FillUpQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="fill-up"):
    """Asks how many nodes a NodePool of a fixed size gets."""

    now: datetime
    pool: PoolRecord
    heads: Headcount
    template: NodePool | None = None
    """What its nodes are made from; None if none are lacking."""
    is_synced: bool = True
    """Whether everything that is there was seen."""


class ThinOutQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="thin-out"):
    """Asks which nodes a NodePool of a fixed size gives up."""

    now: datetime
    pool: PoolRecord
    heads: Headcount
    nodes: tuple[Node, ...] = ()
    """All that it has; none if there are not too many."""
    pods: tuple[Pod, ...] = ()
    """The pods on these nodes."""
    reads_deletion_cost: bool = True
    """Whether `pod-deletion-cost` is what a user asks for; not where Karpy writes it."""


PoolQuestion = FillUpQuestion | ThinOutQuestion
"""Everything that a decision about the size of a NodePool is made on."""
