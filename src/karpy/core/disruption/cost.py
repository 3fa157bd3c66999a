"""
What it costs to disrupt pods and nodes: not money, but trouble.

Exact integers: a pod that nothing is known about costs `POD`. Orders then depend on nothing else.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from karpy.model.pods import Pod, PodDisruption
from karpy.model.records import ClaimRecord

POD: Final = 2**27
"""What an ordinary pod costs, and a node on top of its pods."""
_PER_PRIORITY: Final = 4
_MOST: Final = 10 * POD
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_INT32: Final = range(-(2**31), 2**31)


class Costs:
    """What it costs to move pods; pods that say the same of their disruption are looked at once."""

    def __init__(self, *, reads_deletion_cost: bool = True) -> None:
        """Take whether `pod-deletion-cost` is what a user asks for; not where Karpy writes it."""
        self._reads_deletion_cost = reads_deletion_cost
        self._known: dict[int, tuple[PodDisruption, int]] = {}

    def of(self, pod: Pod) -> int:
        """Return what it costs to move a pod: more by annotation and by priority, within bounds."""
        said = pod.disruption
        known = self._known.get(id(said))
        if known is None:
            # The value is kept beside its identity, so that no other value can have it.
            known = self._known[id(said)] = said, self._cost(said)
        return known[1]

    def of_moving(self, pods: Iterable[Pod]) -> int:
        """Return what it costs to move the pods of a node, which itself counts as one."""
        return POD + sum(max(0, self.of(each)) for each in pods)

    def of_disruption(self, pods: Iterable[Pod], claim: ClaimRecord, now: datetime) -> Fraction:
        """Return what it costs to disrupt all pods of a node, less the nearer its end is anyway."""
        return sum(self.of(each) for each in pods) * lifetime_remaining(claim, now)

    def _cost(self, said: PodDisruption) -> int:
        text = said.disruption_cost
        if text is None and self._reads_deletion_cost:
            text = said.deletion_cost
        cost = POD + read_cost(text) + _PER_PRIORITY * said.priority
        return max(-_MOST, min(cost, _MOST))


def lifetime_remaining(claim: ClaimRecord, now: datetime) -> Fraction:
    """Return which share of its life a node still has before it, from 0 to 1."""
    if claim.expire_after is None or claim.meta.created is None:
        return Fraction(1)
    if not claim.expire_after:
        return Fraction(0)
    left = claim.expire_after - (now - claim.meta.created)
    share = Fraction(_micros(left), _micros(claim.expire_after))
    return max(Fraction(0), min(share, Fraction(1)))


def read_cost(text: str | None) -> int:
    """Return the cost that an annotation says, an `int32`; anything else is zero."""
    if text is None or not _INTEGER.fullmatch(text):
        return 0
    number = int(text)
    return number if number in _INT32 else 0


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
