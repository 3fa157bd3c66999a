from datetime import timedelta

import pytest
from hypothesis import given
from msgspec.structs import replace

from karpy.core.disruption.decide import decide_disruption, is_news
from karpy.model.disruption import DisruptionReason
from karpy.model.questions import (
    BrokenNodesQuestion,
    DisruptionQuestion,
    EmptyNodesQuestion,
    LegacyRepairQuestion,
    ProposedNode,
    SecondLookQuestion,
    TreatmentQuestion,
)
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.repairs import RepairAction
from karpy.model.surroundings import NodeState
from karpy.model.verdicts import DisruptionVerdict, NodeChoice
from tests.builders import node, pod, snapshot
from tests.builders import pool as node_pool
from tests.core.disruption.questions import REPAIRS, questions
from tests.core.disruption.scenes import HOUR, around, state, tenant
from tests.core.disruption.test_repairing import crowd, sick
from tests.core.disruption.test_treatment import on_reservation, reserved, reserved_node

EMPTY, UNHEALTHY = DisruptionReason.EMPTY, DisruptionReason.UNHEALTHY
CHOSEN = (NodeChoice("a", "a-claim", "web", 1_000_000),)
REFUSED = (NodeRefusal(Obstacle.NOT_EMPTY, "b"),)
ASK_EMPTY, ASK_BROKEN = EmptyNodesQuestion(around()), BrokenNodesQuestion(around())
ASK_AGAIN = SecondLookQuestion(around())
ASK_HOW = TreatmentQuestion(around(), snapshot())


def test_the_verdict_on_empty_nodes_names_who_goes_and_why_not_the_others() -> None:
    surroundings = around(state("a"), state("b", tenants=[tenant("x")]))

    verdict = decide_disruption(EmptyNodesQuestion(surroundings))

    assert verdict == DisruptionVerdict(EMPTY, CHOSEN, REFUSED)


def test_the_verdict_on_proposed_nodes_names_who_may_still_go_and_why_not_the_others() -> None:
    surroundings = around(state("a"), state("b", tenants=[tenant("x")]), state("other"))
    proposal = (ProposedNode("a-claim", "a"), ProposedNode("b-claim", "b"))

    verdict = decide_disruption(SecondLookQuestion(surroundings, proposal))

    assert verdict == DisruptionVerdict(EMPTY, CHOSEN, REFUSED)


def test_the_verdict_on_broken_nodes_says_what_mends_them() -> None:
    surroundings = crowd(sick("a"), sick("b", "Slow"), sick("c", said=["Rebooting"]), well=12)

    verdict = decide_disruption(BrokenNodesQuestion(surroundings, REPAIRS))

    assert verdict.reason is UNHEALTHY
    assert {each.node: each.remedy for each in verdict.choices} == {
        "a": RepairAction.REPLACE,
        "b": RepairAction.REBOOT,
    }
    assert verdict.refusals == (NodeRefusal(Obstacle.REBOOTING, "c"),)


def test_a_node_that_reboots_did_not_mend_is_replaced() -> None:
    surroundings = crowd(sick("a", "Slow"))
    times = (surroundings.now, surroundings.now)

    verdict = decide_disruption(BrokenNodesQuestion(surroundings, REPAIRS, {"uid-a-claim": times}))

    assert [each.remedy for each in verdict.choices] == [RepairAction.REPLACE]


def test_the_verdict_on_a_treatment_says_what_replaces_a_broken_node() -> None:
    surroundings = crowd(sick("a", since=2 * HOUR), sick("b"), well=12)
    cluster = snapshot(
        nodes=[node("a", pool="web"), node("b", pool="web"), node("c", pool="web")],
        pods=[
            pod("huge", on="a", cpu="300"),
            pod("small", on="b", cpu="1"),
            pod("large", on="b", cpu="8"),
        ],
        pools=[node_pool("web")],
    )

    verdict = decide_disruption(TreatmentQuestion(surroundings, cluster, REPAIRS))

    assert verdict == DisruptionVerdict(
        UNHEALTHY,
        (NodeChoice("b", "b-claim", "web", 1_000_000, RepairAction.REPLACE),),
        (NodeRefusal(Obstacle.PODS_UNPLACED, "a", "web"),),
        launches=verdict.launches,
        expected_on=("c",),
    )
    assert [each.pods for each in verdict.launches] == [("default/large",)]


def test_the_verdict_on_a_treatment_says_why_a_node_goes_first() -> None:
    question = TreatmentQuestion(
        crowd(reserved_node()), on_reservation(reserved()), REPAIRS, may_go_first=True
    )

    verdict = decide_disruption(question)

    assert [each.node for each in verdict.choices] == ["a"]
    assert (verdict.launches, verdict.goes_first) == ((), "no-reserved-capacity")


