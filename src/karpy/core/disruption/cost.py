"""
What it costs to disrupt pods and nodes: not money, but trouble.

Exact integers: a pod that nothing is known about costs `POD`. Orders then depend on nothing else.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from karpy.model.records import ClaimRecord
from karpy.model.tenants import Tenant

DISRUPTION_COST: Final = "karpenter.sh/disruption-cost"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
POD: Final = 2**27
"""What an ordinary pod costs, and a node on top of its pods."""
_PER_PRIORITY: Final = 4
_MOST: Final = 10 * POD
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_INT32: Final = range(-(2**31), 2**31)


def eviction_cost(tenant: Tenant, *, reads_deletion_cost: bool = True) -> int:
    """Say what it costs to move a pod: more by wish and by priority, within bounds."""
    annotations = tenant.annotations
    wish = annotations.get(DISRUPTION_COST)
    if wish is None and reads_deletion_cost:
        wish = annotations.get(POD_DELETION_COST)
    cost = POD + _number(wish) + _PER_PRIORITY * tenant.priority
    return max(-_MOST, min(cost, _MOST))


def moving_cost(tenants: Iterable[Tenant], *, reads_deletion_cost: bool = True) -> int:
    """Say what it costs to move the pods that want another node; the node itself counts as one."""
    costs = (
        eviction_cost(each, reads_deletion_cost=reads_deletion_cost)
        for each in tenants
        if each.is_reschedulable
    )
    return POD + sum(max(0, each) for each in costs)


def disruption_cost(
    tenants: Iterable[Tenant],
    claim: ClaimRecord,
    now: datetime,
    *,
    reads_deletion_cost: bool = True,
) -> Fraction:
    """Say what it costs to disrupt all pods of a node, less the nearer its end is anyway."""
    costs = (eviction_cost(each, reads_deletion_cost=reads_deletion_cost) for each in tenants)
    return sum(costs) * lifetime_remaining(claim, now)


def lifetime_remaining(claim: ClaimRecord, now: datetime) -> Fraction:
    """Return which share of its life a node still has before it, from 0 to 1."""
    if claim.expire_after is None or claim.meta.created is None:
        return Fraction(1)
    if not claim.expire_after:
        return Fraction(0)
    left = claim.expire_after - (now - claim.meta.created)
    share = Fraction(_micros(left), _micros(claim.expire_after))
    return max(Fraction(0), min(share, Fraction(1)))


def _number(text: str | None) -> int:
    """Read an `int32`; what is none counts as nothing."""
    if text is None or not _INTEGER.fullmatch(text):
        return 0
    number = int(text)
    return number if number in _INT32 else 0


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
