"""What is asked about nodes: everything that a decision about them is made on."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from karpy.model.disruption import DisruptionReason
from karpy.model.pools import Headcount, NodePool
from karpy.model.records import PoolRecord
from karpy.model.repairs import RepairPolicy
from karpy.model.snapshot import Snapshot
from karpy.model.surroundings import NodeState, Surroundings


class EmptyNodesQuestion(
    Struct, frozen=True, gc=False, tag_field="reason", tag=DisruptionReason.EMPTY.value
):
    """Asks which nodes may go since nobody needs them."""

    surroundings: Surroundings


class BrokenNodesQuestion(
    Struct, frozen=True, gc=False, tag_field="reason", tag=DisruptionReason.UNHEALTHY.value
):
    """Asks which broken nodes may be repaired."""

    surroundings: Surroundings
    policies: tuple[RepairPolicy, ...] = ()
    reboots: Mapping[str, tuple[datetime, ...]] = {}
    """When nodes were rebooted, by the UID of their claim."""


class ProposedNode(Struct, frozen=True, gc=False):
    """A node that was chosen to go, by the names it had then."""

    claim: str
    node: str


class SecondLookQuestion(
    Struct,
    frozen=True,
    gc=False,
    tag_field="reason",
    tag=f"{DisruptionReason.EMPTY.value}/second-look",
):
    """Asks which of the nodes that were proposed as empty may go, now that some time is over."""

    surroundings: Surroundings
    """As the proposal sees them: its own nodes are not busy."""
    proposed: tuple[ProposedNode, ...] = ()
    """In the order in which they were chosen."""


class _Confirmation(Struct, frozen=True, gc=False, tag_field="reason"):
    surroundings: Surroundings
    """The nodes alone, with the pods that the API server has just listed there."""
    proposed: tuple[ProposedNode, ...] = ()


class EmptyConfirmationQuestion(
    _Confirmation, frozen=True, gc=False, tag=f"{DisruptionReason.EMPTY.value}/confirmation"
):
    """Asks which nodes are still empty, just before they are marked or deleted."""


class RepairConfirmationQuestion(
    _Confirmation, frozen=True, gc=False, tag=f"{DisruptionReason.UNHEALTHY.value}/confirmation"
):
    """Asks which broken nodes, whose drain has no end, have no pod that forbids it."""


class TreatmentQuestion(
    Struct,
    frozen=True,
    gc=False,
    tag_field="reason",
    tag=f"{DisruptionReason.UNHEALTHY.value}/treatment",
):
    """Asks what is done about the broken nodes that may be repaired, and what replaces one."""

    surroundings: Surroundings
    snapshot: Snapshot
    """The pods that need another place, and where they could find one."""
    policies: tuple[RepairPolicy, ...] = ()
    reboots: Mapping[str, tuple[datetime, ...]] = {}
    """When nodes were rebooted, by the UID of their claim."""
    may_go_first: bool = False
    """Whether a node may go before its replacement comes if there is no other way."""
    tried: frozenset[str] = frozenset()
    """Claims that had their turn at this look already, in vain."""


class LegacyRepairQuestion(
    Struct,
    frozen=True,
    gc=False,
    tag_field="reason",
    tag=f"{DisruptionReason.UNHEALTHY.value}/legacy",
):
    """Asks whether a broken node is given up at once: Karpenter's way before v1.15."""

    surroundings: Surroundings
    """The nodes of its pool, or all of them if it has none."""
    broken: NodeState
    policies: tuple[RepairPolicy, ...] = ()


ConfirmationQuestion = EmptyConfirmationQuestion | RepairConfirmationQuestion
"""Asks whether nodes may go, after everything else was asked."""
PlainQuestion = (
    EmptyNodesQuestion
    | BrokenNodesQuestion
    | SecondLookQuestion
    | ConfirmationQuestion
    | LegacyRepairQuestion
)
"""What is asked of the surroundings alone."""
DisruptionQuestion = PlainQuestion | TreatmentQuestion
"""Everything that a decision about the disruption of nodes is made on; tags begin with reasons."""


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
    nodes: tuple[NodeState, ...] = ()
    """All that it has; none if there are not too many."""


PoolQuestion = FillUpQuestion | ThinOutQuestion
"""Everything that a decision about the size of a NodePool is made on."""
