"""Pods with so many constraints that a decision about them takes long: the others come first."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from karpy.model.pods import Pod, PodRules
from karpy.model.refusals import Reason, Refusal

CONSTRAINTS_MAX: Final = 500
"""A pod with more of them is placed after all others."""
TOGETHER_MAX: Final = 20_000
"""So many constraints have the pods together that one decision is about beside the usual ones."""
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


class Parted(NamedTuple):
    """The pods of a batch, each kind in its order."""

    usual: tuple[Pod, ...]
    costly: tuple[Pod, ...] = ()
    left_out: tuple[Pod, ...] = ()
    """Costly ones that are too many for one decision."""


def part(pods: tuple[Pod, ...]) -> Parted:
    """Tell costly pods from the others."""
    counts = {id(pod.rules): pod.rules for pod in pods}
    costly = {key for key, rules in counts.items() if constraints_of(rules) > CONSTRAINTS_MAX}
    if not costly:
        return Parted(pods)
    admitted: list[Pod] = []
    left_out: list[Pod] = []
    seen: set[tuple[int, int]] = set()
    together = 0
    for pod in pods:
        if id(pod.rules) not in costly:
            continue
        # Pods that are alike cost no more than one of them.
        alike = (id(pod.rules), id(pod.labels))
        cost = 0 if alike in seen else constraints_of(pod.rules)
        if together and together + cost > TOGETHER_MAX:
            left_out.append(pod)
            continue
        seen.add(alike)
        together += cost
        admitted.append(pod)
    usual = tuple(pod for pod in pods if id(pod.rules) not in costly)
    return Parted(usual, tuple(admitted), tuple(left_out))


def refuse_costly(pods: Iterable[Pod]) -> list[Refusal]:
    """Refuse costly pods for which no time was left, with their numbers."""
    by_count: dict[int, list[str]] = {}
    for pod in pods:
        by_count.setdefault(constraints_of(pod.rules), []).append(pod.key)
    return [
        Refusal(
            Reason.TOO_COMPLEX,
            tuple(keys),
            f"{count} constraints; pods with up to {CONSTRAINTS_MAX} come first",
        )
        for count, keys in by_count.items()
    ]
