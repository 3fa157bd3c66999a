"""What to do with a NodeClaim when the cloud announces the interruption of its machine."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from karpy.core.lifecycle.changes import Changes, about_claim, about_node, disruption_counts, joined
from karpy.core.lifecycle.repair import with_termination_deadline
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord


class Announcement(Struct, frozen=True, gc=False):
    """What a cloud announces about a machine."""

    reason: str
    """The value of the label `reason` in metrics: `spot_interrupted`."""
    event: str
    """The reason of the event: `SpotInterrupted`."""
    note: str
    is_advice: bool = False
    """Whether to emit an event only."""
    is_forceful: bool = False
    """Whether to delete the pods without a grace period: the machine does not work any more."""


def interrupt(
    claim: ClaimRecord,
    nodes: Iterable[NodeRecord],
    announcement: Announcement,
    now: datetime,
    pods: int | None = None,
) -> Changes:
    """Delete a claim whose machine is interrupted, unless it is only advice; emit events."""
    subjects = [about_claim(claim), *map(about_node, nodes)]
    changes = Changes(
        notices=tuple(
            Notice(
                each,
                announcement.event,
                announcement.note,
                is_warning=not announcement.is_advice,
                same_as=(each.uid,),
            )
            for each in subjects
        )
    )
    if announcement.is_advice or claim.meta.is_deleting:
        return changes
    terminating = tuple(
        Notice(
            each,
            "TerminatingOnInterruption",
            "Interruption triggered termination for the node",
            is_warning=True,
            same_as=(each.uid,),
        )
        for each in subjects
    )
    deletion = Changes(
        with_termination_deadline(claim, now) if announcement.is_forceful else None,
        deletes_claim=True,
        notices=terminating,
        counts=disruption_counts(claim, announcement.reason, pods),
    )
    return joined(changes, deletion)
