"""How long a NodeClaim may take to launch and register, and when it expires."""

from datetime import datetime, timedelta
from typing import Final

from karpy.core.lifecycle.changes import Changes, Remark, disruption_counts
from karpy.core.lifecycle.conditions import LAUNCHED, REGISTERED, changed
from karpy.model.records import ClaimRecord
from karpy.model.times import write_duration

LAUNCH_TIMEOUT: Final = timedelta(minutes=5)
REGISTRATION_TIMEOUT: Final = timedelta(minutes=15)


def check_liveness(
    claim: ClaimRecord, now: datetime, launch_timeout: timedelta = LAUNCH_TIMEOUT
) -> Changes:
    """Delete a claim that is not launched or not registered in time."""
    if claim.meta.is_deleting or claim.conditions.is_true(REGISTERED):
        return Changes()
    if claim.conditions.is_true(LAUNCHED):
        since, timeout = changed(claim, REGISTERED), REGISTRATION_TIMEOUT
        reason = "registration_timeout"
    else:
        since, timeout, reason = changed(claim, LAUNCHED), launch_timeout, "launch_timeout"
    remaining = since + timeout - now
    if remaining > timedelta():
        return Changes(requeue_after=remaining)
    fields = {"timeout": write_duration(timeout), "reason": reason}
    return Changes(
        deletes_claim=True,
        counts=disruption_counts(claim, reason),
        remarks=(Remark("terminating due to timeout", fields),),
        has_registered=False,
    )


def check_expiry(claim: ClaimRecord, now: datetime, pods: int = 0) -> Changes:
    """
    Delete a claim that is older than its expireAfter, regardless of budgets and do-not-disrupt.

    `pods` is the number of pods that must be rescheduled.
    """
    if claim.meta.is_deleting or claim.expire_after is None or claim.meta.created is None:
        return Changes()
    remaining = claim.meta.created + claim.expire_after - now
    if remaining > timedelta():
        return Changes(requeue_after=remaining)
    return Changes(deletes_claim=True, counts=disruption_counts(claim, "expired", pods))
