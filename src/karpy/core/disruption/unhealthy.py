"""Conditions that nodes are repaired for, by the policies of their cloud."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from msgspec import Struct

from karpy.model.conditions import FALSE, REBOOTING, TRUE, UNKNOWN, Condition
from karpy.model.nodes import RepairAction, RepairPolicy
from karpy.model.records import ClaimRecord, NodeRecord

_MOMENT: Final = timedelta(microseconds=1)
_AGEING: Final = timedelta(minutes=30) // _MOMENT
"""After so much waiting a fault counts as much as one of the next priority."""
_PRIORITIES: Final = range(101)
_STATUSES: Final = frozenset({TRUE, FALSE, UNKNOWN})
_SEVERITY: Final = {RepairAction.REBOOT: 0, RepairAction.REPLACE: 1}


class Match(Struct, frozen=True, gc=False):
    """A condition of a node, a policy that matches it, and when that policy begins to apply."""

    condition: Condition
    policy: RepairPolicy
    due: datetime


class DueRepair(Struct, frozen=True, gc=False):
    """How a node is repaired, and how urgent that is."""

    action: RepairAction
    match: Match
    """Why: what logs, metrics and conditions name."""
    grace_period: timedelta | None = None
    """Bounds the drain; None leaves that to the claim."""
    score: Fraction = Fraction()


def find_repair(
    claim: ClaimRecord, node: NodeRecord, policies: Sequence[RepairPolicy], now: datetime
) -> DueRepair | None:
    """Return the repair that is due for a node; None if it is healthy, or tolerated for now."""
    due = [each for each in find_matches(claim, node, policies) if each.due <= now]
    if not due:
        return None
    first = min(due, key=_most_disruptive_first)
    periods = [each.policy.grace_period for each in due if each.policy.grace_period is not None]
    priorities = sorted({each.priority for each in policies})
    scores = (
        priorities.index(each.policy.priority) + Fraction((now - each.due) // _MOMENT, _AGEING)
        for each in due
    )
    return DueRepair(first.policy.action, first, min(periods, default=None), max(scores))


def find_matches(
    claim: ClaimRecord, node: NodeRecord, policies: Sequence[RepairPolicy]
) -> Iterator[Match]:
    """Find the policies that match conditions of a node, now or soon."""
    known = {(each.condition, each.status) for each in policies}
    for condition in node.conditions:
        if (condition.type, condition.status) in known:
            # Conditions may be older than the node if it was restored, or rebooted to heal them.
            since = max([condition.changed, *_beginnings(claim, node)])
            for policy in _policies_for(condition, policies):
                yield Match(condition, policy, since + policy.toleration)


def is_unhealthy(node: NodeRecord, policies: Sequence[RepairPolicy]) -> bool:
    """Say whether a policy matches a condition of a node, whatever its reason and its age."""
    known = {(each.condition, each.status) for each in policies}
    return any((each.type, each.status) in known for each in node.conditions)


def find_policy_faults(policies: Sequence[RepairPolicy]) -> tuple[str, ...]:
    """Say what is wrong with a cloud's policies; with any of it nothing is repaired."""
    if not policies:
        return ()
    faults = [fault for each in policies for fault in _faults(each)]
    fallbacks = [each for each in policies if not each.reason_pattern]
    if len(fallbacks) != 1:
        faults.append(f"{len(fallbacks)} policies apply to any reason; it must be exactly one")
    elif fallbacks[0].action is not RepairAction.REPLACE:
        faults.append("the policy that applies to any reason must replace the node")
    return tuple(faults)


def _policies_for(condition: Condition, policies: Sequence[RepairPolicy]) -> list[RepairPolicy]:
    """Return the policies for a condition's reason, or the one for all other reasons."""
    special = [
        each
        for each in policies
        if (each.condition, each.status) == (condition.type, condition.status)
        and each.reason_pattern
        and re.search(each.reason_pattern, condition.reason) is not None
    ]
    return special or [each for each in policies if not each.reason_pattern]


def _beginnings(claim: ClaimRecord, node: NodeRecord) -> list[datetime]:
    rebooted = claim.conditions.get(REBOOTING)
    found = [node.meta.created] if node.meta.created is not None else []
    if rebooted is not None and rebooted.status == FALSE:
        found.append(rebooted.changed)
    return found


def _most_disruptive_first(match: Match) -> tuple[int, int, datetime, str]:
    policy = match.policy
    return -_SEVERITY[policy.action], -policy.priority, match.due, match.condition.type


def _faults(policy: RepairPolicy) -> Iterator[str]:
    name = f"{policy.condition}={policy.status}"
    if not policy.condition:
        yield "a policy names no condition"
    if policy.status not in _STATUSES:
        yield f"{name}: a status is True, False or Unknown"
    if policy.toleration < timedelta() or (policy.grace_period or timedelta()) < timedelta():
        yield f"{name}: durations are not negative"
    if policy.priority not in _PRIORITIES:
        yield f"{name}: priority {policy.priority} is not between 0 and 100"
    try:
        re.compile(policy.reason_pattern)
    except re.error as error:
        yield f"{name}: `{policy.reason_pattern}` is no regular expression: {error}"
