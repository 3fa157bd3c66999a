from random import Random

from hypothesis import given
from hypothesis import strategies as st

from karpy.core.disruption.cost import DISRUPTION_COST
from karpy.core.disruption.emptiness import propose_empty
from karpy.core.lifecycle.changes import Count
from karpy.model.disruption import (
    Budget,
    ConsolidationPolicy,
    DisruptionPolicy,
    DisruptionReason,
)
from karpy.model.surroundings import NodeState
from tests.core.disruption.scenes import (
    around,
    budgets,
    pool,
    refused,
    state,
    tenant,
    told,
)

NEVER = DisruptionPolicy(consolidate_after=None, budgets=())
flags = st.booleans()
some_nodes = st.lists(
    st.builds(
        lambda pool_name, is_ready, is_quiet, is_full: (pool_name, is_ready, is_quiet, is_full),
        st.sampled_from(["web", "batch"]),
        flags,
        flags,
        flags,
    ),
    max_size=12,
)


def build(drawn: list[tuple[str, bool, bool, bool]]) -> tuple[NodeState, ...]:
    return tuple(
        state(
            f"n-{index}",
            pool=pool_name,
            ready=is_ready,
            said=["Consolidatable"] if is_quiet else [],
            tenants=[tenant("x")] if is_full else [],
        )
        for index, (pool_name, is_ready, is_quiet, is_full) in enumerate(drawn)
    )


def test_an_empty_node_goes() -> None:
    proposal = propose_empty(around(state("a")))

    assert [each.name for each in proposal.candidates] == ["a"]
    assert proposal.reason is DisruptionReason.EMPTY
    assert proposal.consolidation_type == "empty"
    assert proposal.refusals == ()


def test_daemons_and_pods_that_are_over_leave_a_node_empty() -> None:
    pods = [tenant("x", is_daemon=True), tenant("y", is_static=True), tenant("z", phase="Failed")]

    proposal = propose_empty(around(state("a", tenants=pods)))

    assert [each.name for each in proposal.candidates] == ["a"]


def test_a_node_is_empty_if_nobody_minds_its_pods() -> None:
    pods = [tenant("x", annotations={DISRUPTION_COST: "-134217728"})]

    proposal = propose_empty(around(state("a", tenants=pods)))

    assert [(each.name, each.pods) for each in proposal.candidates] == [("a", 1)]


def test_a_node_with_pods_is_kept() -> None:
    proposal = propose_empty(around(state("a", tenants=[tenant("x")])))

    assert proposal.candidates == ()
    assert refused(proposal.refusals) == [("a", "NOT_EMPTY", "")]
    assert proposal.notices == ()


def test_a_node_that_was_busy_a_moment_ago_is_kept() -> None:
    proposal = propose_empty(around(state("a", said=[])))

    assert refused(proposal.refusals) == [("a", "NOT_QUIET", "")]


def test_a_node_of_a_static_pool_is_kept() -> None:
    proposal = propose_empty(around(state("a"), pools={"web": pool(replicas=3)}))

    assert refused(proposal.refusals) == [("a", "POOL_STATIC", "")]
    assert proposal.notices == ()


def test_a_node_of_a_pool_that_never_consolidates_is_kept_and_told() -> None:
    proposal = propose_empty(around(state("a"), policies={"web": NEVER}))

    text = 'NodePool "web" has consolidation disabled'
    assert refused(proposal.refusals) == [("a", "CONSOLIDATION_DISABLED", "")]
    assert told(proposal.notices) == [
        ("Node", "a", "Unconsolidatable", text),
        ("NodeClaim", "a-claim", "Unconsolidatable", text),
    ]
    assert {each.window_seconds for each in proposal.notices} == {900}


def test_a_node_that_keeps_room_for_a_buffer_is_kept_and_told() -> None:
    proposal = propose_empty(around(state("a", buffer_pods=2)))

    assert refused(proposal.refusals) == [("a", "BUFFER_PODS", "")]
    assert told(proposal.notices)[0] == (
        "Node",
        "a",
        "Unconsolidatable",
        'Node "a" has buffer pods',
    )


def test_every_policy_lets_empty_nodes_go() -> None:
    policies = [DisruptionPolicy(consolidation=each, budgets=()) for each in ConsolidationPolicy]

    proposals = [propose_empty(around(state("a"), policies={"web": each})) for each in policies]

    assert [len(each.candidates) for each in proposals] == [1, 1, 1]


def test_the_dearest_nodes_go_first_until_the_budget_is_spent() -> None:
    nodes = [state("a"), state("b", type="large"), state("c"), state("d", pool="batch")]
    policies = {"web": budgets("2"), "batch": budgets("100%")}

    proposal = propose_empty(around(*nodes, policies=policies))

    assert [each.name for each in proposal.candidates] == ["b", "a", "d"]
    assert refused(proposal.refusals) == [("c", "BUDGET_SPENT", "web")]


def test_a_budget_for_another_reason_does_not_matter() -> None:
    policy = DisruptionPolicy(budgets=(Budget("0", reasons=("Drifted", "Underutilized")),))

    proposal = propose_empty(around(state("a"), policies={"web": policy}))

    assert [each.name for each in proposal.candidates] == ["a"]


def test_a_pool_whose_budget_is_nothing_says_so() -> None:
    proposal = propose_empty(around(state("a"), policies={"web": budgets("0")}))

    assert refused(proposal.refusals) == [("a", "BUDGET_SPENT", "web")]
    assert [each[0] for each in told(proposal.notices)] == ["NodePool"]


def test_without_an_empty_node_budgets_are_not_looked_at() -> None:
    full = state("a", tenants=[tenant("x")])

    proposal = propose_empty(around(full, policies={"web": budgets("0")}))

    gauge = Count("voluntary_disruption_eligible_nodes", {"reason": "empty"}, 0.0)
    assert proposal.notices == ()
    assert proposal.counts == (gauge,)


@given(some_nodes, st.integers(0, 5))
def test_no_pool_loses_more_than_its_budget(
    drawn: list[tuple[str, bool, bool, bool]], budget: int
) -> None:
    nodes = build(drawn)
    policies = {"web": budgets(str(budget)), "batch": budgets(f"{10 * budget}%")}

    proposal = propose_empty(around(*nodes, policies=policies))

    going = [each.pool.name for each in proposal.candidates]
    troubled = [pool_name for pool_name, is_ready, _, _ in drawn if not is_ready]
    batch = sum(pool_name == "batch" for pool_name, _, _, _ in drawn)
    assert going.count("web") <= max(0, budget - troubled.count("web"))
    assert going.count("batch") <= max(0, -(-batch * budget // 10) - troubled.count("batch"))


@given(some_nodes)
def test_every_node_is_chosen_or_refused(drawn: list[tuple[str, bool, bool, bool]]) -> None:
    proposal = propose_empty(around(*build(drawn), policies={"web": budgets("1")}))

    names = [each.name for each in proposal.candidates] + [each.node for each in proposal.refusals]
    assert sorted(names) == sorted(f"n-{index}" for index in range(len(drawn)))


@given(some_nodes, st.randoms())
def test_the_order_of_nodes_does_not_matter(
    drawn: list[tuple[str, bool, bool, bool]], random: Random
) -> None:
    nodes = list(build(drawn))
    before = propose_empty(around(*nodes, policies={"web": budgets("1")}))
    random.shuffle(nodes)

    assert propose_empty(around(*nodes, policies={"web": budgets("1")})) == before
