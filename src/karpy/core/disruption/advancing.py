"""What becomes of a rollout when it sees the cluster again."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.decide import verdict_of_second_look
from karpy.core.disruption.marks import marked, removal, unmarked
from karpy.core.disruption.rollout import (
    PACE,
    VALIDATION_DELAY,
    Replacement,
    Rollout,
    Stage,
    as_target,
    patience,
)
from karpy.core.disruption.secondlook import SecondLook, requeue_after
from karpy.core.lifecycle.changes import Changes, Count, Remark, joined
from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.core.lifecycle.records import about_claim
from karpy.model.notices import Notice
from karpy.model.questions import ProposedNode, SecondLookQuestion
from karpy.model.records import ClaimRecord
from karpy.model.surroundings import NodeState, Surroundings
from karpy.model.verdicts import DisruptionVerdict, Launch

_States: TypeAlias = Mapping[str, NodeState]
"""By the name of the claim."""


class Change(Struct, frozen=True, gc=False):
    """What is to be done to one node; the outcome holds for its claim and Node."""

    claim: str
    node: str
    outcome: Changes
    is_disruptive: bool = False
    """Whether it marks or deletes, so that the pods of the node are to be confirmed before."""


class Decision(Struct, frozen=True, gc=False):
    """What was asked and decided on the way."""

    question: SecondLookQuestion
    verdict: DisruptionVerdict


class Progress(Struct, frozen=True, gc=False):
    """What a rollout has become, and what it asks for."""

    rollout: Rollout
    changes: tuple[Change, ...] = ()
    launches: tuple[Launch, ...] = ()
    """Claims to create; `with_launched` takes their names, and all of them or none."""
    decision: Decision | None = None
    """Tells why it goes on or not, if that was the question."""
    outcome: Changes = Changes()
    """What is told and counted of the rollout as a whole, and when to look again."""


def advance(rollout: Rollout, surroundings: Surroundings) -> Progress:
    """Take the next step, if it is time for one."""
    match rollout.stage:
        case Stage.PROPOSED:
            return _validate(rollout, surroundings)
        case Stage.MARKING:
            return _mark(rollout, surroundings)
        case Stage.LAUNCHING:
            return _launch(rollout, surroundings)
        case Stage.WAITING:
            return _wait(rollout, surroundings)
    return Progress(rollout)


def start(rollout: Rollout, surroundings: Surroundings) -> Progress:
    """Begin to carry out a rollout that needs no validation, or has just had it."""
    begun = replace(rollout, stage=Stage.MARKING, begun=surroundings.now)
    progress = _mark(begun, surroundings)
    told = Changes(remarks=(_beginning(begun),))
    return replace(progress, outcome=joined(told, progress.outcome))


def amid_rollouts(surroundings: Surroundings, rollouts: Sequence[Rollout]) -> Surroundings:
    """See the cluster with what is going on in it: who is busy, and who counts as going."""
    busy = frozenset(claim for each in rollouts for claim in each.busy)
    going = frozenset(claim for each in rollouts for claim in each.marked)
    nodes = tuple(
        replace(state, is_marked=True)
        if state.claim is not None and state.claim.name in going and not state.is_marked
        else state
        for state in surroundings.nodes
    )
    return replace(surroundings, nodes=nodes, busy=surroundings.busy | busy)


def _validate(rollout: Rollout, surroundings: Surroundings) -> Progress:
    due = rollout.proposed + VALIDATION_DELAY
    if surroundings.now < due:
        return Progress(rollout, outcome=Changes(requeue_after=due - surroundings.now))
    question = _second_look(rollout, surroundings)
    seen = requeue_after(question)
    progress = _resolve(rollout, seen, surroundings)
    return replace(progress, decision=Decision(question, verdict_of_second_look(seen)))


def _second_look(rollout: Rollout, surroundings: Surroundings) -> SecondLookQuestion:
    # Only others are in the way of its own nodes.
    free = replace(surroundings, busy=surroundings.busy - rollout.busy)
    return SecondLookQuestion(
        free, tuple(ProposedNode(each.claim, each.node) for each in rollout.targets)
    )


def _resolve(rollout: Rollout, seen: SecondLook, surroundings: Surroundings) -> Progress:
    """Go on with the nodes that may still go, if there are any."""
    if not seen.candidates:
        return _abandon(rollout, len(seen.spent) or len(rollout.targets))
    validated = replace(rollout, targets=tuple(as_target(each) for each in seen.candidates))
    progress = start(validated, surroundings)
    told = Changes(counts=failed_validations(rollout, len(seen.spent)))
    return replace(progress, outcome=joined(told, progress.outcome))


def _mark(rollout: Rollout, surroundings: Surroundings) -> Progress:
    """Mark nodes until all are seen marked; those that are gone meanwhile need nothing."""
    states = _states(surroundings)
    present = tuple(each for each in rollout.targets if each.claim in states)
    if not present:
        return Progress(replace(rollout, stage=Stage.DONE))
    rollout = replace(rollout, targets=present)
    if _is_late(rollout, surroundings):
        return _fail(rollout, surroundings, "marking its nodes took too long")
    changes = []
    for each in present:
        outcome = marked(states[each.claim], rollout.reason, surroundings.now)
        if outcome is not None:
            changes.append(Change(each.claim, each.node, outcome, is_disruptive=True))
    if changes:
        return Progress(rollout, tuple(changes), outcome=Changes(requeue_after=PACE))
    if rollout.replacements:
        return _launch(replace(rollout, stage=Stage.LAUNCHING), surroundings)
    return _wait(replace(rollout, stage=Stage.WAITING), surroundings)


def _launch(rollout: Rollout, surroundings: Surroundings) -> Progress:
    if _is_late(rollout, surroundings):
        return _fail(rollout, surroundings, "launching its replacements took too long")
    launches = tuple(each.launch for each in rollout.replacements)
    return Progress(rollout, launches=launches, outcome=Changes(requeue_after=PACE))


def _wait(rollout: Rollout, surroundings: Surroundings) -> Progress:
    """Wait for replacements, then delete; what was asked for and is not seen is asked for again."""
    states = _states(surroundings)
    seen = tuple(_seen(each, states) for each in rollout.replacements)
    counts = () if rollout.is_counted else _decisions(rollout)
    rollout = replace(rollout, replacements=seen, is_counted=True)
    if any(not each.is_initialized and each.claim not in states for each in seen):
        return _fail(rollout, surroundings, "a replacement was deleted")
    staying = [
        each
        for each in rollout.targets
        if each.claim in states and not states[each.claim].is_deleting
    ]
    if not staying:
        # Differs: Karpenter calls a rollout failed that ends well but late.
        remark = Remark("command succeeded", {"command": str(rollout)})
        outcome = Changes(counts=counts, remarks=(remark,))
        return Progress(replace(rollout, stage=Stage.DONE), outcome=outcome)
    if _is_late(rollout, surroundings):
        return _fail(rollout, surroundings, "it took too long")
    notices = tuple(
        notice
        for each in seen
        if not each.is_initialized
        for notice in _awaited(states[each.claim].claim, rollout)
    )
    if notices:
        outcome = Changes(notices=notices, counts=counts, requeue_after=PACE)
        return Progress(rollout, outcome=outcome)
    changes = tuple(
        Change(
            each.claim,
            each.node,
            removal(states[each.claim], each, rollout, surroundings),
            is_disruptive=True,
        )
        for each in staying
    )
    return Progress(rollout, changes, outcome=Changes(counts=counts, requeue_after=PACE))


def _abandon(rollout: Rollout, failed: int) -> Progress:
    remark = Remark(
        "abandoning empty node consolidation attempt due to pod churn, command is no longer valid",
        {"command": str(rollout)},
    )
    counts = failed_validations(rollout, failed)
    outcome = Changes(counts=counts, remarks=(remark,))
    return Progress(replace(rollout, stage=Stage.ABANDONED), outcome=outcome)


def _fail(rollout: Rollout, surroundings: Surroundings, why: str) -> Progress:
    """Let the nodes live; replacements stay, too, and are empty nodes soon enough."""
    states = _states(surroundings)
    changes = []
    for each in rollout.targets:
        outcome = unmarked(states[each.claim]) if each.claim in states else None
        if outcome is not None:
            changes.append(Change(each.claim, each.node, outcome))
    missing = sum(not each.is_initialized for each in rollout.replacements)
    count = Count("voluntary_disruption_queue_failures_total", _labels(rollout), float(missing))
    remark = Remark(
        "failed terminating nodes while executing a disruption command",
        {"command": str(rollout), "error": why},
        is_error=True,
    )
    outcome = Changes(counts=(count,), remarks=(remark,))
    return Progress(replace(rollout, stage=Stage.FAILED), tuple(changes), outcome=outcome)


def _states(surroundings: Surroundings) -> _States:
    return {each.claim.name: each for each in surroundings.nodes if each.claim is not None}


def _seen(replacement: Replacement, states: _States) -> Replacement:
    state = states.get(replacement.claim)
    if replacement.is_initialized or state is None or state.claim is None:
        return replacement
    return replace(replacement, is_initialized=state.claim.conditions.is_true(INITIALIZED))


def _is_late(rollout: Rollout, surroundings: Surroundings) -> bool:
    assert rollout.begun is not None
    nodes = len(surroundings.busy | rollout.busy)
    return surroundings.now - rollout.begun > patience(nodes)


def _awaited(claim: ClaimRecord | None, rollout: Rollout) -> tuple[Notice, ...]:
    assert claim is not None
    subject, reason = about_claim(claim), rollout.reason.value
    return (
        Notice(
            subject,
            "DisruptionLaunching",
            f"Launching NodeClaim: {reason}",
            same_as=(subject.uid, reason),
        ),
        Notice(
            subject,
            "DisruptionWaitingReadiness",
            "Waiting on readiness to continue disruption",
            same_as=(subject.uid,),
        ),
    )


def _beginning(rollout: Rollout) -> Remark:
    fields = {
        "command": str(rollout),
        "decision": rollout.decision,
        "disrupted-node-count": str(len(rollout.targets)),
        "replacement-node-count": str(len(rollout.replacements)),
        "pod-count": str(sum(each.pods for each in rollout.targets)),
    }
    return Remark("disrupting node(s)", fields)


def _labels(rollout: Rollout) -> dict[str, str]:
    return {
        "decision": rollout.decision,
        "reason": rollout.reason.value.lower(),
        "consolidation_type": rollout.consolidation_type,
    }


def _decisions(rollout: Rollout) -> tuple[Count, ...]:
    labels = _labels(rollout)
    pools = dict.fromkeys(each.pool for each in rollout.targets)
    by_pool = "voluntary_disruption_decisions_by_nodepool_total"
    return (
        Count("voluntary_disruption_decisions_total", labels),
        *(Count(by_pool, {"nodepool": pool, **labels}) for pool in pools),
        *(_going_first(rollout, pool) for pool in pools if rollout.goes_first),
    )


def _going_first(rollout: Rollout, pool: str) -> Count:
    return Count(
        "voluntary_disruption_terminate_first_decisions_total",
        {
            "nodepool": pool,
            "reason": rollout.reason.value.lower(),
            "terminate_first_reason": rollout.goes_first,
        },
    )


def failed_validations(rollout: Rollout, nodes: int) -> tuple[Count, ...]:
    """Count nodes of a rollout that may not go after all."""
    if not nodes:
        return ()
    labels = {"consolidation_type": rollout.consolidation_type}
    return (Count("voluntary_disruption_failed_validations_total", labels, float(nodes)),)
