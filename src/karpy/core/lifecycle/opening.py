"""
A node opens for pods in two steps: it ends none any more, then lets pods in.

Between the two it has the gate, a taint that Karpenter takes off, too, if it takes over.
"""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.initialization import find_lack
from karpy.model.constraints import (
    DISRUPTED_TAINT,
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY_TAINT,
    UNREGISTERED_TAINT,
    Taint,
    is_disrupted,
    is_gate,
)
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.requirement import as_integer
from karpy.model.times import span

HEARING_TIME: Final = timedelta(seconds=0.5)
"""A busy kube-controller-manager takes this long to hear that a node ends nobody any more."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Door(Enum):
    """When a node may open that has registered."""

    FREE = "Free"
    """As soon as it is safe."""
    HELD = "Held"
    """Not yet: its pods have not been told of it."""
    CALLED = "Called"
    """At once: its pods know it."""


# Differs: Karpenter opens a node by taking off a taint that ends pods. Where pods come at once,
# kube-controller-manager may hear of them before it hears of that, and ends them.
def shut(node: NodeRecord, now: datetime) -> NodeRecord:
    """Have a node keep pods away by a taint that ends nobody, instead of one that does."""
    taints = tuple(each for each in node.taints if not is_closed(each))
    if len(taints) == len(node.taints):
        return node
    if any(map(is_disrupted, taints)):
        return replace(node, taints=taints)
    return replace(node, taints=(*taints, gate(now)))


def opened(node: NodeRecord, door: Door, now: datetime) -> tuple[NodeRecord, timedelta | None]:
    """
    Return a node as it should be, and how long it still keeps pods away; None if that is not known.

    It opens once kube-controller-manager has seen that it is ready, which takes a busy one seconds;
    a node that is called upon does not wait for that.
    """
    since = _shut_since(node)
    if since is None:
        return node, timedelta()
    if door is Door.CALLED:
        node = relieved(node)
    if door is Door.HELD or any(map(_is_unready, node.taints)):
        return node, None
    left = since + HEARING_TIME - now
    # A moment far ahead was read off another clock, of a leader that is no more.
    if timedelta() < left <= 2 * HEARING_TIME:
        return node, min(left, HEARING_TIME)
    return _unlocked(node), timedelta()


def stands_ready(claim: ClaimRecord, node: NodeRecord) -> bool | None:
    """Say whether pods could come as soon as a node opens; None if that may change in a moment."""
    if any(map(is_closed, node.taints)):
        return None
    if _shut_since(node) is None:
        return False
    if not node.is_ready:
        return None
    return find_lack(claim, _unlocked(relieved(node))) is None


def relieved(node: NodeRecord) -> NodeRecord:
    """Take off what says that a node is not ready, if it is."""
    if not node.is_ready:
        return node
    return replace(node, taints=tuple(each for each in node.taints if not _is_unready(each)))


def gate(now: datetime) -> Taint:
    """Return what keeps pods away after registration; it says since when, in milliseconds."""
    return Taint(DISRUPTED_TAINT, NO_SCHEDULE, str(round(now.timestamp() * 1000)))


def is_closed(taint: Taint) -> bool:
    """Say whether a taint keeps pods away until registration, and ends those that are there."""
    return taint.key == UNREGISTERED_TAINT and taint.effect == NO_EXECUTE


def _is_unready(taint: Taint) -> bool:
    return taint.key == NOT_READY_TAINT and taint.effect == NO_SCHEDULE


def _shut_since(node: NodeRecord) -> datetime | None:
    for taint in node.taints:
        if is_gate(taint):
            return _EPOCH + span((as_integer(taint.value) or 0) / 1000)
    return None


def _unlocked(node: NodeRecord) -> NodeRecord:
    return replace(node, taints=tuple(each for each in node.taints if not is_gate(each)))
