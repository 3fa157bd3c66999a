from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.disruption.advancing import Change, Progress
from karpy.core.disruption.confirming import Occupancy, ask, confirm
from karpy.core.disruption.decide import decide_disruption
from karpy.core.disruption.rollout import Replacement, Rollout, Stage, Target
from karpy.core.disruption.sparing import unconfirmed, without_refused
from karpy.core.lifecycle.changes import Changes
from karpy.model.disruption import DisruptionReason
from karpy.model.questions import ProposedNode
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.surroundings import NodeState
from karpy.model.tenants import PodBudget, Tenant
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    DISRUPTED,
    around,
    pod_budget,
    refused,
    state,
    tenant,
    told,
)
from tests.core.disruption.test_rollout import LAUNCH

CHEAP = {"karpenter.sh/disruption-cost": "-134217728"}
EMPTY, BROKEN = DisruptionReason.EMPTY, DisruptionReason.UNHEALTHY
A, B = ProposedNode("a-claim", "a"), ProposedNode("b-claim", "b")


@pytest.mark.parametrize(
    ("reason", "listed", "budgets", "refusals"),
    [
        (EMPTY, [], (), []),
        (EMPTY, [tenant("x")], (), [("a", "NOT_EMPTY", "shop/x")]),
        (EMPTY, [tenant("x", annotations=CHEAP)], (), []),
        (EMPTY, [tenant("x", is_daemon=True)], (), []),
        (EMPTY, [tenant("x", phase="Succeeded", unreadable="odd")], (), []),
        (EMPTY, [tenant("x", phase="Odd")], (), [("a", "NOT_EMPTY", "shop/x")]),
        (EMPTY, [tenant("x", unreadable="odd")], (), [("a", "POD_UNREADABLE", "shop/x")]),
        (
            EMPTY,
            [tenant("x", is_daemon=True, do_not_disrupt="true")],
            (),
            [("a", "POD_DO_NOT_DISRUPT", "shop/x")],
        ),
        (
            EMPTY,
            [tenant("x", is_daemon=True, labels={"app": "web"})],
            (pod_budget("guard"),),
            [("a", "POD_BUDGET", "shop/guard")],
        ),
        (BROKEN, [tenant("x")], (), []),
        (BROKEN, [tenant("x", unreadable="odd")], (), [("a", "POD_UNREADABLE", "shop/x")]),
    ],
)
def test_a_node_goes_only_if_the_pods_that_are_listed_there_let_it(
    reason: DisruptionReason,
    listed: list[Tenant],
    budgets: tuple[PodBudget, ...],
    refusals: list[tuple[str, str, str]],
) -> None:
    occupancy = Occupancy({"a": tuple(listed), "b": ()}, budgets)

    question = ask(reason, (A, B), around(state("a"), state("b")), occupancy)
    verdict = confirm(question)

    assert refused(verdict.refusals) == refusals
    assert [each.node for each in verdict.choices] == ["a", "b"][len(refusals) :]
    assert (verdict.reason, decide_disruption(question)) == (reason, verdict)


def marked(name: str) -> NodeState:
    return state(name, taints=[DISRUPTED], said=["Consolidatable", "DisruptionReason"])


def rollout(reason: DisruptionReason = EMPTY, **changes: object) -> Rollout:
    targets = (Target("a-claim", "a", "web"), Target("b-claim", "b", "web"))
    made = Rollout("id-1", reason, "empty", targets, NOON, stage=Stage.WAITING, begun=NOON)
    return replace(made, **changes)


def deleting(*names: str) -> tuple[Change, ...]:
    outcome = Changes(deletes_claim=True)
    return tuple(Change(f"{each}-claim", each, outcome, is_disruptive=True) for each in names)


A_IS_NEEDED = NodeRefusal(Obstacle.NOT_EMPTY, "a", "shop/x")
AROUND = around(marked("a"), marked("b"))


def test_a_node_that_is_needed_is_left_out_and_its_marks_are_taken_off() -> None:
    progress = without_refused(Progress(rollout(), deleting("a", "b")), (A_IS_NEEDED,), AROUND)

    assert [each.node for each in progress.rollout.targets] == ["b"]
    assert progress.rollout.stage is Stage.WAITING
    assert progress.changes[0] == deleting("b")[0]
    assert taints(progress.changes[1:]) == [("a", ())]
    assert told(progress.outcome.notices) == [
        (kind, name, "DisruptionBlocked", "Pod needs the node after all (Pod=shop/x)")
        for kind, name in (("Node", "a"), ("NodeClaim", "a-claim"))
    ]


@pytest.mark.parametrize(
    "command",
    [rollout(targets=rollout().targets[:1]), rollout(replacements=(Replacement(LAUNCH),))],
)
def test_a_command_that_cannot_do_without_the_node_is_given_up(command: Rollout) -> None:
    progress = without_refused(
        Progress(command, deleting("a"), launches=(LAUNCH,)), (A_IS_NEEDED,), AROUND
    )

    names = [each.node for each in command.targets]
    assert (progress.rollout, progress.launches) == (replace(command, stage=Stage.FAILED), ())
    assert taints(progress.changes) == [(each, ()) for each in names]


def taints(changes: tuple[Change, ...]) -> list[tuple[str, object]]:
    """Return the taints that nodes are left with."""
    return [(each.node, each.outcome.node and each.outcome.node.taints) for each in changes]


@pytest.mark.parametrize(
    ("reason", "bound", "grace", "asked"),
    [
        (EMPTY, None, None, (A,)),
        (EMPTY, None, timedelta(minutes=1), (A,)),
        (BROKEN, None, None, (A,)),
        (BROKEN, timedelta(0), None, ()),
        (BROKEN, None, timedelta(minutes=1), ()),
    ],
)
def test_pods_are_asked_for_unless_a_repair_ends_without_their_leave(
    reason: DisruptionReason,
    bound: timedelta | None,
    grace: timedelta | None,
    asked: tuple[ProposedNode, ...],
) -> None:
    command = rollout(reason, targets=(Target("a-claim", "a", "web", bound=bound),))
    unmarking = Change("a-claim", "a", Changes())

    found = unconfirmed(
        Progress(command, (*deleting("a"), unmarking)), around(state("a", grace_period=grace))
    )

    assert found == asked
