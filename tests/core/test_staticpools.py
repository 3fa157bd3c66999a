from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.core.nodepool.staticcapacity import Adjustment, fill_up, template_launch
from karpy.core.staticpools import adjust, decide_pool, give_up_surplus, is_news
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.pools import Headcount
from karpy.model.records import PoolRecord
from karpy.model.snapshot import FillUpQuestion, PoolQuestion, ThinOutQuestion
from karpy.model.verdicts import Constraint, Exclusion, NodeReason, NodeRefusal, PoolVerdict
from tests.builders import pool as node_pool
from tests.builders.pods import NOON
from tests.core.disruption.scenes import HOUR, MINUTE, node, only_claim, only_node, pod, refused
from tests.core.nodepool.questions import pool_questions
from tests.core.nodepool.records import pool
from tests.core.nodepool.test_staticcapacity import READY, adjustment_remark, static

TEMPLATE = node_pool("web", static=True)
LIMIT = Exclusion(Constraint.NODE_LIMIT, "", 2)
NOTHING, LIMITED = PoolVerdict("web"), PoolVerdict("web", withheld=LIMIT)
MADE = PoolVerdict("web", 1, template_launch(TEMPLATE))
GIVEN_UP = PoolVerdict("web", deletes=("a-claim",))
counts = st.integers(0, 20)


def given_up(
    replicas: int, nodes: Sequence[Node], *pods: Pod, heads: Headcount | None = None
) -> Adjustment:
    """Return the adjustment for a surplus; by default all nodes of the pool are active."""
    heads = Headcount(active=len(nodes)) if heads is None else heads
    return give_up_surplus(ThinOutQuestion(NOON, static(replicas), heads, tuple(nodes), pods))


def test_the_verdict_on_a_pool_that_lacks_nodes_has_the_launch_and_what_is_withheld() -> None:
    question = FillUpQuestion(NOON, static(5, limit=3), Headcount(active=2), TEMPLATE)

    verdict = decide_pool(question)

    assert verdict == PoolVerdict("web", 1, template_launch(TEMPLATE), LIMIT)


def test_the_verdict_on_a_pool_with_too_many_nodes_says_why_others_stay() -> None:
    nodes = (node("a"), node("b"), node("c", deleting=True))
    heads = Headcount(active=2, deleting=1)

    verdict = decide_pool(ThinOutQuestion(NOON, static(1), heads, nodes, (pod("x", on="b"),)))

    assert verdict == PoolVerdict(
        "web",
        deletes=("a-claim",),
        refusals=(NodeRefusal(NodeReason.POOL_SIZE, "b"), NodeRefusal(NodeReason.DELETING, "c")),
    )


def test_a_pool_of_the_right_size_stays_as_it_is() -> None:
    heads = Headcount(active=2)

    assert decide_pool(FillUpQuestion(NOON, static(2), heads)) == NOTHING
    assert decide_pool(ThinOutQuestion(NOON, static(2), heads)) == NOTHING


def test_a_surplus_is_deleted_in_the_order_of_disruption_cost() -> None:
    """First claims without a machine, then empty nodes, then by cost, protected pods last."""
    nodes = [
        node("protected"),
        node("busy"),
        node("old", age=3 * HOUR, expire_after=4 * HOUR),
        node("daemons"),
        node("empty"),
        node("machineless", provider_id=""),
    ]
    pods = [
        pod("x", on="protected", do_not_disrupt="true"),
        pod("y", on="busy"),
        pod("z", on="busy"),
        pod("y", on="old"),
        pod("z", on="old"),
        pod("d", on="daemons", daemon=True),
    ]

    adjustment = given_up(0, nodes, *pods)

    assert adjustment == Adjustment(
        deletes=(
            "machineless-claim",
            "daemons-claim",
            "empty-claim",
            "old-claim",
            "busy-claim",
            "protected-claim",
        ),
        remarks=(adjustment_remark("deprovision", "deprovisioning", 6, 0, 6),),
        requeue_after=MINUTE,
    )


def test_a_claim_without_a_machine_goes_before_nodes() -> None:
    assert given_up(1, [node("a"), only_claim("b", provider_id="")]).deletes == ("b-claim",)


def test_a_daemon_that_must_not_be_disrupted_makes_its_node_the_last() -> None:
    pods = [pod("d", on="a", daemon=True, do_not_disrupt="true"), pod("x", on="b")]

    adjustment = given_up(1, [node("a"), node("b")], *pods)

    assert adjustment.deletes == ("b-claim",)
    assert refused(adjustment.refusals) == [("a", "POOL_SIZE", "")]


@pytest.mark.parametrize(("reads", "expected"), [(True, ("b-claim",)), (False, ("a-claim",))])
def test_deletion_costs_that_karpy_writes_itself_do_not_order_nodes(
    expected: tuple[str, ...], *, reads: bool
) -> None:
    nodes = (node("a"), node("b"))
    pods = (pod("x", on="a", deletion_cost="9"), pod("y", on="b", deletion_cost="-9"))
    heads = Headcount(active=2)

    adjustment = give_up_surplus(ThinOutQuestion(NOON, static(1), heads, nodes, pods, reads))

    assert adjustment.deletes == expected


@pytest.mark.parametrize(
    ("heads", "nodes"),
    [
        (Headcount(active=2), [node("a"), node("b")]),
        (Headcount(active=2, disrupting=1), [node("a"), node("b"), node("c", replaced=True)]),
    ],
    ids=["enough", "being replaced"],
)
def test_a_pool_without_surplus_keeps_its_nodes(heads: Headcount, nodes: Sequence[Node]) -> None:
    assert given_up(2, nodes, heads=heads) == Adjustment(requeue_after=MINUTE)


def test_only_nodes_of_the_pool_that_are_not_deleting_are_surplus() -> None:
    nodes = [
        node("a", pool="batch"),
        node("b", replaced=True),
        node("c", deleting=True),
        only_node("d"),
        node("e"),
    ]

    adjustment = given_up(0, nodes, heads=Headcount(active=1))

    assert adjustment.deletes == ("e-claim",)
    assert refused(adjustment.refusals) == [("b", "DELETING", ""), ("c", "DELETING", "")]


@pytest.mark.parametrize(
    "unfit", [pool(conditions=READY), pool(replicas=0, deleting=True)], ids=["dynamic", "deleting"]
)
def test_a_pool_that_is_not_static_has_no_surplus(unfit: PoolRecord) -> None:
    question = ThinOutQuestion(NOON, unfit, Headcount(active=5), (node("a"),))

    assert adjust(question) == Adjustment()


@given(counts, counts)
def test_a_pool_never_launches_and_deletes_nodes_at_once(replicas: int, active: int) -> None:
    heads, nodes = Headcount(active=active), [node(f"n-{each}") for each in range(active)]

    made = fill_up(static(replicas), heads, is_synced=True).creates
    lost = len(given_up(replicas, nodes).deletes)

    assert active + made - lost == replicas
    assert made == 0 or lost == 0


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
def test_a_verdict_is_news_if_it_changes_the_pool_or_differs(
    verdict: PoolVerdict, before: PoolVerdict | None, *, expected: bool
) -> None:
    assert is_news(verdict, before) is expected
