"""The eviction of one pod: whether it is allowed, the next request, what the response means."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Count, about_node, about_pod
from karpy.core.lifecycle.conditions import DISRUPTION_REASON
from karpy.model.labels import DO_NOT_DISRUPT
from karpy.model.notices import Notice
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.times import DURATION_LENGTH_MAX, parse_duration, write_moment

PDB_VIOLATED: Final = "evicting pod violates a PDB"
PDBS_UNSUPPORTED: Final = "eviction does not support multiple PDBs"
_OK: Final = 200
_REDIRECT: Final = 300
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_TOO_MANY: Final = 429
_FORCED: Final = "Forceful Termination"
_LEAST_GRACE: Final = timedelta(seconds=1)
_ELAPSED: Final = f"The {DO_NOT_DISRUPT} grace period has elapsed, pod is now disruptable"


class EvictionMode(Enum):
    """What happens at the deadline: the pod is deleted, or left on its node."""

    FORCE_DELETE = "ForceDelete"
    TIMEOUT = "Timeout"


class Eviction(Struct, frozen=True, gc=False):
    """A pod to evict."""

    namespace: str
    name: str
    uid: str
    mode: EvictionMode = EvictionMode.FORCE_DELETE
    deadline: datetime | None = None
    """The time by which the pod must be gone; None is no deadline."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class EvictionVerb(Enum):
    """What to do with a pod that is to be evicted."""

    DROP = "Drop"
    """Send no request: the pod is gone, is deleting, or need not be evicted any more."""
    EVICT = "Evict"
    DELETE = "Delete"
    RETRY = "Retry"
    """Send no request now, but later: do-not-disrupt protects the pod."""


class EvictionStep(Struct, frozen=True, gc=False):
    """What to do with a pod, and the events to emit before that."""

    verb: EvictionVerb
    grace_seconds: int | None = None
    """Grace period of the deletion."""
    notices: tuple[Notice, ...] = ()


class EvictionAnswer(Struct, frozen=True, gc=False):
    """What the API server's response to an eviction or a deletion means."""

    is_done: bool
    refusal: str = ""
    """Why the eviction was refused for now."""
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()


def merged(known: Eviction | None, new: Eviction) -> Eviction:
    """Merge an eviction with the queued one: the earlier deadline, ForceDelete before Timeout."""
    if known is None or known.uid != new.uid:
        return new
    if known.mode is not new.mode:
        return known if known.mode is EvictionMode.FORCE_DELETE else new
    times = [each for each in (known.deadline, new.deadline) if each is not None]
    return replace(new, deadline=min(times, default=None))


def next_step(eviction: Eviction, pod: Pod | None, now: datetime) -> EvictionStep:
    """Return what to do with a pod that is to be evicted, given its present state."""
    if pod is None or pod.uid != eviction.uid:
        return EvictionStep(EvictionVerb.DROP)
    is_forced = eviction.mode is EvictionMode.FORCE_DELETE
    if not is_forced and eviction.deadline is not None and now >= eviction.deadline:
        return EvictionStep(EvictionVerb.DROP)
    # Differs: a pod that completes while its node is drained: Karpenter deletes it, and its result
    # with it; Karpy leaves it.
    if pod.is_terminal:
        return EvictionStep(EvictionVerb.DROP)
    if (
        is_forced
        and eviction.deadline is not None
        and is_past_threshold(pod, eviction.deadline, now)
    ):
        return _forced(pod, eviction.deadline, now)
    if pod.is_deleting or pod.is_static or pod.tolerates_disruption:
        return EvictionStep(EvictionVerb.DROP)
    protection = protection_of(pod, now)
    return EvictionStep(
        EvictionVerb.RETRY if protection.is_active else EvictionVerb.EVICT,
        notices=protection.notices,
    )


def is_past_threshold(pod: Pod, deadline: datetime, now: datetime) -> bool:
    """Say whether a pod must be deleted now to stop before the deadline of its node."""
    if pod.deleted is None:
        return now > deadline - pod.disruption.grace
    # Differs: a pod whose grace period cannot be shortened at the end of a drain: Karpenter deletes
    # it again and again; Karpy deletes it once, because more requests change nothing.
    return pod.deleted > deadline and pod.deleted > now + _grace(deadline, now)


def after_eviction(pod: Pod, node: NodeRecord | None, reason: str, code: int) -> EvictionAnswer:
    """Interpret the response to an eviction; `reason` is why the node is disrupted."""
    counted = Count("pods_eviction_requests_total", {"code": str(code)})
    if _OK <= code < _REDIRECT:
        notice = Notice(about_pod(pod), "Evicted", f"Evicted pod: {reason}", same_as=(pod.name,))
        asked = Count("pods_eviction_requests_total", {"code": str(_OK)})
        return EvictionAnswer(True, notices=(notice,), counts=(asked, _drained(reason)))
    if code in {_NOT_FOUND, _CONFLICT}:
        return EvictionAnswer(True, counts=(counted,))
    if code == _TOO_MANY:
        return _refused(pod, node, PDB_VIOLATED, counted)
    return EvictionAnswer(False, counts=(counted,))


