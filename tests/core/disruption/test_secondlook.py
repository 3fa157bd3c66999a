from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from karpy.core.disruption.secondlook import SecondLook, requeue_after
from karpy.model.questions import ProposedNode, SecondLookQuestion
from karpy.model.surroundings import NodeState, Surroundings
from tests.core.disruption.questions import clusters, proposals
from tests.core.disruption.scenes import around, budgets, refused, state, tenant

MINUTE = timedelta(minutes=1)


def seen(proposal: str, *nodes: NodeState, **changes: object) -> SecondLook:
    """Look again at the nodes `a`, `b` and so on of a proposal."""
    proposed = tuple(ProposedNode(f"{each}-claim", each) for each in proposal)
    return requeue_after(SecondLookQuestion(around(*nodes, **changes), proposed))


def names(look: SecondLook) -> list[str]:
    return [each.name for each in look.candidates]


def test_only_those_that_are_still_empty_may_go() -> None:
    nodes = [state("a", tenants=[tenant("x")]), state("b", nominated_for=MINUTE), state("c")]

    look = seen("abc", *nodes)

    assert names(look) == ["c"]
    assert refused(look.refusals) == [("b", "NOMINATED", ""), ("a", "NOT_EMPTY", "")]


def test_a_node_that_is_gone_has_a_reason_too() -> None:
    look = seen("ab", state("b"))

    assert names(look) == ["b"]
    assert refused(look.refusals) == [("a", "GONE", "")]


def test_nodes_that_were_not_proposed_are_no_part_of_the_answer() -> None:
    look = seen("b", state("a"), state("b"), state("c", tenants=[tenant("x")]))

    assert names(look) == ["b"]
    assert look.refusals == ()


def test_those_go_first_that_were_proposed_first() -> None:
    look = seen("cba", state("a"), state("b"), state("c"))

    assert names(look) == ["c", "b", "a"]


def test_only_as_many_may_go_as_the_budget_still_allows() -> None:
    """Budgets count all nodes of a pool, proposed or not."""
    nodes = [state("a"), state("b"), state("c"), state("d", ready=False)]

    look = seen("abc", *nodes, policies={"web": budgets("2")})

    assert names(look) == ["a"]
    assert refused(look.spent) == [("b", "BUDGET_SPENT", "web"), ("c", "BUDGET_SPENT", "web")]


@given(clusters(), proposals())
def test_every_proposed_node_may_go_or_has_one_reason(
    surroundings: Surroundings, proposal: tuple[ProposedNode, ...]
) -> None:
    look = requeue_after(SecondLookQuestion(surroundings, proposal))

    assert len(look.candidates) + len(look.refusals) == len(proposal)


@given(st.permutations("abc"))
def test_the_order_in_which_nodes_are_seen_is_of_no_matter(order: list[str]) -> None:
    shuffled = [state(each) for each in order]

    look = seen("abc", *shuffled, policies={"web": budgets("2")})

    assert names(look) == ["a", "b"]
