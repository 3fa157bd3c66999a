"""Seeded chance, and which features of the law one cluster is about."""

from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Feature(Enum):
    """A part of the law; each cluster is dense in a few of them."""

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
    """The only source of chance; the same seed throws the same numbers everywhere."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        every = list(Feature)
        # Few features at once interact more densely than all of them; now and then, all.
        count = self.one([2, 3, 4, 5, 6, 8, 12, len(every)])
        self.features = frozenset(self._random.sample(every, count))

    def has(self, feature: Feature, probability: float = 0.6) -> bool:
        """Say whether a feature is used here; never if the cluster is not about it."""
        thrown = self._random.random() < probability
        return feature in self.features and thrown

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def one(self, some: Sequence[T]) -> T:
        return some[self._random.randrange(len(some))]

    def some(self, of: Sequence[T], least: int = 1, most: int | None = None) -> list[T]:
        """Take a few different ones, in random order."""
        count = self.number(min(least, len(of)), min(len(of) if most is None else most, len(of)))
        return self._random.sample(list(of), count)

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)
