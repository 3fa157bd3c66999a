"""Pods that look alike to other pods, and how they came and went."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final, TypeAlias

from karpy.sim.scheduler.terms import PodTerms

CHANGES_MAX: Final = 20_000
"""Who is further behind than that starts anew."""
_LAST: Final = float("inf")

Change: TypeAlias = tuple[int, int, int, int]
"""
Pods came to a slot or went.

The position of the change, the slot, how many pods more, and how many more that are not being
deleted.
"""


class Kin:
    """Pods that look alike to other pods: namespace, labels, and terms about others."""

    __slots__ = (
        "__weakref__",
        "changes",
        "forgotten",
        "labels",
        "namespace",
        "serial",
        "terms",
    )

    def __init__(
        self, serial: int, namespace: str, labels: Mapping[str, str], terms: PodTerms
    ) -> None:
        self.serial = serial
        self.namespace = namespace
        self.labels = labels
        self.terms = terms
        self.changes: list[Change] = []
        self.forgotten = 0
        """The changes are complete after so many changes of all nodes."""

    def note(self, change: Change) -> None:
        """Remember that such pods came or went."""
        self.changes.append(change)
        if len(self.changes) > CHANGES_MAX:
            half = CHANGES_MAX // 2
            self.forgotten = self.changes[half - 1][0]
            del self.changes[:half]

    def since(self, position: int) -> list[Change]:
        """Return the changes after so many changes of all nodes."""
        return self.changes[bisect_right(self.changes, (position, _LAST)) :]
