"""Other orders in which pods can be placed, and which of two verdicts is the better one."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from karpy.core.scheduling.pending import Batch
from karpy.model.labels import HOSTNAME
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY
from karpy.model.verdicts import Verdict

LAUNCHES_MIN: Final = 2
"""A single node is much the same in every order, and pods wait for it."""
SAVING_MIN_PERCENT: Final = 1
"""Less is not worth while: the room that a dearer plan leaves is of use as well."""


class Draft(NamedTuple):
    """A verdict until there is a better one, and how far pods went down their ladders for it."""

    verdict: Verdict
    steps_down: int = 0
    pods: tuple[Pod, ...] = ()
    """In the order in which they had their turns."""
    work: int = 0
    """What it took."""


def is_worth_another_look(draft: Draft) -> bool:
    """Say whether another order might save something."""
    return draft.verdict.is_complete and len(draft.verdict.launches) >= LAUNCHES_MIN


# Differs: the order in which pods are placed: Karpenter sorts by CPU, then by memory, which leaves
# room unused where some pods need much memory and others much CPU; Karpy also tries other orders if
# the setting `packing` says so, and takes the cheapest plan.
def other_orders(batch: Batch, well_known: frozenset[str]) -> Iterator[Batch]:
    """
    Put pods in the order of CPU and memory taken together, then of how far these differ.

    Once more before that, with those first that keep away from their like: they need many nodes
    anyway, on which the others then find room. There are none for pods that keep near or away from
    each other in domains of their own making, which nodes get names for as pods come.
    """
    if _makes_domains(batch.pods, well_known):
        return
    cpu = sum(pod.requests.get(CPU, 0) for pod in batch.pods)
    memory = sum(pod.requests.get(MEMORY, 0) for pod in batch.pods)

    # Shares of all that is asked for, without the fractions.
    def both(pod: Pod) -> int:
        return pod.requests.get(CPU, 0) * memory + pod.requests.get(MEMORY, 0) * cpu

    def difference(pod: Pod) -> int:
        return abs(pod.requests.get(CPU, 0) * memory - pod.requests.get(MEMORY, 0) * cpu)

    def loners_first(pod: Pod) -> int:
        return both(pod) + (2 * cpu * memory + 1 if _is_loner(pod) else 0)

    seen = [batch.pods]
    for size in (loners_first, both, difference):
        pods = _largest_first(batch.pods, size)
        if pods not in seen:
            seen.append(pods)
            yield replace(batch, pods=pods)


def better(first: Draft, second: Draft, batch: Batch) -> Draft:
    """
    Return the draft that leaves fewer pods out, then the clearly cheaper one, then the first.

    Some things are not for sale: which pods get a place, and what the first one does not relax.
    """
    virtual = {pod.key for pod in batch.pods if pod.is_virtual}
    have, other = _left_out(first.verdict), _left_out(second.verdict)
    had, might = _shortfall(first, have, virtual), _shortfall(second, other, virtual)
    if had != might:
        return first if had < might else second
    is_as_good = (
        have == other
        and second.steps_down <= first.steps_down
        and _relaxed(second.verdict) <= _relaxed(first.verdict)
    )
    return second if is_as_good and _is_cheaper(second.verdict, first.verdict) else first


def _makes_domains(pods: tuple[Pod, ...], well_known: frozenset[str]) -> bool:
    distinct = {id(pod.rules): pod.rules for pod in pods}
    return any(
        term.topology_key not in well_known and term.topology_key != HOSTNAME
        for rules in distinct.values()
        for term in (*rules.affinity, *rules.anti_affinity)
    )


def _is_loner(pod: Pod) -> bool:
    """Say whether a pod must keep away, on its node, from others."""
    spreads = (each.topology_key for each in pod.rules.spreads if not each.is_soft)
    return HOSTNAME in (*spreads, *(each.topology_key for each in pod.rules.anti_affinity))


def _largest_first(pods: tuple[Pod, ...], size: Callable[[Pod], int]) -> tuple[Pod, ...]:
    """Sort pods by size, and nothing else: those that exist stay first, equals in their order."""
    # Pods that must be near others keep their turn: it says which of them starts a group, and
    # whether all find each other in the end.
    free = [pod for pod in pods if not pod.rules.affinity]
    sorted_free = iter(sorted(free, key=lambda pod: (pod.is_virtual, -size(pod))))
    return tuple(pod if pod.rules.affinity else next(sorted_free) for pod in pods)


def _left_out(verdict: Verdict) -> set[str]:
    return {key for refusal in verdict.refusals for key in refusal.pods}


def _is_cheaper(verdict: Verdict, other: Verdict) -> bool:
    saved = other.price - verdict.price
    return saved > 0 and saved * 100 >= other.price * SAVING_MIN_PERCENT


def _relaxed(verdict: Verdict) -> int:
    return sum(launch.is_min_values_relaxed for launch in verdict.launches)


def _shortfall(draft: Draft, left_out: set[str], virtual: set[str]) -> tuple[bool, int, int]:
    """Say what a draft fails to do, worst first; room for virtual pods comes last."""
    real = len(left_out - virtual)
    return not draft.verdict.is_complete, real, len(left_out) - real
