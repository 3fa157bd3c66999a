"""Whether a node is what its claim was promised."""

from datetime import datetime, timedelta
from typing import Final

from karpy.core.lifecycle.conditions import CONSISTENT, INITIALIZED, with_false, with_true
from karpy.core.lifecycle.identities import about_claim
from karpy.core.lifecycle.outcomes import Outcome, Remark
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.resources import format_quantity

PERIOD: Final = timedelta(minutes=10)
_LEAST_SHARE: Final = 0.9


def check_consistency(claim: ClaimRecord, node: NodeRecord, now: datetime) -> Outcome:
    """Tell if a node has less of something than its claim was promised."""
    if claim.meta.is_deleting:
        return Outcome()
    issues = find_issues(claim, node)
    if not issues:
        return Outcome(with_true(claim, CONSISTENT, now), look_again=PERIOD)
    notices = tuple(
        Notice(
            about_claim(claim),
            "FailedConsistencyCheck",
            issue,
            is_warning=True,
            same_as=(claim.meta.uid, issue),
        )
        for issue in issues
    )
    remarks = tuple(Remark("consistency error", {"error": each}, True) for each in issues)
    message = "Consistency Check Failed"
    said = with_false(claim, CONSISTENT, "ConsistencyCheckFailed", message, now)
    return Outcome(said, notices=notices, remarks=remarks, look_again=PERIOD)


def find_issues(claim: ClaimRecord, node: NodeRecord) -> tuple[str, ...]:
    """List what an initialized node has too little of."""
    if not claim.conditions.is_true(INITIALIZED):
        return ()
    issues = []
    for name in sorted(claim.requests):
        expected, found = claim.capacity.get(name, 0), node.capacity.get(name, 0)
        if not claim.requests[name] or not expected:
            continue
        share = found / expected
        if share < _LEAST_SHARE:
            issues.append(
                f"expected {format_quantity(expected, name)} of resource {name}, but found "
                f"{format_quantity(found, name)} ({share * 100:.1f}% of expected)"
            )
    return tuple(issues)