def after_budget_conflict(pod: Pod, node: NodeRecord | None, code: int) -> EvictionAnswer:
    """Interpret a refused eviction: several PodDisruptionBudgets select the pod."""
    counted = Count("pods_eviction_requests_total", {"code": str(code)})
    return _refused(pod, node, PDBS_UNSUPPORTED, counted)


def after_deletion(reason: str, code: int) -> EvictionAnswer:
    """Interpret the response to a forced deletion."""
    if _OK <= code < _REDIRECT:
        return EvictionAnswer(True, counts=(_drained(reason),))
    return EvictionAnswer(code in {_NOT_FOUND, _CONFLICT})


def eviction_reason(claim: ClaimRecord | None) -> str:
    """Return the reason for evictions from the node of a claim; empty without a claim."""
    if claim is None:
        return ""
    condition = claim.conditions.get(DISRUPTION_REASON)
    return condition.reason if condition is not None and condition.is_true else _FORCED


def drain_failed_notice(node: NodeRecord, why: str, *same_as: str) -> Notice:
    """Return the event that a node cannot be drained, and why."""
    return Notice(
        about_node(node),
        "FailedDraining",
        f"Failed to drain node, {why}",
        is_warning=True,
        same_as=(node.name, *same_as),
    )


def _forced(pod: Pod, deadline: datetime, now: datetime) -> EvictionStep:
    seconds = _grace(deadline, now) // timedelta(seconds=1)
    own = pod.disruption.grace // timedelta(seconds=1)
    note = (
        f"Deleting the pod because its node ends by {write_moment(deadline)}. It has {seconds} of "
        f"its {own} seconds to stop, whatever its disruption budgets and annotations say."
    )
    notice = Notice(about_pod(pod), "Disrupted", note, same_as=(pod.name,))
    return EvictionStep(EvictionVerb.DELETE, seconds, (notice,))


def _grace(deadline: datetime, now: datetime) -> timedelta:
    whole = (deadline - now) // timedelta(seconds=1)
    return max(timedelta(seconds=whole), _LEAST_GRACE)


def _refused(pod: Pod, node: NodeRecord | None, why: str, counted: Count) -> EvictionAnswer:
    if node is None:
        # The node is gone, and so is the pod.
        return EvictionAnswer(True, counts=(counted,))
    # Differs: events about refused evictions: Karpenter emits one per node, which names one pod;
    # Karpy emits one for each pod, so that each shows in `kubectl describe pod`.
    notice = drain_failed_notice(node, f"{why} (Pod={pod.key})", pod.key)
    return EvictionAnswer(False, why, (notice,), (counted,))


def _drained(reason: str) -> Count:
    return Count("pods_drained_total", {"reason": reason})


class Protection(Struct, frozen=True, gc=False):
    """Whether do-not-disrupt protects a pod now, until when, and the events about it."""

    is_active: bool = False
    until: datetime | None = None
    """None if the protection has no end or the pod has not started."""
    notices: tuple[Notice, ...] = ()


def protection_of(pod: Pod, now: datetime) -> Protection:
    """Read the do-not-disrupt annotation: `true`, or a duration from the start of the pod."""
    value = pod.disruption.do_not_disrupt
    if value is None:
        return Protection()
    if value == "true":
        return Protection(is_active=True)
    duration = parse_duration(value)
    if duration is None or duration <= timedelta():
        return Protection(notices=(_invalid(pod, value),))
    if pod.started is None:
        return Protection(is_active=True)
    until = pod.started + duration
    if now >= until:
        notice = Notice(
            about_pod(pod), "DoNotDisruptGracePeriodElapsed", _ELAPSED, same_as=(pod.uid,)
        )
        return Protection(until=until, notices=(notice,))
    moment = write_moment(until)
    note = f"The {DO_NOT_DISRUPT} grace period will elapse at {moment}"
    notice = Notice(about_pod(pod), "DoNotDisruptUntil", note, same_as=(pod.uid, moment))
    return Protection(is_active=True, until=until, notices=(notice,))


def is_evictable(pod: Pod, now: datetime) -> bool:
    """Say whether a pod may be evicted."""
    if not pod.is_active or pod.is_static or pod.tolerates_disruption:
        return False
    return not protection_of(pod, now).is_active


def is_held(pod: Pod, budgets: Iterable[DisruptionBudget], now: datetime) -> bool:
    """Say whether do-not-disrupt or a PodDisruptionBudget keeps every drain from evicting a pod."""
    if not pod.is_active:
        return False
    if pod.disruption.do_not_disrupt is not None and protection_of(pod, now).is_active:
        return True
    return any(
        each.forbids_all and each.covers(pod) and not (pod.is_unready and each.allows_unready)
        for each in budgets
    )


def _invalid(pod: Pod, value: str) -> Notice:
    shown = value if len(value) <= DURATION_LENGTH_MAX else f"{value[:DURATION_LENGTH_MAX]}..."
    problem = f"`{shown}` is neither `true` nor a positive duration such as `4h`"
    note = f"Invalid {DO_NOT_DISRUPT} annotation: {problem}, ignoring annotation"
    return Notice(
        about_pod(pod),
        "InvalidDoNotDisruptAnnotation",
        note,
        is_warning=True,
        same_as=(pod.uid, note),
    )
