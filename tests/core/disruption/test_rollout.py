from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.core.disruption.advancing import Change, Decision, Progress, advance, amid_rollouts
from karpy.core.disruption.decide import decide_disruption
from karpy.core.disruption.emptiness import Proposal, propose_empty
from karpy.core.disruption.rollout import (
    Replacement,
    Rollout,
    Stage,
    Target,
    begin_rollout,
    patience,
    with_launched,
)
from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.model.conditions import TRUE, Condition
from karpy.model.disruption import DisruptionReason
from karpy.model.questions import ProposedNode, SecondLookQuestion
from karpy.model.surroundings import NodeState, Surroundings
from karpy.model.verdicts import Launch, LaunchOption
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    DISRUPTED,
    around,
    budgets,
    state,
    tenant,
    told,
)

SECOND = timedelta(seconds=1)
DUE = NOON + 15 * SECOND
LAUNCH = Launch("web-1", "web", (), {}, {}, (LaunchOption("small", 250_000, "zone-a", "spot"),))
LABELS = {"decision": "delete", "reason": "empty", "consolidation_type": "empty"}
DELETING = {
    "reason": "empty",
    "nodepool": "web",
    "capacity_type": "on-demand",
    "consolidation_policy": "when_empty_or_underutilized",
    "termination_mode": "graceful",
}


def proposed(*nodes: NodeState) -> Rollout:
    rollout = begin_rollout(propose_empty(around(*nodes)), "id-1", NOON)
    assert rollout is not None
    return rollout


def at(moment: datetime, *nodes: NodeState, **changes: object) -> Surroundings:
    return around(*nodes, now=moment, **changes)


def marked(name: str, moment: datetime = DUE, **changes: bool) -> NodeState:
    """Build a node as it is after a rollout has marked it."""
    plain = state(name, taints=[DISRUPTED], deleting=changes.get("deleting", False))
    assert plain.claim is not None
    said = Condition("DisruptionReason", TRUE, moment, "Empty", "Empty")
    conditions = plain.claim.conditions.with_condition(said, moment)
    return replace(plain, claim=replace(plain.claim, conditions=conditions))


def decided(surroundings: Surroundings, *nodes: str) -> Decision:
    """Return what a second look at some nodes comes to."""
    proposal = tuple(ProposedNode(f"{each}-claim", each) for each in nodes)
    question = SecondLookQuestion(surroundings, proposal)
    return Decision(question, decide_disruption(question))


def waiting(*replacements: Replacement) -> Rollout:
    return replace(proposed(state("a")), stage=Stage.WAITING, begun=DUE, replacements=replacements)


def test_a_proposal_of_nothing_is_no_rollout() -> None:
    assert begin_rollout(Proposal(DisruptionReason.EMPTY), "id-1", NOON) is None


def test_a_rollout_knows_its_nodes() -> None:
    rollout = proposed(state("a"), state("b", type="large"))

    assert rollout == Rollout(
        "id-1",
        DisruptionReason.EMPTY,
        "empty",
        (Target("b-claim", "b", "web", 4_000_000), Target("a-claim", "a", "web", 1_000_000)),
        NOON,
    )
    assert str(rollout) == "Empty/id-1: delete: nodepools=[web]: [b, a] (savings: $5.00)"


def test_a_rollout_with_replacements_counts_their_price() -> None:
    rollout = replace(proposed(state("a")), replacements=(Replacement(LAUNCH),))

    assert str(rollout) == (
        "Empty/id-1: replace: nodepools=[web]: [a] -> [1 replacement] (savings: $0.75)"
    )


@pytest.mark.parametrize(
    ("stage", "is_forming"),
    [
        (Stage.PROPOSED, True),
        (Stage.MARKING, True),
        (Stage.LAUNCHING, True),
        (Stage.WAITING, False),
        (Stage.DONE, False),
        (Stage.ABANDONED, False),
        (Stage.FAILED, False),
    ],
)
def test_a_rollout_is_forming_until_budgets_count_it(stage: Stage, *, is_forming: bool) -> None:
    assert replace(proposed(state("a")), stage=stage).is_forming is is_forming


def test_nothing_happens_for_fifteen_seconds() -> None:
    rollout = proposed(state("a"))

    progress = advance(rollout, at(NOON + 5 * SECOND, state("a", tenants=[tenant("x")])))

    assert progress == Progress(rollout, outcome=Changes(requeue_after=10 * SECOND))


def test_nodes_that_are_still_empty_are_marked_then() -> None:
    rollout, node = proposed(state("a")), marked("a")

    progress = advance(rollout, at(DUE, state("a")))

    begun = replace(rollout, stage=Stage.MARKING, begun=DUE)
    fields = {
        "command": "Empty/id-1: delete: nodepools=[web]: [a] (savings: $1.00)",
        "decision": "delete",
        "disrupted-node-count": "1",
        "replacement-node-count": "0",
        "pod-count": "0",
    }
    assert progress == Progress(
        begun,
        (Change("a-claim", "a", Changes(claim=node.claim, node=node.node), is_disruptive=True),),
        decision=decided(at(DUE, state("a")), "a"),
        outcome=Changes(remarks=(Remark("disrupting node(s)", fields),), requeue_after=SECOND),
    )


