"""Delete what nobody needs."""

from typing import Final

from msgspec import Struct

from karpy.core.disruption.budgets import find_allowances
from karpy.core.disruption.candidates import Candidate, best_first, find_candidates
from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.lifecycle.conditions import CONSOLIDATABLE
from karpy.core.lifecycle.records import about_claim, about_node
from karpy.model.disruption import DisruptionReason
from karpy.model.notices import Notice
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.surroundings import Surroundings

REASON: Final = DisruptionReason.EMPTY
CONSOLIDATION_TYPE: Final = "empty"
_UNCONSOLIDATABLE_WINDOW: Final = 15 * 60.0


class Proposal(Struct, frozen=True, gc=False):
    """Nodes that should go together, and a refusal for every other one."""

    reason: DisruptionReason
    consolidation_type: str = ""
    candidates: tuple[Candidate, ...] = ()
    """In the order in which they were chosen."""
    refusals: tuple[NodeRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()
    """Gauges: their metrics take on these values."""
    remarks: tuple[Remark, ...] = ()


def propose_empty(surroundings: Surroundings) -> Proposal:
    """Choose nodes that have been empty for long enough, until each pool's budget is spent."""
    eligible, kept = find_empty(surroundings)
    gauge = Count(
        "voluntary_disruption_eligible_nodes",
        {"reason": REASON.value.lower()},
        float(len(eligible)),
    )
    if not eligible:
        return _proposal(kept, counts=(gauge,))
    allowances = find_allowances(surroundings, REASON)
    remaining = allowances.remaining()
    chosen, spent = [], []
    for each in best_first(eligible):
        if remaining[each.pool.name]:
            remaining[each.pool.name] -= 1
            chosen.append(each)
        else:
            spent.append(NodeRefusal(Obstacle.BUDGET_SPENT, each.name, each.pool.name))
    return _proposal(
        Kept((*kept.refusals, *spent), (*kept.notices, *allowances.notices)),
        tuple(chosen),
        (gauge, *allowances.counts),
        allowances.remarks,
    )


class Kept(Struct, frozen=True, gc=False):
    """Nodes that stay, and what is told about them."""

    refusals: tuple[NodeRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()


def find_empty(surroundings: Surroundings) -> tuple[tuple[Candidate, ...], Kept]:
    """Sort nodes into those that are empty, budgets aside, and all others."""
    found = find_candidates(surroundings)
    eligible, refusals, notices = [], list(found.refusals), list(found.notices)
    for each in found.candidates:
        why = _why_keep(each)
        if why is None:
            eligible.append(each)
        else:
            refusals.append(NodeRefusal(why, each.name))
            notices += _unconsolidatable(each, why)
    return tuple(eligible), Kept(tuple(refusals), tuple(notices))


def _proposal(
    kept: Kept,
    candidates: tuple[Candidate, ...] = (),
    counts: tuple[Count, ...] = (),
    remarks: tuple[Remark, ...] = (),
) -> Proposal:
    return Proposal(
        REASON, CONSOLIDATION_TYPE, candidates, kept.refusals, kept.notices, counts, remarks
    )


def _why_keep(candidate: Candidate) -> Obstacle | None:
    if candidate.is_static:
        return Obstacle.POOL_STATIC
    if candidate.policy.consolidate_after is None:
        return Obstacle.CONSOLIDATION_DISABLED
    if candidate.buffer_pods:
        return Obstacle.BUFFER_PODS
    if not candidate.is_empty:
        return Obstacle.NOT_EMPTY
    is_quiet = candidate.claim.conditions.is_true(CONSOLIDATABLE)
    return None if is_quiet else Obstacle.NOT_QUIET


def _unconsolidatable(candidate: Candidate, why: Obstacle) -> list[Notice]:
    if why is Obstacle.CONSOLIDATION_DISABLED:
        note = f'NodePool "{candidate.pool.name}" has consolidation disabled'
    elif why is Obstacle.BUFFER_PODS:
        note = f'Node "{candidate.name}" has buffer pods'
    else:
        return []
    return [
        Notice(
            subject,
            "Unconsolidatable",
            note,
            same_as=(subject.uid,),
            window_seconds=_UNCONSOLIDATABLE_WINDOW,
        )
        for subject in (about_node(candidate.node), about_claim(candidate.claim))
    ]
