"""Volumes that are still attached to a node that is empty."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.conditions import (
    VOLUMES_DETACHED,
    with_false,
    with_true,
    with_unknown,
)
from karpy.core.lifecycle.draining import Departing
from karpy.core.lifecycle.identities import about_node, listed
from karpy.core.lifecycle.outcomes import Outcome
from karpy.model.leaving import Attachment, LeavingPod
from karpy.model.notices import Notice

LOOK_AGAIN: Final = timedelta(seconds=1)
_AWAITING: Final = "AwaitingVolumeDetachment"
_ELAPSED: Final = "TerminationGracePeriodElapsed"


class Detachment(Struct, frozen=True, gc=False):
    """Whether the volumes of a node are off, or are waited for no longer."""

    outcome: Outcome
    is_done: bool = False


def find_pending(
    attachments: Iterable[Attachment],
    pods: Iterable[LeavingPod],
    volumes: Mapping[tuple[str, str], str],
    now: datetime,
) -> tuple[str, ...]:
    """
    Name the attachments to wait for: not those of pods that stay on the node.

    `volumes` are the PersistentVolumes by namespace and name of their claim.
    """
    kept = {
        volumes.get((pod.namespace, claim))
        for pod in pods
        if not pod.is_drainable(now)
        for claim in pod.volume_claims
    }
    return tuple(sorted(each.name for each in attachments if each.volume not in {"", *kept}))


def await_detachment(departing: Departing, pending: Sequence[str], now: datetime) -> Detachment:
    """Wait until volumes are off, so that pods can use them elsewhere, or until time is up."""
    claim, deadline = departing.claim, departing.deadline
    if not pending:
        if claim is not None:
            claim = with_true(claim, VOLUMES_DETACHED, now)
        return Detachment(Outcome(claim), is_done=True)
    if deadline is not None and now >= deadline:
        if claim is not None:
            claim = with_false(claim, VOLUMES_DETACHED, _ELAPSED, _ELAPSED, now)
        return Detachment(Outcome(claim), is_done=True)
    if claim is not None:
        claim = with_unknown(claim, VOLUMES_DETACHED, _AWAITING, _AWAITING, now)
    node = departing.node
    told = Notice(
        about_node(node),
        _AWAITING,
        f"Awaiting deletion of bound volumeattachments ({listed(tuple(pending))})",
        same_as=(node.name,),
    )
    return Detachment(Outcome(claim, notices=(told,), look_again=LOOK_AGAIN))
