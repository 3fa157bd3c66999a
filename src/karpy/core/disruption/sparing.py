"""Nodes that a rollout leaves alone after all, since their pods forbid what it is about to do."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from karpy.core.disruption.advancing import Change, Progress, failed_validations
from karpy.core.disruption.candidates import blocked_notices
from karpy.core.disruption.confirming import by_claim
from karpy.core.disruption.marks import unmarked
from karpy.core.disruption.rollout import Rollout, Stage
from karpy.core.lifecycle.changes import Changes, Remark, joined
from karpy.model.disruption import DisruptionReason
from karpy.model.questions import ProposedNode
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.surroundings import NodeState, Surroundings

_NEEDED: Final = "Pod needs the node after all (Pod={detail})"
_SPARED: Final = "leaving nodes out of a disruption command, pods there forbid it"


def unconfirmed(progress: Progress, surroundings: Surroundings) -> tuple[ProposedNode, ...]:
    """List the nodes that are about to be marked or deleted and whose pods may forbid that."""
    rollout, states = progress.rollout, by_claim(surroundings)
    bounds = {each.claim: each.bound for each in rollout.targets}
    return tuple(
        ProposedNode(each.claim, each.node)
        for each in progress.changes
        if each.is_disruptive and not _is_forced(rollout, states[each.claim], bounds[each.claim])
    )


def without_refused(
    progress: Progress, refusals: Sequence[NodeRefusal], surroundings: Surroundings
) -> Progress:
    """
    Leave the refused nodes alone, and take off what is written on them.

    The others go on, unless replacements were chosen for all of them together.
    """
    rollout, refused = progress.rollout, {each.node for each in refusals}
    staying = tuple(each for each in rollout.targets if each.node in refused)
    going = tuple(each for each in rollout.targets if each.node not in refused)
    told = _told(rollout, refusals, surroundings)
    if rollout.replacements or not going:
        given_up = replace(rollout, stage=Stage.FAILED)
        marks = _unmarking({each.claim for each in rollout.targets}, surroundings)
        return replace(progress, rollout=given_up, changes=marks, launches=(), outcome=told)
    claims = {each.claim for each in staying}
    changes = tuple(each for each in progress.changes if each.claim not in claims)
    return replace(
        progress,
        rollout=replace(rollout, targets=going),
        changes=(*changes, *_unmarking(claims, surroundings)),
        outcome=joined(told, progress.outcome),
    )


def _is_forced(rollout: Rollout, state: NodeState, bound: timedelta | None) -> bool:
    """Say whether no pod holds a node up: that of a repair whose drain has an end."""
    assert state.claim is not None
    has_end = bound is not None or state.claim.grace_period is not None
    return has_end and rollout.reason is DisruptionReason.UNHEALTHY


def _unmarking(claims: Collection[str], surroundings: Surroundings) -> tuple[Change, ...]:
    changes = []
    for claim, state in by_claim(surroundings).items():
        outcome = unmarked(state) if claim in claims else None
        if outcome is not None:
            changes.append(Change(claim, state.name, outcome))
    return tuple(changes)


def _told(rollout: Rollout, refusals: Sequence[NodeRefusal], surroundings: Surroundings) -> Changes:
    states, claims = by_claim(surroundings), {each.node: each.claim for each in rollout.targets}
    notices = []
    for each in refusals:
        text = _NEEDED.format(detail=each.detail) if each.why is Obstacle.NOT_EMPTY else ""
        notices += blocked_notices(states[claims[each.node]], each, text)
    why = "; ".join(f"{each.node}: {each.why.value} ({each.detail})" for each in refusals)
    return Changes(
        notices=tuple(notices),
        counts=failed_validations(rollout, len(refusals)),
        remarks=(Remark(_SPARED, {"command": str(rollout), "nodes": why}),),
    )
