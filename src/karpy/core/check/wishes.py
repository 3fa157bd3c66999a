"""
What a pod asks of a node's labels, and what it takes to be sure that it gets it.

A label of a node that exists has one value. A label of a node yet to be made may have several
possible values; then a wish counts as granted only if every one of them would do.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from karpy.model.constraints import (
    PREFER_NO_SCHEDULE,
    NodeTerm,
    Taint,
    Toleration,
    first_untolerated,
)
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement

Wish: TypeAlias = tuple[NodeTerm, ...]
"""Alternatives, one of which must hold."""

Values: TypeAlias = Callable[[str], Requirement | None]
"""What values the label of a key may have; None, or no value at all, if there is no such label."""


def wishes_of(pod: Pod) -> tuple[Wish, ...]:
    """List what must hold at once: the node selector, and one of the required terms."""
    wishes: list[Wish] = []
    if pod.rules.node_selector:
        wishes.append((NodeTerm(pod.rules.node_selector),))
    if pod.rules.required_node_terms:
        wishes.append(pod.rules.required_node_terms)
    return tuple(wishes)


def is_granted(wish: Wish, values: Values) -> bool:
    """
    Say whether one alternative holds whatever values the labels take.

    As in Kubernetes, an alternative that says nothing holds nowhere. One with matchFields cannot
    be judged from labels and counts as not held.
    """
    return any(
        bool(term.expressions)
        and not term.has_match_fields
        and all(grants(values(wanted.key), wanted) for wanted in term.expressions)
        for term in wish
    )


def grants(have: Requirement | None, wanted: Requirement) -> bool:
    """Say whether every value the label may have is a wanted one."""
    if have is None or have.is_empty:
        return wanted.is_negative
    if not have.complement:
        return all(value in wanted for value in have.values)
    return (
        wanted.complement
        and not any(value in have for value in wanted.values)
        and (wanted.gte is None or (have.gte is not None and have.gte >= wanted.gte))
        and (wanted.lte is None or (have.lte is not None and have.lte <= wanted.lte))
    )


def may_grant(have: Requirement | None, wanted: Requirement) -> bool:
    """Say whether some value the label may have is a wanted one."""
    if have is None or have.is_empty:
        return wanted.is_negative
    return have.intersects(wanted)


def hard_taints(taints: Sequence[Taint]) -> tuple[Taint, ...]:
    """Leave out the soft taints: they never keep kube-scheduler from binding a pod."""
    return tuple(taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE)


def tolerates(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> bool:
    """Say whether every hard taint is tolerated."""
    return first_untolerated(hard_taints(taints), tolerations) is None
