import pytest
from hypothesis import given

from karpy.core.disruption.decide import decide_disruption, is_news
from karpy.model.disruption import DisruptionReason
from karpy.model.questions import BrokenNodesQuestion, DisruptionQuestion, EmptyNodesQuestion
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.repairs import RepairAction
from karpy.model.verdicts import DisruptionVerdict, NodeChoice
from tests.core.disruption.questions import REPAIRS, questions
from tests.core.disruption.scenes import around, state, tenant
from tests.core.disruption.test_repairing import crowd, sick

EMPTY, UNHEALTHY = DisruptionReason.EMPTY, DisruptionReason.UNHEALTHY
CHOSEN = (NodeChoice("a", "a-claim", "web", 1_000_000),)
REFUSED = (NodeRefusal(Obstacle.NOT_EMPTY, "b"),)


def test_the_verdict_on_empty_nodes_names_who_goes_and_why_not_the_others() -> None:
    surroundings = around(state("a"), state("b", tenants=[tenant("x")]))

    verdict = decide_disruption(EmptyNodesQuestion(surroundings))

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


@given(questions())
def test_the_same_question_has_the_same_verdict(question: DisruptionQuestion) -> None:
    assert decide_disruption(question) == decide_disruption(question)


@pytest.mark.parametrize(
    ("verdict", "before", "expected"),
    [
        (DisruptionVerdict(EMPTY), None, False),
        (DisruptionVerdict(EMPTY), DisruptionVerdict(EMPTY), False),
        (DisruptionVerdict(EMPTY, (), REFUSED), None, True),
        (DisruptionVerdict(EMPTY, (), REFUSED), DisruptionVerdict(EMPTY, (), REFUSED), False),
        (DisruptionVerdict(EMPTY), DisruptionVerdict(EMPTY, (), REFUSED), True),
        (DisruptionVerdict(EMPTY, CHOSEN), None, True),
        (DisruptionVerdict(EMPTY, CHOSEN), DisruptionVerdict(EMPTY, CHOSEN), True),
        (DisruptionVerdict(UNHEALTHY, CHOSEN), None, True),
        (DisruptionVerdict(UNHEALTHY, CHOSEN), DisruptionVerdict(UNHEALTHY, CHOSEN), False),
    ],
)
def test_news_is_what_changes_something_or_has_changed(
    verdict: DisruptionVerdict, before: DisruptionVerdict | None, *, expected: bool
) -> None:
    assert is_news(verdict, before) is expected
