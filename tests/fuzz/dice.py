"""Seeded random draws, and the features that one cluster uses."""

from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Feature(Enum):
    """A part of the scheduling rules; each cluster uses a few of them often."""

    AFFINITY = "pods near other pods"
    ANTI_AFFINITY = "pods away from other pods"
    BOUNDS = "Gt and Lt"
    DAEMONS = "DaemonSets"
    DEFAULT_SPREADS = "spreads deduced from Services and controllers"
    IGNORE = "PreferencePolicy Ignore"
    LABEL_KEYS = "matchLabelKeys and mismatchLabelKeys"
    LIMITS = "limits of NodePools"
    MIN_VALUES = "minValues"
    NAMESPACES = "terms about other namespaces"
    NODES = "nodes that exist"
    NODE_WISHES = "preferred node affinity"
    ODD_PODS = "pods that are refused at once or not considered"
    ODD_POOLS = "pools that take no part, types of their own"
    OVERLAYS = "NodeOverlays"
    OVERRIDES = "offerings with more or less capacity"
    POD_WISHES = "preferred pod affinity and anti-affinity"
    PORTS = "host ports"
    RESERVATIONS = "reserved capacity"
    SELECTORS = "node selectors and required node affinity"
    SOFT_TAINTS = "PreferNoSchedule"
    SPREADS = "topology spread"
    SPREAD_DETAILS = "minDomains, policies, skews"
    SPREAD_WISHES = "ScheduleAnyway"
    TAINTS = "taints and tolerations"
    TERMS = "several required node affinity terms"
    VOLUMES = "volumes"
    WEIGHTS = "weights of NodePools"


class Dice:
    """The only source of random draws; equal seeds give equal draws everywhere."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        every = list(Feature)
        # A few features at once interact more often than all of them; sometimes use all.
        count = self.one([2, 3, 4, 5, 6, 8, 12, len(every)])
        self.features = frozenset(self._random.sample(every, count))

    def has(self, feature: Feature, probability: float = 0.6) -> bool:
        """Draw whether a feature is used here; never if the cluster does not use it."""
        thrown = self._random.random() < probability
        return feature in self.features and thrown

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def one(self, some: Sequence[T]) -> T:
        return some[self._random.randrange(len(some))]

    def some(self, of: Sequence[T], least: int = 1, most: int | None = None) -> list[T]:
        """Draw a few different items, in random order."""
        count = self.number(min(least, len(of)), min(len(of) if most is None else most, len(of)))
        return self._random.sample(list(of), count)

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)
