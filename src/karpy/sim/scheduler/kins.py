"""Pods that look alike to other pods, and how they came and went."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final, TypeAlias

from karpy.sim.scheduler.terms import PodTerms

CHANGES_MAX: Final = 8_000
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
        """Forget the first changes, up to so many changes of all nodes."""
        del self.changes[: bisect_right(self.changes, (position, _LAST))]

    def since(self, position: int) -> list[Change]:
        """Return the changes after so many changes of all nodes."""
        return self.changes[bisect_right(self.changes, (position, _LAST)) :]