def test_only_those_that_are_still_empty_go() -> None:
    rollout = proposed(state("a"), state("b"), state("c"))
    nodes = [state("a", tenants=[tenant("x")]), state("b", nominated_for=SECOND * 60), state("c")]

    progress = advance(rollout, at(DUE, *nodes))

    assert [each.claim for each in progress.rollout.targets] == ["c-claim"]
    assert progress.decision == decided(at(DUE, *nodes), "a", "b", "c")
    assert progress.outcome.counts == ()


def test_only_as_many_go_as_the_budget_still_allows() -> None:
    rollout = proposed(state("a"), state("b"), state("c"))
    nodes = [state("a"), state("b"), state("c"), state("d", ready=False)]

    progress = advance(rollout, at(DUE, *nodes, policies={"web": budgets("2")}))

    labels = {"consolidation_type": "empty"}
    assert [each.claim for each in progress.rollout.targets] == ["a-claim"]
    assert progress.outcome.counts == (
        Count("voluntary_disruption_failed_validations_total", labels, 2.0),
    )


def test_a_rollout_of_which_nothing_is_left_is_abandoned() -> None:
    rollout = proposed(state("a"), state("b"))

    progress = advance(rollout, at(DUE, state("a", tenants=[tenant("x")])))

    labels = {"consolidation_type": "empty"}
    assert progress.rollout.stage is Stage.ABANDONED
    assert progress.changes == ()
    assert progress.decision == decided(at(DUE, state("a", tenants=[tenant("x")])), "a", "b")
    assert progress.outcome.counts == (
        Count("voluntary_disruption_failed_validations_total", labels, 2.0),
    )
    assert progress.outcome.requeue_after is None


def test_a_rollout_is_not_in_its_own_way() -> None:
    rollout = proposed(state("a"))

    progress = advance(rollout, amid_rollouts(at(DUE, state("a")), [rollout]))

    assert progress.rollout.stage is Stage.MARKING
    assert progress.decision == decided(at(DUE, state("a")), "a")


def test_another_rollout_is_in_the_way() -> None:
    rollout = proposed(state("a"))
    other = replace(rollout, id="id-2", stage=Stage.WAITING, begun=NOON)
    twice = replace(amid_rollouts(at(DUE, state("a")), [other]), busy=frozenset())

    progress = advance(rollout, twice)

    assert progress.rollout.stage is Stage.ABANDONED
    assert progress.decision == decided(twice, "a")


def test_what_was_not_seen_marked_is_marked_again() -> None:
    rollout = replace(proposed(state("a"), state("b")), stage=Stage.MARKING, begun=DUE)

    progress = advance(rollout, at(DUE + SECOND, marked("a"), state("b")))

    assert progress.rollout == rollout
    assert [each.claim for each in progress.changes] == ["b-claim"]


def test_marked_nodes_are_deleted_and_told() -> None:
    rollout = replace(proposed(state("a")), stage=Stage.MARKING, begun=DUE)

    progress = advance(rollout, at(DUE + SECOND, marked("a")))

    removal = progress.changes[0].outcome
    assert progress.rollout == replace(rollout, stage=Stage.WAITING, is_counted=True)
    assert progress.outcome == Changes(
        counts=(
            Count("voluntary_disruption_decisions_total", LABELS),
            Count(
                "voluntary_disruption_decisions_by_nodepool_total", {"nodepool": "web", **LABELS}
            ),
        ),
        requeue_after=SECOND,
    )
    assert removal.deletes_claim
    assert told(removal.notices) == [
        ("Node", "a", "DisruptionTerminating", "Disrupting Node: Empty"),
        ("NodeClaim", "a-claim", "DisruptionTerminating", "Disrupting NodeClaim: Empty"),
    ]
    assert removal.counts == (
        Count("nodeclaims_disrupted_total", DELETING),
        Count("pods_disruption_initiated_total", DELETING, 0.0),
    )


def test_a_decision_is_counted_once() -> None:
    rollout = replace(waiting(), is_counted=True)

    progress = advance(rollout, at(DUE + SECOND, marked("a")))

    assert [each.claim for each in progress.changes] == ["a-claim"]
    assert progress.outcome.counts == ()


def test_a_rollout_is_done_once_its_nodes_are_seen_going() -> None:
    rollout = replace(waiting(), is_counted=True)

    progress = advance(rollout, at(DUE + 3 * SECOND, marked("a", deleting=True)))

    assert progress.rollout == replace(rollout, stage=Stage.DONE)
    assert progress.changes == ()
    assert progress.rollout.busy == frozenset()


def test_a_rollout_is_done_once_its_nodes_are_gone() -> None:
    rollout = replace(proposed(state("a")), stage=Stage.MARKING, begun=DUE)

    progress = advance(rollout, at(DUE + SECOND))

    assert progress == Progress(replace(rollout, stage=Stage.DONE))