def test_the_verdict_on_a_treatment_may_be_a_reboot() -> None:
    question = TreatmentQuestion(crowd(sick("a", "Slow")), snapshot(), REPAIRS)

    verdict = decide_disruption(question)

    assert verdict == DisruptionVerdict(
        UNHEALTHY, (NodeChoice("a", "a-claim", "web", 1_000_000, RepairAction.REBOOT),)
    )


@pytest.mark.parametrize(
    ("broken", "well", "verdict"),
    [
        (
            sick("a"),
            9,
            DisruptionVerdict(
                UNHEALTHY, (NodeChoice("a", "a-claim", "web", remedy=RepairAction.REPLACE),)
            ),
        ),
        (sick("a", since=timedelta()), 9, DisruptionVerdict(UNHEALTHY)),
        (
            sick("a"),
            0,
            DisruptionVerdict(UNHEALTHY, (), (NodeRefusal(Obstacle.MOSTLY_UNHEALTHY, "a", "web"),)),
        ),
        (
            sick("a", deleting=True),
            9,
            DisruptionVerdict(UNHEALTHY, (), (NodeRefusal(Obstacle.LEAVING, "a"),)),
        ),
        (replace(sick("a"), claim=None), 9, DisruptionVerdict(UNHEALTHY)),
    ],
    ids=["given up", "bearable", "one of many", "going", "of nobody"],
)
def test_the_verdict_on_a_node_that_is_repaired_the_old_way(
    broken: NodeState, well: int, verdict: DisruptionVerdict
) -> None:
    around_it = crowd(broken, sick("other", since=timedelta()), well=well)

    assert decide_disruption(LegacyRepairQuestion(around_it, broken, REPAIRS)) == verdict


@given(questions())
def test_the_same_question_has_the_same_verdict(question: DisruptionQuestion) -> None:
    assert decide_disruption(question) == decide_disruption(question)


@pytest.mark.parametrize(
    ("question", "verdict", "before", "expected"),
    [
        (ASK_EMPTY, DisruptionVerdict(EMPTY), None, False),
        (ASK_EMPTY, DisruptionVerdict(EMPTY), DisruptionVerdict(EMPTY), False),
        (ASK_EMPTY, DisruptionVerdict(EMPTY, (), REFUSED), None, True),
        (
            ASK_EMPTY,
            DisruptionVerdict(EMPTY, (), REFUSED),
            DisruptionVerdict(EMPTY, (), REFUSED),
            False,
        ),
        (ASK_EMPTY, DisruptionVerdict(EMPTY), DisruptionVerdict(EMPTY, (), REFUSED), True),
        (ASK_EMPTY, DisruptionVerdict(EMPTY, CHOSEN), None, True),
        (ASK_EMPTY, DisruptionVerdict(EMPTY, CHOSEN), DisruptionVerdict(EMPTY, CHOSEN), True),
        (ASK_BROKEN, DisruptionVerdict(UNHEALTHY, CHOSEN), None, True),
        (
            ASK_BROKEN,
            DisruptionVerdict(UNHEALTHY, CHOSEN),
            DisruptionVerdict(UNHEALTHY, CHOSEN),
            False,
        ),
        (ASK_HOW, DisruptionVerdict(UNHEALTHY), None, False),
        (ASK_HOW, DisruptionVerdict(UNHEALTHY, (), REFUSED), None, True),
        (ASK_HOW, DisruptionVerdict(UNHEALTHY, CHOSEN), DisruptionVerdict(UNHEALTHY, CHOSEN), True),
        (ASK_HOW, DisruptionVerdict(UNHEALTHY), DisruptionVerdict(UNHEALTHY, (), REFUSED), True),
        (
            ASK_HOW,
            DisruptionVerdict(UNHEALTHY, (), REFUSED),
            DisruptionVerdict(UNHEALTHY, (), REFUSED),
            False,
        ),
        (ASK_AGAIN, DisruptionVerdict(EMPTY, CHOSEN), DisruptionVerdict(EMPTY, CHOSEN), True),
        (
            ASK_AGAIN,
            DisruptionVerdict(EMPTY, (), REFUSED),
            DisruptionVerdict(EMPTY, (), REFUSED),
            True,
        ),
    ],
)
def test_news_is_what_changes_something_or_has_changed(
    question: DisruptionQuestion,
    verdict: DisruptionVerdict,
    before: DisruptionVerdict | None,
    *,
    expected: bool,
) -> None:
    assert is_news(question, verdict, before) is expected
