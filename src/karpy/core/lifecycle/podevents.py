"""When a pod last came to a node or left it, for consolidation to wait until it is quiet."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.conditions import INITIALIZED, changed
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
    # Differs: Karpenter notes the first pod of a node at once. That it was initialized says as much
    # for the moment; see `note_last_binding`.
    last = claim.last_pod_event or _initialized(claim)
    if last is None or now - last < PAUSE:
        return Outcome()
    return Outcome(replace(claim, last_pod_event=now))


def note_last_binding(claim: ClaimRecord, last: datetime | None, now: datetime) -> Outcome:
    """Note on a claim when the last of its first pods came, once they have been quiet for a bit."""
    opened = _initialized(claim)
    if claim.last_pod_event is not None or opened is None:
        return Outcome()
    due = max(opened, last or opened) + PAUSE
    if now < due:
        return Outcome(look_again=due - now)
    return Outcome() if last is None else Outcome(replace(claim, last_pod_event=last))


def last_binding(pods: Iterable[Pod]) -> datetime | None:
    """Return when the last of some pods came to its node, daemons aside."""
    moments = (pod.bound for pod in pods if not pod.is_owned_by(DAEMON_SET))
    return max((each for each in moments if each is not None), default=None)


def _initialized(claim: ClaimRecord) -> datetime | None:
    return changed(claim, INITIALIZED) if claim.conditions.is_true(INITIALIZED) else None


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