def test_a_rollout_that_ends_well_but_late_has_not_failed() -> None:
    rollout = replace(waiting(), is_counted=True)

    progress = advance(rollout, at(DUE + timedelta(hours=2), marked("a", deleting=True)))

    assert progress.rollout.stage is Stage.DONE


@pytest.mark.parametrize("stage", [Stage.MARKING, Stage.LAUNCHING, Stage.WAITING])
def test_a_rollout_that_takes_too_long_lets_its_nodes_live(stage: Stage) -> None:
    rollout = replace(waiting(), stage=stage, is_counted=True)
    claim = marked("a").claim
    assert claim is not None
    kept = replace(claim, conditions=claim.conditions.without("DisruptionReason"))

    progress = advance(rollout, at(DUE + timedelta(minutes=10, seconds=1), marked("a")))

    assert progress.rollout == replace(rollout, stage=Stage.FAILED)
    assert progress.changes == (Change("a-claim", "a", Changes(claim=kept, node=state("a").node)),)
    assert progress.outcome.counts == (
        Count("voluntary_disruption_queue_failures_total", LABELS, 0.0),
    )


def test_replacements_are_launched_before_anything_is_deleted() -> None:
    rollout = replace(
        proposed(state("a")),
        stage=Stage.MARKING,
        begun=DUE,
        replacements=(Replacement(LAUNCH),),
    )

    progress = advance(rollout, at(DUE + SECOND, marked("a")))

    assert progress == Progress(
        replace(rollout, stage=Stage.LAUNCHING),
        launches=(LAUNCH,),
        outcome=Changes(requeue_after=SECOND),
    )


def test_pods_of_a_node_need_another_place_only_once_replacements_are_launched() -> None:
    launching = replace(waiting(Replacement(LAUNCH)), stage=Stage.LAUNCHING)

    launched = with_launched(launching, ["web-x"])

    assert launching.marked == frozenset()
    assert launched.marked == frozenset({"a-claim"})
    assert launched.replacements == (Replacement(LAUNCH, "web-x"),)


def test_a_node_waits_for_its_replacement() -> None:
    rollout = waiting(Replacement(LAUNCH, "b-claim"))

    progress = advance(rollout, at(DUE + SECOND, marked("a"), state("b", said=[])))

    assert progress.changes == ()
    assert told(progress.outcome.notices) == [
        ("NodeClaim", "b-claim", "DisruptionLaunching", "Launching NodeClaim: Empty"),
        (
            "NodeClaim",
            "b-claim",
            "DisruptionWaitingReadiness",
            "Waiting on readiness to continue disruption",
        ),
    ]


def test_a_node_goes_once_its_replacement_is_there() -> None:
    rollout = waiting(Replacement(LAUNCH, "b-claim"))

    progress = advance(rollout, at(DUE + SECOND, marked("a"), state("b", said=["Initialized"])))

    assert progress.rollout.replacements == (Replacement(LAUNCH, "b-claim", True),)
    assert [each.outcome.deletes_claim for each in progress.changes] == [True]


def test_a_replacement_that_vanished_fails_the_rollout() -> None:
    rollout = waiting(Replacement(LAUNCH, "b-claim"))

    progress = advance(rollout, at(DUE + SECOND, marked("a")))

    labels = {"decision": "replace", "reason": "empty", "consolidation_type": "empty"}
    assert progress.rollout.stage is Stage.FAILED
    assert [each.outcome.node for each in progress.changes] == [state("a").node]
    assert progress.outcome.counts == (
        Count("voluntary_disruption_queue_failures_total", labels, 1.0),
    )


def test_a_replacement_that_was_there_once_may_go() -> None:
    rollout = waiting(Replacement(LAUNCH, "b-claim", is_initialized=True))

    progress = advance(rollout, at(DUE + SECOND, marked("a")))

    assert progress.rollout.stage is Stage.WAITING
    assert [each.claim for each in progress.changes] == ["a-claim"]


@pytest.mark.parametrize("stage", [Stage.DONE, Stage.ABANDONED, Stage.FAILED])
def test_what_is_over_stays_so(stage: Stage) -> None:
    rollout = replace(waiting(), stage=stage)

    assert advance(rollout, at(DUE, state("a"))) == Progress(rollout)


def test_nodes_of_a_rollout_are_busy_and_in_the_end_going() -> None:
    first = proposed(state("a"))
    second = replace(proposed(state("b")), stage=Stage.WAITING, begun=DUE)

    seen = amid_rollouts(around(state("a"), state("b"), state("c")), [first, second])

    assert seen.busy == {"a-claim", "b-claim"}
    assert [each.is_marked for each in seen.nodes] == [False, True, False]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (0, timedelta(minutes=10)),
        (7_500, timedelta(minutes=10)),
        (20_000, timedelta(seconds=1600)),
        (45_000, timedelta(hours=1)),
        (99_000, timedelta(hours=1)),
    ],
)
def test_patience_grows_with_what_is_going_on(nodes: int, expected: timedelta) -> None:
    assert patience(nodes) == expected
