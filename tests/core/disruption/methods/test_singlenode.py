"""Single-node consolidation: the first node that can go, NodePools in turn; all refusals."""

import pytest
from msgspec.structs import replace

from karpy.core.disruption.candidates import refusal_notices
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal
from karpy.core.disruption.methods.singlenode import SingleNodeConsolidation
from karpy.core.lifecycle.changes import Count
from karpy.model.commands import Command, CommandNode
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import NodeReason, NodeRefusal
from tests.builders import NOON
from tests.core.disruption.scenes import (
    BALANCED,
    DOLLAR,
    MINUTE,
    budgets,
    cluster,
    event_rows,
    node,
    pod,
    pool,
    refused,
)

METHOD = "single-node-consolidation"
FULL = [pod(f"full-{name}", on=name, cpu="3500m") for name in "abcdef"]
"""Pods that each need a node of their own."""


def propose(given: Snapshot) -> Proposal:
    return SingleNodeConsolidation().propose(Evaluation(given))


def names(proposal: Proposal) -> list[str]:
    return [each.node for command in proposal.commands for each in command.nodes]


def test_the_first_node_whose_pods_fit_elsewhere_goes() -> None:
    pods = [*FULL[:2], pod("x", on="c", cpu="300m"), pod("d", on="c", cpu="1", daemon=True)]

    proposal = propose(cluster(node("a"), node("b"), node("c"), pods=pods))

    assert proposal.commands == (
        Command(
            METHOD,
            DisruptionReason.UNDERUTILIZED,
            (CommandNode("c", "c-claim", "web", DOLLAR, 1),),
            nominated=("a",),
            consolidation_type="single",
            proposed=NOON,
        ),
    )
    assert [each[:2] for each in refused(proposal.refusals)] == [
        ("a", "NOT_CHEAPER"),
        ("b", "NOT_CHEAPER"),
    ]


def test_nodes_behind_the_first_that_goes_are_not_considered() -> None:
    proposal = propose(cluster(node("a"), node("b"), pods=[pod("x", on="a"), pod("y", on="b")]))

    assert names(proposal) == ["a"]
    assert refused(proposal.refusals) == [("b", "NOT_CONSIDERED", "")]


def test_every_node_is_considered_and_refused_with_its_numbers() -> None:
    given = cluster(node("a"), node("b", type="medium"), pods=[FULL[0], pod("y", on="b", cpu="6")])

    proposal = propose(given)

    detail = "no node has room and no NodePool can make one that would: no other node, and no new"
    assert proposal.commands == ()
    assert proposal.refusals == (
        NodeRefusal(
            NodeReason.NOT_CHEAPER,
            "b",
            f"shop/y: {detail} one for less than $2.0000/h",
            METHOD,
            ("shop/y",),
            price=2 * DOLLAR,
        ),
        NodeRefusal(
            NodeReason.NOT_CHEAPER,
            "a",
            f"shop/full-a: {detail} one for less than $1.0000/h",
            METHOD,
            ("shop/full-a",),
            price=DOLLAR,
        ),
    )


def test_a_node_that_nothing_cheaper_replaces_says_so_in_an_event() -> None:
    given = cluster(node("a"), pods=FULL[:1])
    proposal = propose(given)

    events = event_rows(refusal_notices(proposal.refusals, Evaluation(given)))

    assert events[0] == ("Node", "a", "Unconsolidatable", "Can't replace with a cheaper node")


def test_nodepools_take_turns_and_the_best_of_each_comes_first() -> None:
    nodes = [
        node("a", type="large"),
        node("b", type="medium"),
        node("c", pool="batch"),
        node("d", pool="batch"),
    ]
    pods = [pod(f"x-{each.name}", on=each.name, selector={"own": each.name}) for each in nodes]
    labelled = [replace(each, labels={**each.labels, "own": each.name}) for each in nodes]

    proposal = propose(cluster(*labelled, pods=pods))

    assert [each.node for each in proposal.refusals] == ["c", "a", "d", "b"]


