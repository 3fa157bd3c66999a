"""Emptiness: which empty nodes are deleted, all refusals, and the validation 15 s later."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.disruption.candidates import refusal_notices
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation
from karpy.core.disruption.methods.emptiness import Emptiness
from karpy.core.lifecycle.changes import Count
from karpy.model.commands import Command, CommandNode
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.pools import (
    Budget,
    ConsolidationPolicy,
    DisruptionPolicy,
    DisruptionReason,
    NodePool,
)
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import NodeReason, NodeRefusal
from tests.builders import NOON
from tests.core.disruption.scenes import (
    ALL,
    DOLLAR,
    MINUTE,
    NEVER,
    budgets,
    cluster,
    event_rows,
    node,
    pod,
    pool,
    refused,
)

flags = st.booleans()
drawn_nodes = st.lists(
    st.tuples(st.sampled_from(["web", "batch"]), flags, flags, flags), max_size=12
)
Drawn = list[tuple[str, bool, bool, bool]]


def propose(*nodes: Node, policy: DisruptionPolicy = ALL, pods: Sequence[Pod] = ()) -> Proposal:
    """Propose on nodes of `web`, with a policy, and of `batch`."""
    pools = [pool(policy=policy), pool("batch")]
    return Emptiness().propose(Evaluation(cluster(*nodes, pools=pools, pods=pods)))


def chosen(proposal: Proposal) -> list[str]:
    return [each.node for command in proposal.commands for each in command.nodes]


def refusal_events(proposal: Proposal, given_cluster: Snapshot) -> list[tuple[str, str, str, str]]:
    return event_rows(refusal_notices(proposal.refusals, Evaluation(given_cluster)))


# --- which nodes ---------------------------------------------------------------------------------


def test_empty_nodes_go_together_the_dearest_first() -> None:
    proposal = propose(node("a"), node("b", type="large"), node("c"))

    assert proposal.commands == (
        Command(
            "emptiness",
            DisruptionReason.EMPTY,
            (
                CommandNode("b", "b-claim", "web", 4 * DOLLAR),
                CommandNode("a", "a-claim", "web", DOLLAR),
                CommandNode("c", "c-claim", "web", DOLLAR),
            ),
            consolidation_type="empty",
            proposed=NOON,
        ),
    )
    assert proposal.refusals == ()


def test_daemons_and_pods_that_are_over_leave_a_node_empty() -> None:
    pods = [
        pod("x", on="a", daemon=True),
        pod("y", on="a", static=True),
        pod("z", on="a", phase="Failed"),
        pod("w", on="a", deleted=NOON),
    ]

    assert chosen(propose(node("a"), pods=pods)) == ["a"]


def test_a_pod_that_costs_nothing_to_move_leaves_a_node_empty() -> None:
    proposal = propose(node("a"), pods=[pod("x", on="a", disruption_cost="-134217728")])

    assert [each.pods for command in proposal.commands for each in command.nodes] == [1]


def test_a_node_with_pods_is_kept_and_names_a_few() -> None:
    pods = [pod(f"x-{number}", on="a") for number in range(7)]

    proposal = propose(node("a"), pods=pods)

    assert proposal.commands == ()
    assert proposal.refusals == (
        NodeRefusal(
            NodeReason.NOT_EMPTY,
            "a",
            "7 pods",
            "emptiness",
            tuple(f"shop/x-{number}" for number in range(5)),
            price=DOLLAR,
        ),
    )


def test_a_pod_of_a_stateful_set_that_is_being_deleted_keeps_its_node() -> None:
    """The StatefulSet creates the next pod after this one is deleted, and that pod needs room."""
    proposal = propose(node("a"), pods=[pod("x", on="a", stateful=True, deleted=NOON)])

    assert refused(proposal.refusals) == [("a", "NOT_EMPTY", "1 pods")]


def test_a_node_with_a_pod_event_a_moment_ago_is_kept_until_consolidate_after_is_over() -> None:
    quiet_for = replace(ALL, consolidate_after=5 * MINUTE)

    proposal = propose(
        node("a", true_conditions=[], last_pod_event=NOON - MINUTE), policy=quiet_for
    )

    assert refused(proposal.refusals) == [("a", "NOT_QUIET", "")]
    assert [each.until for each in proposal.refusals] == [NOON + 4 * MINUTE]


def test_a_node_of_a_static_pool_is_kept() -> None:
    static: list[NodePool] = [pool(replicas=3)]

    proposal = Emptiness().propose(Evaluation(cluster(node("a"), pools=static)))

    assert refused(proposal.refusals) == [("a", "POOL_STATIC", "")]


def test_a_node_of_a_pool_that_never_consolidates_is_kept_and_says_so() -> None:
    given_cluster = cluster(node("a"), pools=[pool(policy=NEVER)])

    proposal = Emptiness().propose(Evaluation(given_cluster))

    text = 'NodePool "web" has consolidation disabled'
    assert refused(proposal.refusals) == [("a", "CONSOLIDATION_DISABLED", "")]
    assert refusal_events(proposal, given_cluster) == [
        ("Node", "a", "Unconsolidatable", text),
        ("NodeClaim", "a-claim", "Unconsolidatable", text),
    ]


def test_a_node_that_keeps_room_for_a_buffer_is_kept_and_says_so() -> None:
    given_cluster = cluster(node("a", buffer_pods=2))

    proposal = Emptiness().propose(Evaluation(given_cluster))

    text = 'Node "a" has buffer pods'
    assert refused(proposal.refusals) == [("a", "BUFFER_PODS", "2 pods")]
    assert refusal_events(proposal, given_cluster)[0] == ("Node", "a", "Unconsolidatable", text)


@pytest.mark.parametrize("consolidation", ConsolidationPolicy)
def test_every_policy_lets_empty_nodes_go(consolidation: ConsolidationPolicy) -> None:
    policy = replace(ALL, consolidation=consolidation)

    assert chosen(propose(node("a"), policy=policy)) == ["a"]


def test_empty_nodes_go_in_the_middle_of_a_scale_out() -> None:
    booting = node("new", age=MINUTE, initialized=False, true_conditions=[])
    pods = [pod("x", on="new", unschedulable=False, expected=True)]

    assert chosen(propose(node("a"), booting, pods=pods)) == ["a"]


# --- budgets -------------------------------------------------------------------------------------


def test_the_budget_of_each_nodepool_is_spent_on_the_dearest_nodes() -> None:
    nodes = [node("a"), node("b", type="large"), node("c"), node("d", pool="batch")]

    proposal = propose(*nodes, policy=budgets("2"))

    assert chosen(proposal) == ["b", "a", "d"]
    assert refused(proposal.refusals) == [("c", "BUDGET_SPENT", "2 of 3 nodes allowed, 0 taken")]


def test_nodes_that_go_already_are_taken_off_the_budget() -> None:
    proposal = propose(node("a"), node("b"), node("c", deleting=True), policy=budgets("2"))

    assert chosen(proposal) == ["a"]
    assert refused(proposal.refusals)[1] == ("b", "BUDGET_SPENT", "2 of 3 nodes allowed, 1 taken")


def test_a_budget_for_other_reasons_does_not_matter() -> None:
    policy = replace(ALL, budgets=(Budget("0", reasons=("Drifted", "Underutilized")),))

    assert chosen(propose(node("a"), policy=policy)) == ["a"]


def test_a_nodepool_whose_budget_is_nothing_says_so() -> None:
    proposal = propose(node("a"), policy=budgets("0"))

    assert chosen(proposal) == []
    assert [each[0] for each in event_rows(proposal.notices)] == ["NodePool"]


def test_without_an_empty_node_budgets_are_not_looked_at() -> None:
    proposal = propose(node("a"), pods=[pod("x", on="a")], policy=budgets("0"))

    gauge = Count("voluntary_disruption_eligible_nodes", {"reason": "empty"}, 0.0)
    assert proposal.notices == ()
    assert proposal.counts == (gauge,)


# --- laws ----------------------------------------------------------------------------------------


def build(drawn: Drawn, policy: DisruptionPolicy) -> Snapshot:
    nodes = [
        node(
            f"n-{index}",
            pool=name,
            ready=ready,
            true_conditions=["Consolidatable"] if quiet else [],
        )
        for index, (name, ready, quiet, _) in enumerate(drawn)
    ]
    pods = [pod(f"x-{index}", on=f"n-{index}") for index, each in enumerate(drawn) if each[3]]
    return cluster(*nodes, pods=pods, pools=[pool(policy=policy), pool("batch", policy=policy)])


@given(drawn=drawn_nodes, number=st.integers(0, 5), share=st.booleans())
def test_no_nodepool_loses_more_than_its_budget(drawn: Drawn, number: int, *, share: bool) -> None:
    policy = budgets(f"{10 * number}%" if share else str(number))

    def left(name: str) -> int:
        total = sum(each[0] == name for each in drawn)
        unready = sum(each[0] == name and not each[1] for each in drawn)
        return max(0, (-(-total * number // 10) if share else number) - unready)

    proposal = Emptiness().propose(Evaluation(build(drawn, policy)))

    going = [each.pool for command in proposal.commands for each in command.nodes]
    assert [name for name in ("web", "batch") if going.count(name) > left(name)] == []


@given(drawn_nodes)
def test_every_node_is_chosen_or_refused_once(drawn: Drawn) -> None:
    proposal = Emptiness().propose(Evaluation(build(drawn, budgets("1"))))

    names = [*chosen(proposal), *(each.node for each in proposal.refusals)]
    assert sorted(names) == sorted(f"n-{index}" for index in range(len(drawn)))


@given(drawn_nodes, st.randoms())
def test_the_order_of_nodes_does_not_matter(drawn: Drawn, random: Random) -> None:
    given_cluster = build(drawn, budgets("1"))
    shuffled = list(given_cluster.nodes)
    random.shuffle(shuffled)

    before, after = (
        Emptiness().propose(Evaluation(each))
        for each in (given_cluster, replace(given_cluster, nodes=tuple(shuffled)))
    )

    assert after == before


# --- validation ----------------------------------------------------------------------------------


def validate(
    names: str,
    *nodes: Node,
    pods: Sequence[Pod] = (),
    pools: Sequence[NodePool] | None = None,
) -> Validation:
    """Validate a command on the nodes `a`, `b` and so on, on a later snapshot."""
    proposed = tuple(CommandNode(each, f"{each}-claim", "web") for each in names)
    command = Command("emptiness", DisruptionReason.EMPTY, proposed, id="1", proposed=NOON)
    return Emptiness().validate(command, Evaluation(cluster(*nodes, pods=pods, pools=pools)))


def kept(validation: Validation) -> list[str]:
    return [each.node for each in validation.command.nodes] if validation.command else []


def test_only_nodes_that_are_still_empty_go() -> None:
    nodes = [node("a"), node("b", nominated_for=MINUTE), node("c"), node("d", buffer_pods=1)]

    validation = validate("abcd", *nodes, pods=[pod("x", on="a")])

    assert kept(validation) == ["c"]
    assert sorted(refused(validation.refusals)) == [
        ("a", "NOT_EMPTY", "1 pods"),
        ("b", "NOMINATED", ""),
        ("d", "BUFFER_PODS", "1 pods"),
    ]
    assert validation.command is not None
    assert (validation.command.id, validation.command.proposed) == ("1", NOON)


def test_a_node_that_is_gone_has_a_reason_too() -> None:
    validation = validate("ab", node("b"))

    assert kept(validation) == ["b"]
    assert refused(validation.refusals) == [("a", "GONE", "")]


def test_nodes_that_were_not_proposed_are_no_part_of_the_answer() -> None:
    validation = validate("b", node("a"), node("b"), node("c"), pods=[pod("x", on="c")])

    assert kept(validation) == ["b"]
    assert validation.refusals == ()


def test_those_go_first_that_were_proposed_first() -> None:
    assert kept(validate("cba", node("a"), node("b"), node("c"))) == ["c", "b", "a"]


def test_only_as_many_go_as_the_budget_still_allows() -> None:
    """Budgets count all nodes of a NodePool, not only those of the command."""
    nodes = [node("a"), node("b"), node("c"), node("d", ready=False)]

    validation = validate("abc", *nodes, pools=[pool(policy=budgets("2"))])

    assert kept(validation) == ["a"]
    assert [each[:2] for each in refused(validation.refusals)] == [
        ("b", "BUDGET_SPENT"),
        ("c", "BUDGET_SPENT"),
    ]


@pytest.mark.parametrize(
    ("pools", "pods", "why"),
    [
        ([pool(policy=budgets("0"))], [], "budget"),
        ([pool()], [pod("x", on="a")], "churn"),
    ],
)
def test_a_command_is_given_up_if_no_node_is_left(
    pools: list[NodePool], pods: list[Pod], why: str
) -> None:
    validation = validate("a", node("a"), pools=pools, pods=pods)

    assert (validation.command, validation.why) == (None, why)
