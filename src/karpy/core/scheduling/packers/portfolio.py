"""Further orders in which to place pods, and which of two verdicts is better."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from karpy.core.scheduling.pending import Batch
from karpy.model.labels import HOSTNAME
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY
from karpy.model.verdicts import Verdict

LAUNCHES_MIN: Final = 2
"""The fewest launches worth another order; one node is much the same in every order."""
SAVING_MIN_PERCENT: Final = 1
"""The least saving that counts, because the free room of a dearer plan is of use as well."""


class Draft(NamedTuple):
    """A verdict that stands until another order gives a better one."""

    verdict: Verdict
    steps_down: int = 0
    """How many steps all its pods together went down their ladders."""
    pods: tuple[Pod, ...] = ()
    """The pods in the order in which they were placed."""
    work: int = 0
    """The work counted by `Effort`."""


def is_worth_another_look(draft: Draft) -> bool:
    """Say whether another order might save something."""
    return draft.verdict.is_complete and len(draft.verdict.launches) >= LAUNCHES_MIN


# Differs: the order in which pods are placed: Karpenter sorts by CPU, then by memory, which leaves
# room unused where some pods need much memory and others much CPU; Karpy also tries other orders if
# the setting `packing` says so, and takes the cheapest plan.
def other_orders(batch: Batch, well_known: frozenset[str]) -> Iterator[Batch]:
    """
    Return the batch in other orders: loners first, by CPU and memory together, by their difference.

    Loners may not share a node with pods like them. They need many nodes anyway, on which other
    pods find room. There is no other order if a pod (anti-)affinity is on a custom label: nodes get
    values of such a label in the order of the pods.
    """
    if _makes_domains(batch.pods, well_known):
        return
    cpu = sum(pod.requests.get(CPU, 0) for pod in batch.pods)
    memory = sum(pod.requests.get(MEMORY, 0) for pod in batch.pods)

    # The share of all requests, multiplied by all CPU and all memory to stay an integer.
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
    Return the draft that leaves out fewer pods, else the clearly cheaper one, else the first.

    A cheaper draft must place the same pods, and relax no more preferences and minValues.
    """
    virtual = {pod.key for pod in batch.pods if pod.is_virtual}
    left_out, other_left_out = _left_out(first.verdict), _left_out(second.verdict)
    lack = _shortfall(first, left_out, virtual)
    other_lack = _shortfall(second, other_left_out, virtual)
    if lack != other_lack:
        return first if lack < other_lack else second
    is_as_good = (
        left_out == other_left_out
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
    """Say whether a pod has a hard spread or a required anti-affinity over hostnames."""
    spreads = (each.topology_key for each in pod.rules.spreads if not each.is_soft)
    return HOSTNAME in (*spreads, *(each.topology_key for each in pod.rules.anti_affinity))


def _largest_first(pods: tuple[Pod, ...], size: Callable[[Pod], int]) -> tuple[Pod, ...]:
    """Sort pods by size, virtual pods last; pods of equal size keep their order."""
    # Pods with a required affinity keep their positions: these decide which pod starts a group,
    # and whether the pods after it find the group.
    movable = [pod for pod in pods if not pod.rules.affinity]
    in_order = iter(sorted(movable, key=lambda pod: (pod.is_virtual, -size(pod))))
    return tuple(pod if pod.rules.affinity else next(in_order) for pod in pods)


def _left_out(verdict: Verdict) -> set[str]:
    return {key for refusal in verdict.refusals for key in refusal.pods}


def _is_cheaper(verdict: Verdict, other: Verdict) -> bool:
    saved = other.price - verdict.price
    return saved > 0 and saved * 100 >= other.price * SAVING_MIN_PERCENT


def _relaxed(verdict: Verdict) -> int:
    return sum(launch.is_min_values_relaxed for launch in verdict.launches)


def _shortfall(draft: Draft, left_out: set[str], virtual: set[str]) -> tuple[bool, int, int]:
    """Return whether a draft is incomplete, and how many real and virtual pods it leaves out."""
    real = len(left_out - virtual)
    return not draft.verdict.is_complete, real, len(left_out) - real
