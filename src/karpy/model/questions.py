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


DisruptionQuestion = EmptyNodesQuestion | BrokenNodesQuestion
"""Everything that a decision about the disruption of nodes is made on; tags are reasons."""
