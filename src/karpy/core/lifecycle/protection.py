"""Pods that do not want to be disturbed, for good or for a while."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.identities import about_pod
from karpy.model.annotations import DO_NOT_DISRUPT
from karpy.model.leaving import LeavingPod
from karpy.model.notices import Notice
from karpy.model.times import DURATION_LENGTH_MAX, parse_duration, write_moment

_ELAPSED: Final = f"The {DO_NOT_DISRUPT} grace period has elapsed, pod is now disruptable"


class Protection(Struct, frozen=True, gc=False):
    """Whether a pod may not be disturbed now, until when, and what its owner is told about it."""

    is_active: bool = False
    until: datetime | None = None
    """None if there is no end, or none is known yet."""
    notices: tuple[Notice, ...] = ()


def protection_of(pod: LeavingPod, now: datetime) -> Protection:
    """Read what a pod's annotation asks for: `true`, or a time that begins with the pod."""
    value = pod.do_not_disrupt
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
        told = Notice(
            about_pod(pod), "DoNotDisruptGracePeriodElapsed", _ELAPSED, same_as=(pod.uid,)
        )
        return Protection(until=until, notices=(told,))
    moment = write_moment(until)
    note = f"The {DO_NOT_DISRUPT} grace period will elapse at {moment}"
    told = Notice(about_pod(pod), "DoNotDisruptUntil", note, same_as=(pod.uid, moment))
    return Protection(is_active=True, until=until, notices=(told,))


def is_evictable(pod: LeavingPod, now: datetime) -> bool:
    """Say whether a pod may be asked to go."""
    if not pod.is_active or pod.is_static or pod.tolerates_disruption:
        return False
    return not protection_of(pod, now).is_active


def _invalid(pod: LeavingPod, value: str) -> Notice:
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
