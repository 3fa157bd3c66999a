"""Pods with so many constraints that a decision about them takes long: the others come first."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from karpy.core.scheduling.interning import Interner
from karpy.model.pods import Pod, PodRules
from karpy.model.refusals import Reason, Refusal

CONSTRAINTS_MAX: Final = 500
"""A pod with more of them is placed after all others."""
HEAVY_MIN: Final = 20
"""Pods with as many of them and more count together, the first ones first."""
HEAVY_TOGETHER_MAX: Final = 100_000
"""Once they have more than so many together, the rest of them is placed after all others."""
TOGETHER_MAX: Final = 20_000
"""So many constraints have the pods together that one decision is about beside the usual ones."""
QUESTION_MAX: Final = 2_000
"""So many constraints have pods together that questions about nodes are about: pending pods that
have 20 or more each, and those of one node. There are many questions, and each is about all."""
WORK_MAX: Final = 100_000
"""So much work is done for them at most; it takes seconds, and others wait meanwhile."""


def constraints_of(rules: PodRules) -> int:
    """Count what a pod asks of nodes and of other pods, preferences and tolerations included."""
    terms = (*rules.required_node_terms, *(each.term for each in rules.preferred_node_terms))
    lists = (
        rules.node_selector,
        terms,
        *(each.expressions for each in terms),
        rules.tolerations,
        rules.spreads,
        rules.affinity,
        rules.anti_affinity,
        rules.preferred_affinity,
        rules.preferred_anti_affinity,
        rules.ports,
        rules.volumes,
    )
    return sum(map(len, lists))


def without_costly(pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Return the pods that a question about nodes can be about, and those that cost too much."""
    kept: list[Pod] = []
    costly: list[Pod] = []
    heavy = _Allowance(QUESTION_MAX)
    counts: dict[int, int] = {}
    for pod in pods:
        count = counts.get(id(pod.rules))
        if count is None:
            count = counts[id(pod.rules)] = constraints_of(pod.rules)
        is_kept = count < HEAVY_MIN or (count <= CONSTRAINTS_MAX and heavy.admits(pod, count))
        (kept if is_kept else costly).append(pod)
    return kept, costly


def why_not_moved(pod: Pod) -> str:
    """Say with its numbers why a pod is not moved."""
    return f"{constraints_of(pod.rules)} constraints"


def is_heavy(pods: Iterable[Pod]) -> bool:
    """Say whether pods of one node have so many constraints that moving them takes long."""
    counts = (constraints_of(pod.rules) for pod in pods)
    return sum(each for each in counts if each >= HEAVY_MIN) > CONSTRAINTS_MAX


class Parted(NamedTuple):
    """The pods of a batch, each kind in its order."""

    usual: tuple[Pod, ...]
    costly: tuple[Pod, ...] = ()
    left_out: tuple[Pod, ...] = ()
    """Costly ones that are too many for one decision."""


def part(pods: tuple[Pod, ...]) -> Parted:
    """Tell costly pods from the others."""
    counts = {key: constraints_of(rules) for key, rules in _rules_of(pods).items()}
    if max(counts.values(), default=0) < HEAVY_MIN:
        return Parted(pods)
    usual: list[Pod] = []
    costly: list[Pod] = []
    heavy = _Allowance(HEAVY_TOGETHER_MAX)
    for pod in pods:
        count = counts[id(pod.rules)]
        is_usual = count < HEAVY_MIN or (count <= CONSTRAINTS_MAX and heavy.admits(pod, count))
        (usual if is_usual else costly).append(pod)
    together = _Allowance(TOGETHER_MAX)
    admitted: list[Pod] = []
    left_out: list[Pod] = []
    for pod in costly:
        is_admitted = together.admits(pod, counts[id(pod.rules)])
        (admitted if is_admitted else left_out).append(pod)
    return Parted(tuple(usual), tuple(admitted), tuple(left_out))


def _rules_of(pods: Iterable[Pod]) -> dict[int, PodRules]:
    return {id(pod.rules): pod.rules for pod in pods}


class _Allowance:
    """How many constraints pods may have together; the first one is always let in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._together = 0
        self._seen: set[tuple[int, int]] = set()
        self._interner = Interner()

    def admits(self, pod: Pod, count: int) -> bool:
        # Pods that are alike cost no more than one of them.
        alike = id(self._interner.rules(pod.rules)), id(self._interner.labels(pod.labels))
        if alike in self._seen:
            return True
        if self._together and self._together + count > self._most:
            return False
        self._seen.add(alike)
        self._together += count
        return True


def refuse_costly(pods: Iterable[Pod]) -> list[Refusal]:
    """Refuse costly pods for which no time was left, with their numbers."""
    by_count: dict[int, list[str]] = {}
    for pod in pods:
        by_count.setdefault(constraints_of(pod.rules), []).append(pod.key)
    return [
        Refusal(Reason.TOO_COMPLEX, tuple(keys), _why(count)) for count, keys in by_count.items()
    ]


def _why(count: int) -> str:
    if count > CONSTRAINTS_MAX:
        return f"{count} constraints; pods with up to {CONSTRAINTS_MAX} come first"
    return (
        f"{count} constraints, and pods with {HEAVY_MIN} or more have over "
        f"{HEAVY_TOGETHER_MAX:,} together; pods with fewer come first"
    )
