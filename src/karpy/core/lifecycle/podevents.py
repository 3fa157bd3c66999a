"""When a pod last came to a node or left it, for consolidation to wait until it is quiet."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.markers import BUSY_TIME
from karpy.core.lifecycle.outcomes import Outcome
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.records import ClaimRecord

PAUSE: Final = timedelta(seconds=10)
"""So often a claim is written at most; shorter than the wait before a disruption is validated."""


class PodEvent(Struct, frozen=True):
    """What has happened to a pod."""

    before: Pod | None
    """The pod as it was last seen; None at first sight."""
    after: Pod
    moment: datetime


def note_pod_event(claim: ClaimRecord, event: PodEvent) -> Outcome:
    """Note on a claim that a pod came to its node or began to leave it."""
    if not _is_event(claim, event.before, event.after):
        return Outcome()
    last = claim.last_pod_event
    if last is not None and event.moment - last < PAUSE:
        return Outcome()
    return Outcome(replace(claim, last_pod_event=event.moment))


# Differs: Karpenter writes at once.
def can_wait(claim: ClaimRecord, since: datetime, now: datetime) -> bool:
    """
    Say whether events since a moment can be written later while many pods are on their way.

    Those are the first pods of a new node. Nobody takes it away yet, and the API server has more
    urgent things to do than to hear of them.
    """
    return claim.last_pod_event is None and now - since < BUSY_TIME


def _is_event(claim: ClaimRecord, before: Pod | None, after: Pod) -> bool:
    if not after.node_name or after.is_owned_by(DAEMON_SET):
        return False
    if before is None:
        # Differs: Karpenter takes every pod for new after a restart, and consolidation waits.
        return claim.last_pod_event is None or after.created > claim.last_pod_event
    return (
        not before.node_name
        or (after.is_terminal and not before.is_terminal)
        or (after.is_deleting and not before.is_deleting)
    )
