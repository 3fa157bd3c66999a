import pytest
from hypothesis import given

from karpy.core.nodepool.staticcapacity import template_launch
from karpy.core.staticpools import decide_pool, is_news
from karpy.model.pools import Headcount
from karpy.model.questions import FillUpQuestion, PoolQuestion, ThinOutQuestion
from karpy.model.refusals import Constraint, Exclusion, NodeRefusal, Obstacle
from karpy.model.verdicts import PoolVerdict
from tests.builders import pool as node_pool
from tests.builders.pods import NOON
from tests.core.disruption.scenes import state, tenant
from tests.core.nodepool.questions import pool_questions
from tests.core.nodepool.test_staticcapacity import static

TEMPLATE = node_pool("web", static=True)
LIMIT = Exclusion(Constraint.NODE_LIMIT, "", 2)
NOTHING, LIMITED = PoolVerdict("web"), PoolVerdict("web", withheld=LIMIT)
MADE = PoolVerdict("web", 1, template_launch(TEMPLATE))
GIVEN_UP = PoolVerdict("web", deletes=("a-claim",))


def test_the_verdict_on_a_pool_that_lacks_nodes_says_what_is_made_and_what_is_not() -> None:
    question = FillUpQuestion(NOON, static(5, limit=3), Headcount(active=2), TEMPLATE)

    verdict = decide_pool(question)

    assert verdict == PoolVerdict("web", 1, template_launch(TEMPLATE), LIMIT)


def test_the_verdict_on_a_pool_with_too_many_nodes_says_which_go_and_why_others_stay() -> None:
    nodes = (state("a"), state("b", tenants=[tenant("x")]), state("c", deleting=True))

    verdict = decide_pool(ThinOutQuestion(NOON, static(1), Headcount(active=2, deleting=1), nodes))

    assert verdict == PoolVerdict(
        "web",
        deletes=("a-claim",),
        refusals=(NodeRefusal(Obstacle.POOL_SIZE, "b"), NodeRefusal(Obstacle.LEAVING, "c")),
    )


def test_a_pool_of_the_right_size_stays_as_it_is() -> None:
    heads = Headcount(active=2)

    assert decide_pool(FillUpQuestion(NOON, static(2), heads)) == NOTHING
    assert decide_pool(ThinOutQuestion(NOON, static(2), heads)) == NOTHING


@given(pool_questions())
def test_the_same_question_has_the_same_verdict(question: PoolQuestion) -> None:
    assert decide_pool(question) == decide_pool(question)


@pytest.mark.parametrize(
    ("verdict", "before", "expected"),
    [
        (NOTHING, None, False),
        (NOTHING, NOTHING, False),
        (LIMITED, None, True),
        (LIMITED, LIMITED, False),
        (NOTHING, LIMITED, True),
        (MADE, MADE, True),
        (GIVEN_UP, GIVEN_UP, True),
    ],
)
def test_news_is_what_changes_something_or_has_changed(
    verdict: PoolVerdict, before: PoolVerdict | None, *, expected: bool
) -> None:
    assert is_news(verdict, before) is expected
