"""What is asked about nodes: everything that a decision about them is made on."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from karpy.model.disruption import DisruptionReason
from karpy.model.repairs import RepairPolicy
from karpy.model.surroundings import Surroundings


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


DisruptionQuestion = EmptyNodesQuestion | BrokenNodesQuestion | SecondLookQuestion
"""Everything that a decision about the disruption of nodes is made on; tags begin with reasons."""
