"""Pod classes: pods that affinity and spread cannot tell apart, and a log of their changes."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final, TypeAlias

from karpy.sim.scheduler.terms import PodTerms

CHANGES_MAX: Final = 8_000
"""Length of the log; a reader further behind must count from scratch."""
_LAST: Final = float("inf")

Change: TypeAlias = tuple[int, int, int, int]
"""
Pods of a class were added to a slot or removed.

The position of the change, the slot, the change of the number of pods, and that of pods that are
not deleting.
"""


class Kin:
    """A class of pods with equal namespace, labels and affinity terms."""

    __slots__ = (
        "__weakref__",
        "changes",
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

    def forget(self, position: int) -> None:
        """Drop the changes up to a position of the log of all nodes."""
        del self.changes[: bisect_right(self.changes, (position, _LAST))]

    def since(self, position: int) -> list[Change]:
        """Return the changes after a position of the log of all nodes."""
        return self.changes[bisect_right(self.changes, (position, _LAST)) :]
