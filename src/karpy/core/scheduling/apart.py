"""Decisions that fail by a mistake of ours are made without the pods that they fail with."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.effort import KeepGoing
from karpy.errors import KarpyError
from karpy.model.census import uncounted, without
from karpy.model.pods import Pod
from karpy.model.refusals import Reason, Refusal
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

CULPRITS_MAX: Final = 16
"""Where decisions fail with more pods than that, the pods are hardly the cause."""

Decide = Callable[[Snapshot, KeepGoing], Verdict]


class Culprit(NamedTuple):
    """A pod with which decisions fail, and how."""

    pod: Pod
    error: KarpyError


class Apart(NamedTuple):
    """A verdict, and the pods that had to be left out for it."""

    verdict: Verdict
    culprits: Sequence[Culprit] = ()


def decide_apart(
    snapshot: Snapshot, keep_going: KeepGoing = lambda: True, make: Decide | None = None
) -> Apart:
    """
    Decide as `decide` does; the pods with which that raises are refused, the others decided about.

    The error is raised if it comes without any pod that waits for a node, or if time is up before
    the pods are found. `make` decides in place of `decide`.
    """
    make = make or (lambda some, going: decide(some, keep_going=going))
    errors: list[KarpyError] = []
    with Barrier(errors.append):
        return Apart(make(snapshot, keep_going))
    culprits = _find_culprits(snapshot, keep_going, make, errors[0])
    verdict = make(_without(snapshot, [each.pod for each in culprits]), keep_going)
    refusals = tuple(
        Refusal(Reason.DECISION_FAILED, (pod.key,), error.message) for pod, error in culprits
    )
    return Apart(replace(verdict, refusals=(*verdict.refusals, *refusals)), culprits)


def _find_culprits(
    snapshot: Snapshot, keep_going: KeepGoing, make: Decide, error: KarpyError
) -> list[Culprit]:
    """Halve the pods that wait until one is left that makes the difference; then look for more."""
    waiting = [pod for pod in uncounted(snapshot.pods) if not pod.node_name]

    def error_with(pods: Sequence[Pod]) -> KarpyError | None:
        if not keep_going():
            raise error
        kept = {id(pod) for pod in pods}
        errors: list[KarpyError] = []
        with Barrier(errors.append):
            make(_without(snapshot, [pod for pod in waiting if id(pod) not in kept]), keep_going)
        return errors[0] if errors else None

    if (blameless := error_with(())) is not None:
        raise blameless
    left, culprits, last = waiting.copy(), list[Culprit](), error
    while True:
        # It fails with the first `some` of them, and does not with the first `few`.
        few, some = 0, len(left)
        while some - few > 1:
            half = (few + some) // 2
            caught = error_with(left[:half])
            few, some = (half, some) if caught is None else (few, half)
            last = caught or last
        culprits.append(Culprit(left.pop(some - 1), last))
        caught = error_with(left)
        if caught is None:
            return culprits
        if len(culprits) >= CULPRITS_MAX:
            raise caught
        last = caught


def _without(snapshot: Snapshot, pods: Sequence[Pod]) -> Snapshot:
    return replace(snapshot, pods=without(snapshot.pods, {id(pod) for pod in pods}))
