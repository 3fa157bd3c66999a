"""When a pod last came to a node or left it, for consolidation to wait until it is quiet."""

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.outcomes import Outcome
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.records import ClaimRecord

PAUSE: Final = timedelta(seconds=10)
"""So often a claim is written at most; shorter than the wait before a disruption is validated."""


def note_pod_event(claim: ClaimRecord, before: Pod | None, after: Pod, now: datetime) -> Outcome:
    """
    Note on a claim that a pod came to its node or began to leave it.

    `before` is the pod as it was last seen; None at first sight.
    """
    if not _is_event(claim, before, after):
        return Outcome()
    last = claim.last_pod_event
    if last is not None and now - last < PAUSE:
        return Outcome()
    return Outcome(replace(claim, last_pod_event=now))


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
