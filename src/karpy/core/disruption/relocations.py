"""Places for the pods of a node that has to be replaced, at any price."""

from collections.abc import Sequence

from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.scheduling.whatif import Relocation
from karpy.model.pods import Pod
from karpy.model.settings import ReservedMode


def relocate_keeping_places(
    candidate: Candidate, evaluation: Evaluation, moved: Sequence[Pod] | None = None
) -> Relocation:
    """
    Find places for a candidate's pods that leave pending and virtual pods the room these have.

    If there is no place for all of them, find places for the candidate's pods alone: other pods
    must not stop the disruption.
    """
    found = _relocate(candidate, evaluation, moved, keeps_places=True)
    if found.unplaced and evaluation.problem.queue and not found.is_out_of_time:
        return _relocate(candidate, evaluation, moved, keeps_places=False)
    return found


def _relocate(
    candidate: Candidate,
    evaluation: Evaluation,
    moved: Sequence[Pod] | None,
    *,
    keeps_places: bool,
) -> Relocation:
    return evaluation.what_if.ask(
        {candidate.name},
        moved=moved,
        reserved_mode=ReservedMode.FALLBACK,
        stops_early=False,
        keeps_places=keeps_places,
        closed=evaluation.awaiting_pods,
    )
