"""How much better one node is than another for a pod, as kube-scheduler weighs it."""

from collections.abc import Sequence
from math import log
from typing import Final

from karpy.model.labels import HOSTNAME
from karpy.sim.scheduler.nodes import NodeInfo
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.terms import Spread
from karpy.sim.scheduler.wants import Wants

_BEST: Final = 100
_TAINT_WEIGHT: Final = 3
_AFFINITY_WEIGHT: Final = 2
_SPREAD_WEIGHT: Final = 2
_WISH_WEIGHT: Final = 2
_PAIR: Final = 2


def own_score(wants: Wants, node: NodeInfo) -> int:
    """Prefer nodes with much left, of CPU as of memory."""
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
    after = _balance(node, wants.cpu, wants.memory)
    before = node.balance
    if before is None:
        before = node.balance = _balance(node, 0, 0)
    return score + _BEST // 2 + (_BEST // 2 + after - before) // 2


def soft_taints(wants: Wants, node: NodeInfo) -> int:
    """Count the taints of a node that a pod had better avoid."""
    if not node.soft_taints:
        return 0
    return sum(not wants.tolerates(taint) for taint in node.soft_taints)


def preference(wants: Wants, node: NodeInfo) -> int:
    """Sum up how much a pod likes a node by its node affinity."""
    return sum(weight for weight, term in wants.preferences if term.matches(node.labels, node.name))


def shared_scores(
    surroundings: Surroundings,
    nodes: Sequence[NodeInfo],
    sizes: Sequence[int],
    tastes: Sequence[tuple[int, int]],
) -> list[int]:
    """
    Score nodes against each other; each stands for several that are like it.

    `tastes` are the soft taints and the preference of each.
    """
    totals = [0] * len(nodes)
    if surroundings.soft:
        totals = [_SPREAD_WEIGHT * each for each in _spread_scores(surroundings, nodes, sizes)]
    worst = max([taints for taints, _ in tastes])
    if worst:
        for index, (taints, _) in enumerate(tastes):
            totals[index] += _TAINT_WEIGHT * (_BEST - _BEST * taints // worst)
    best = max([liking for _, liking in tastes])
    if best:
        for index, (_, liking) in enumerate(tastes):
            totals[index] += _AFFINITY_WEIGHT * (_BEST * liking // best)
    if surroundings.wishes:
        for index, score in enumerate(_wish_scores(surroundings, nodes)):
            totals[index] += _WISH_WEIGHT * score
    return totals


def _balance(node: NodeInfo, cpu: int, memory: int) -> int:
    if not node.cpu or not node.memory:
        return _BEST
    cpu_share = min(1.0, (node.used_cpu + cpu) / node.cpu)
    memory_share = min(1.0, (node.used_memory + memory) / node.memory)
    return int((1 - abs((cpu_share - memory_share) / _PAIR)) * _BEST)


def _spread_scores(
    surroundings: Surroundings, nodes: Sequence[NodeInfo], sizes: Sequence[int]
) -> list[int]:
    if not surroundings.ignores_unlabelled:
        return _labelled_spread_scores(surroundings, nodes, sizes)
    keys = [each.key for each in surroundings.soft]
    scored = [index for index, node in enumerate(nodes) if all(key in node.labels for key in keys)]
    scores = [0] * len(nodes)
    if scored:
        found = _labelled_spread_scores(
            surroundings, [nodes[index] for index in scored], [sizes[index] for index in scored]
        )
        for index, score in zip(scored, found, strict=True):
            scores[index] = score
    return scores


def _labelled_spread_scores(
    surroundings: Surroundings, nodes: Sequence[NodeInfo], sizes: Sequence[int]
) -> list[int]:
    raw = [0.0] * len(nodes)
    for spread, tally in zip(surroundings.soft, surroundings.soft_tallies, strict=True):
        domains = [node.labels.get(spread.key) for node in nodes]
        weight = _domain_weight(spread, domains, sizes)
        for index, domain in enumerate(domains):
            if domain is not None:
                slot = nodes[index].slot
                pods = tally.counts[slot] if tally.is_by_host else tally.totals.get(domain, 0)
                raw[index] += pods * weight + spread.max_skew - 1
    rounded = [int(score + 0.5) for score in raw]
    most, least = max(rounded), min(rounded)
    if not most:
        return [_BEST] * len(nodes)
    return [_BEST * (most + least - score) // most for score in rounded]


def _domain_weight(spread: Spread, domains: Sequence[str | None], sizes: Sequence[int]) -> float:
    if spread.key == HOSTNAME:
        return log(sum(sizes) + 2)
    return log(len({domain or "" for domain in domains}) + 2)


def _wish_scores(surroundings: Surroundings, nodes: Sequence[NodeInfo]) -> list[int]:
    raw = [sum(tally.at(node) for tally in surroundings.wishes) for node in nodes]
    most, least = max(raw), min(raw)
    if most == least:
        return [0] * len(nodes)
    return [int(_BEST * ((score - least) / (most - least))) for score in raw]
