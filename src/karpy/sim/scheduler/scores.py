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
    if any(taints for taints, _ in tastes):
        worst = max(taints for taints, _ in tastes)
        for index, (taints, _) in enumerate(tastes):
            totals[index] += _TAINT_WEIGHT * (_BEST - _BEST * taints // worst)
    if any(liking for _, liking in tastes):
        best = max(liking for _, liking in tastes)
        for index, (_, liking) in enumerate(tastes):
            totals[index] += _AFFINITY_WEIGHT * (_BEST * liking // best)
    if surroundings.soft:
        for index, score in enumerate(_spread_scores(surroundings, nodes, sizes)):
            totals[index] += _SPREAD_WEIGHT * score
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
    soft, tallies = surroundings.soft, surroundings.soft_tallies
    scored = list(range(len(nodes)))
    if surroundings.ignores_unlabelled:
        scored = [
            index for index in scored if all(each.key in nodes[index].labels for each in soft)
        ]
    if not scored:
        return [0] * len(nodes)
    weights = [_domain_weight(each, nodes, sizes, scored) for each in soft]
    raw = dict.fromkeys(scored, 0.0)
    for spread, tally, weight in zip(soft, tallies, weights, strict=True):
        for index in scored:
            node = nodes[index]
            domain = node.labels.get(spread.key)
            if domain is not None:
                pods = tally.counts[node.slot] if tally.is_by_host else tally.totals.get(domain, 0)
                raw[index] += pods * weight + spread.max_skew - 1
    rounded = {index: int(score + 0.5) for index, score in raw.items()}
    most, least = max(rounded.values()), min(rounded.values())
    scores = [0] * len(nodes)
    for index, score in rounded.items():
        scores[index] = _BEST * (most + least - score) // most if most else _BEST
    return scores


def _domain_weight(
    spread: Spread, nodes: Sequence[NodeInfo], sizes: Sequence[int], scored: list[int]
) -> float:
    if spread.key == HOSTNAME:
        return log(sum(sizes[index] for index in scored) + 2)
    return log(len({nodes[index].labels.get(spread.key, "") for index in scored}) + 2)


def _wish_scores(surroundings: Surroundings, nodes: Sequence[NodeInfo]) -> list[int]:
    raw = [sum(tally.at(node) for tally in surroundings.wishes) for node in nodes]
    most, least = max(raw), min(raw)
    if most == least:
        return [0] * len(nodes)
    return [int(_BEST * ((score - least) / (most - least))) for score in raw]