def test_a_nodepool_without_a_budget_is_passed_over() -> None:
    given = cluster(
        node("a", type="large"),
        node("c", pool="batch"),
        pods=[pod("x", on="a"), pod("y", on="c")],
        pools=[pool(), pool("batch", policy=budgets("0"))],
    )

    proposal = propose(given)

    assert names(proposal) == ["a"]
    assert [each[:2] for each in refused(proposal.refusals)] == [("c", "BUDGET_SPENT")]


def test_the_budget_of_a_nodepool_refuses_each_of_its_nodes() -> None:
    given = cluster(
        node("a"),
        node("b"),
        pods=[pod("x", on="a"), pod("y", on="b")],
        pools=[pool(policy=budgets("0"))],
    )

    proposal = propose(given)

    assert [each.why for each in proposal.refusals] == [NodeReason.BUDGET_SPENT] * 2
    assert [each[0] for each in event_rows(proposal.notices)] == ["NodePool"]
    assert not proposal.is_settled


# --- Balanced ------------------------------------------------------------------------------------


def crowded(others: int) -> Snapshot:
    """Build a cheap node of eight pods, and a dear one with others."""
    pods = [pod(f"x-{number}", on="a") for number in range(8)]
    pods += [pod(f"y-{number}", on="b", do_not_disrupt="true") for number in range(others)]
    return cluster(node("a"), node("b", type="large"), pods=pods, pools=[pool(policy=BALANCED)])


def test_a_move_that_saves_little_for_many_pods_is_refused_with_its_score() -> None:
    proposal = propose(crowded(4))

    (_, refusal) = proposal.refusals
    assert refusal.why is NodeReason.SCORE_TOO_LOW
    assert (refusal.price, refusal.replacement, refusal.saving) == (DOLLAR, 0, DOLLAR)
    assert refusal.score is not None
    assert round(float(refusal.score), 3) == round((1 / 5) / (9 / 14), 3)


def test_a_move_pays_where_most_pods_are_elsewhere() -> None:
    assert names(propose(crowded(40))) == ["a"]


def test_a_rejected_move_is_counted_with_its_score_and_has_no_event() -> None:
    proposal = propose(crowded(4))

    labels = {"decision": "rejected", "nodepool": "web", "policy": "Balanced"}
    assert Count("consolidation_moves_total", labels) in proposal.counts
    assert [each.metric for each in proposal.counts].count("consolidation_score") == 1
    assert [each for each in proposal.notices if each.subject.name == "a"] == []


def test_an_approved_move_is_counted_and_has_events() -> None:
    proposal = propose(crowded(40))

    labels = {"decision": "approved", "nodepool": "web", "policy": "Balanced"}
    reasons = [each.reason for each in proposal.notices if each.subject.name == "a"]
    assert Count("consolidation_moves_total", labels) in proposal.counts
    assert reasons == ["ConsolidationCandidate", "ConsolidationApproved"]


# --- the memo ------------------------------------------------------------------------------------


def test_nothing_to_find_is_settled() -> None:
    assert propose(cluster(node("a"), pods=FULL[:1])).is_settled
    assert propose(cluster()).is_settled


@pytest.mark.parametrize(
    "given",
    [
        cluster(node("a"), node("b"), pods=[pod("x", on="a")]),
        cluster(node("a", nominated_for=MINUTE), pods=FULL[:1]),
        cluster(
            node("a"),
            pods=[
                pod("x", on="a", cpu="3500m", replica_set="web-aaa"),
                pod("y", on="a", cpu="10m", replica_set="web-bbb"),
            ],
        ),
    ],
    ids=["found", "nominated", "rollout"],
)
def test_a_command_or_a_reason_that_ends_by_itself_settles_nothing(given: Snapshot) -> None:
    assert not propose(given).is_settled
