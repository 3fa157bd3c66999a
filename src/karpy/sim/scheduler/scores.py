"""The scores of nodes for a pod, with the weights of kube-scheduler."""

from collections.abc import Sequence
from math import log
from operator import add
from typing import Final, TypeAlias

from karpy.sim.scheduler.nodes import NodeInfo
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.tallies import Tally
from karpy.sim.scheduler.wants import Wants

_BEST: Final = 100
_TAINT_WEIGHT: Final = 3
_AFFINITY_WEIGHT: Final = 2
_SPREAD_WEIGHT: Final = 2
_PREFERENCE_WEIGHT: Final = 2
_PAIR: Final = 2

Tastes: TypeAlias = tuple[int, int]
"""The number of untolerated soft taints of a node, and its node affinity weight."""
NO_TASTES: Final = (0, 0)


def own_score(wants: Wants, node: NodeInfo) -> int:
    """Score a node by its free CPU and memory, and by their balance."""
    cpu, memory = node.cpu, node.memory
    score = parts = 0
    if cpu:
        left = cpu - node.usual_cpu - wants.usual_cpu
        score += left * _BEST // cpu if left > 0 else 0
        parts += 1
    if memory:
        left = memory - node.usual_memory - wants.usual_memory
        score += left * _BEST // memory if left > 0 else 0
        parts += 1
    score = score // parts if parts else 0
    if not wants.cpu and not wants.memory:
        return score
    after, before = _balance(node, wants.cpu, wants.memory), _balance(node, 0, 0)
    return score + _BEST // 2 + (_BEST // 2 + after - before) // 2


def soft_taints(wants: Wants, node: NodeInfo) -> int:
    """Count the PreferNoSchedule taints of a node that a pod does not tolerate."""
    if not node.soft_taints:
        return 0
    return sum(not wants.tolerates(taint) for taint in node.soft_taints)


def preference(wants: Wants, node: NodeInfo) -> int:
    """Sum up the weights of the preferred terms that a node meets."""
    return sum(weight for weight, term in wants.preferences if term.matches(node.labels, node.name))


def shared_scores(
    surroundings: Surroundings, slots: Sequence[int], sizes: Sequence[int]
) -> list[int]:
    """Score nodes by spread and pod affinity; each slot stands for a group of alike nodes."""
    totals = _spread_scores(surroundings, slots, sizes) if surroundings.soft else [0] * len(slots)
    if surroundings.preferences:
        for index, score in enumerate(_preference_scores(surroundings, slots)):
            totals[index] += _PREFERENCE_WEIGHT * score
    return totals


def add_tastes(totals: list[int], tastes: Sequence[Tastes]) -> None:
    """Add the normalized scores of taints and node affinity."""
    worst = max(taints for taints, _ in tastes)
    if worst:
        for index, (taints, _) in enumerate(tastes):
            totals[index] += _TAINT_WEIGHT * (_BEST - _BEST * taints // worst)
    best = max(liking for _, liking in tastes)
    if best:
        for index, (_, liking) in enumerate(tastes):
            totals[index] += _AFFINITY_WEIGHT * (_BEST * liking // best)


def _balance(node: NodeInfo, cpu: int, memory: int) -> int:
    if not node.cpu or not node.memory:
        return _BEST
    cpu_share = min(1.0, (node.used_cpu + cpu) / node.cpu)
    memory_share = min(1.0, (node.used_memory + memory) / node.memory)
    return int((1 - abs((cpu_share - memory_share) / _PAIR)) * _BEST)


def _spread_scores(
    surroundings: Surroundings, slots: Sequence[int], sizes: Sequence[int]
) -> list[int]:
    if not surroundings.ignores_unlabelled:
        return _labelled_spread_scores(surroundings, slots, sizes)
    scored = [
        index
        for index, slot in enumerate(slots)
        if all(tally.values[slot] is not None for _, tally in surroundings.soft)
    ]
    scores = [0] * len(slots)
    if scored:
        found = _labelled_spread_scores(
            surroundings, [slots[index] for index in scored], [sizes[index] for index in scored]
        )
        for index, score in zip(scored, found, strict=True):
            scores[index] = score
    return scores


def _labelled_spread_scores(
    surroundings: Surroundings, slots: Sequence[int], sizes: Sequence[int]
) -> list[int]:
    raw: list[float] = []
    for spread, tally in surroundings.soft:
        added = _unevenness(spread.max_skew, tally, slots, sizes)
        raw = [*map(add, raw, added)] if raw else added
    rounded = [int(score + 0.5) for score in raw]
    most = max(rounded)
    if not most:
        return [_SPREAD_WEIGHT * _BEST] * len(slots)
    best = most + min(rounded)
    return [_SPREAD_WEIGHT * (_BEST * (best - score) // most) for score in rounded]


def _unevenness(skew: int, tally: Tally, slots: Sequence[int], sizes: Sequence[int]) -> list[float]:
    """Return the pods in the domain of each node, weighted by the number of domains."""
    values = tally.values
    if tally.is_by_host:
        weight, counts = log(sum(sizes) + 2), tally.counts
        return [0.0 if values[slot] is None else counts[slot] * weight + skew - 1 for slot in slots]
    domains, totals = [values[slot] for slot in slots], tally.totals
    weight = log(len(set(domains)) + 2)
    return [
        0.0 if domain is None else totals.get(domain, 0) * weight + skew - 1 for domain in domains
    ]


def _preference_scores(surroundings: Surroundings, slots: Sequence[int]) -> list[int]:
    raw = [sum(tally.in_slot(slot) for tally in surroundings.preferences) for slot in slots]
    most, least = max(raw), min(raw)
    if most == least:
        return [0] * len(slots)
    return [int(_BEST * ((score - least) / (most - least))) for score in raw]
