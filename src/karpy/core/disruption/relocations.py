"""Where the pods of a node go that must be replaced, whatever that costs."""

from collections.abc import Sequence

from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.scheduling.whatif import Relocation
from karpy.model.pods import Pod
from karpy.model.settings import ReservedMode


def relocate_with_buffers(
    candidate: Candidate, evaluation: Evaluation, moved: Sequence[Pod] | None = None
) -> Relocation:
    """
    Find places for a candidate's pods, and for the room that CapacityBuffers have.

    Where there is none for all of them, buffers do without: they hold no node.
    """
    found = _relocate(candidate, evaluation, moved, keeps_buffers=True)
    if found.homeless or found.is_out_of_time:
        return _relocate(candidate, evaluation, moved, keeps_buffers=False)
    return found


def _relocate(
    candidate: Candidate,
    evaluation: Evaluation,
    moved: Sequence[Pod] | None,
    *,
    keeps_buffers: bool,
) -> Relocation:
    return evaluation.what_if.ask(
        {candidate.name},
        moved=moved,
        reserved_mode=ReservedMode.FALLBACK,
        stops_early=False,
        keeps_buffers=keeps_buffers,
        closed=evaluation.awaiting,
    )
