"""Multi-node consolidation: which nodes go together, and the refusals of all others."""

from collections.abc import Sequence
from typing import Unpack

import pytest
from msgspec.structs import replace

from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal
from karpy.core.disruption.methods.multinode import MultiNodeConsolidation
from karpy.core.lifecycle.changes import Count
from karpy.model.commands import Command
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from tests.builders import NOON, instance_type, offering
from tests.core.disruption.scenes import (
    BALANCED,
    DOLLAR,
    MINUTE,
    TYPES,
    WEB,
    NodeFields,
    budgets,
    cluster,
    node,
    pod,
    pod_budget,
    pool,
    refused,
)


def propose(given: Snapshot) -> Proposal:
    return MultiNodeConsolidation().propose(Evaluation(given))


def names(proposal: Proposal) -> list[str]:
    return [each.node for command in proposal.commands for each in command.nodes]


def row(count: int, **fields: Unpack[NodeFields]) -> list[Node]:
    return [node(f"n-{number:02}", **fields) for number in range(count)]


def one_each(nodes: Sequence[Node], cpu: str) -> list[Pod]:
    return [pod(f"x-{each.name}", on=each.name, cpu=cpu) for each in nodes]


def test_as_many_nodes_as_possible_are_deleted_together() -> None:
    """Eight pods of one CPU fit two nodes of four, less what is on these."""
    nodes = row(8)

    (command,) = propose(cluster(*nodes, pods=one_each(nodes, "1"))).commands

    assert [each.node for each in command.nodes] == [f"n-{number:02}" for number in range(6)]
    assert command == Command(
        "multi-node-consolidation",
        MultiNodeConsolidation.reason,
        command.nodes,
        nominated=("n-06", "n-07"),
        consolidation_type="multi",
        proposed=NOON,
    )
    assert command.savings == 6 * DOLLAR


def test_those_go_first_that_save_most_for_the_cost_of_moving_their_pods() -> None:
    nodes = [node("a"), node("b", type="large"), node("c", type="medium"), node("d", type="large")]
    pods = one_each(nodes, "1")
    pods += [pod(f"more-{number}", on="d", cpu="10m") for number in range(3)]

    assert names(propose(cluster(*nodes, pods=pods)))[:2] == ["b", "c"]


def test_several_nodes_are_replaced_by_one() -> None:
    nodes = row(2)
    wide = instance_type("wide", cpu="8", memory="32Gi", dollars=1.5)
    small = instance_type("small", cpu="4", dollars=1.0)

    (command,) = propose(cluster(*nodes, pods=one_each(nodes, "3"), types=[small, wide])).commands

    assert [each.launch.options[0].instance_type for each in command.replacements] == ["wide"]
    assert command.savings == DOLLAR // 2


def test_a_single_node_is_left_to_the_other_method() -> None:
    proposal = propose(cluster(node("a"), pods=[pod("x", on="a")]))

    assert proposal.commands == ()
    assert proposal.refusals == ()
    assert proposal.is_settled


def test_one_node_that_cannot_go_does_not_keep_those_behind_it() -> None:
    """The pod of the third node needs a disk that no other node has."""
    nodes = [
        node(f"n-{number}", labels={"disk": "ssd"} if number == 2 else {}) for number in range(8)
    ]
    pods = [
        pod(f"x-{number}", on=f"n-{number}", selector={"disk": "ssd"} if number == 2 else {})
        for number in range(8)
    ]

    proposal = propose(cluster(*nodes, pods=pods))

    assert names(proposal) == ["n-0", "n-1", "n-3", "n-4", "n-5", "n-6"]
    assert refused(proposal.refusals) == [
        ("n-2", "NOT_CONSIDERED", ""),
        ("n-7", "NOT_CONSIDERED", ""),
    ]


@pytest.mark.parametrize(("stuck", "expected"), [(1, 4), (4, 4), (5, 0)])
def test_some_of_the_first_nodes_that_cannot_go_do_not_keep_all_others(
    stuck: int, expected: int
) -> None:
    dear = [node(f"dear-{n}", type="large", labels={"disk": str(n)}) for n in range(stuck)]
    nodes = row(5)
    pods = [pod(each.name, on=each.name, selector={"disk": each.labels["disk"]}) for each in dear]
    full = [pod(f"full-{each.name}", on=each.name, cpu="15") for each in dear]

    proposal = propose(cluster(*dear, *nodes, pods=[*pods, *full, *one_each(nodes, "500m")]))

    assert names(proposal) == [f"n-{number:02}" for number in range(expected)]


def test_a_node_more_is_not_added_if_that_saves_less() -> None:
    """The third node cannot go; with the fourth, the new node would cost more than that saves."""
    odd = instance_type("odd", cpu="4", offerings=[offering(dollars=0.5, available=False)])
    nodes = [node("a", type="medium"), node("b", type="medium"), node("c", labels={"disk": "ssd"})]
    nodes += [node("d", type=odd), node("e"), node("f")]
    pods = [pod(f"x-{each.name}", on=each.name, cpu="1900m") for each in (*nodes[:2], *nodes[4:])]
    pods += [pod("y", on="c", cpu="3500m", selector={"disk": "ssd"}), pod("z", on="d", cpu="3")]
    held = [pod(f"held-{name}", on=name, cpu="10m", do_not_disrupt="true") for name in "ef"]
    given = cluster(*nodes, pods=[*pods, *held], types=[*TYPES, odd])

    (command,) = propose(given).commands

    assert ([each.node for each in command.nodes], command.savings) == (["a", "b"], 4 * DOLLAR)


def test_nodes_not_taken_are_refused_as_not_considered() -> None:
    nodes = row(8)

    proposal = propose(cluster(*nodes, pods=one_each(nodes, "1")))

    assert refused(proposal.refusals) == [
        ("n-06", "NOT_CONSIDERED", ""),
        ("n-07", "NOT_CONSIDERED", ""),
    ]


def test_only_as_many_go_as_the_budget_of_their_nodepool_allows() -> None:
    nodes = [*row(8), node("other", pool="batch")]
    given = cluster(
        *nodes,
        pods=one_each(nodes, "1"),
        pools=[pool(policy=budgets("2")), pool("batch")],
    )

    proposal = propose(given)

    assert names(proposal) == ["n-00", "n-01", "other"]
    assert [each[1] for each in refused(proposal.refusals)] == ["BUDGET_SPENT"] * 6


def test_a_node_that_goes_already_is_taken_off_the_budget() -> None:
    nodes = row(8)
    given = cluster(
        *nodes,
        node("gone", deleting=True),
        pods=one_each(nodes, "1"),
        pools=[pool(policy=budgets("3"))],
    )

    assert names(propose(given)) == ["n-00", "n-01"]


def test_a_pod_disruption_budget_keeps_its_node_from_the_search() -> None:
    nodes = row(4)
    pods = [replace(each, labels=WEB) for each in one_each(nodes, "1")[:1]]
    pods += one_each(nodes, "1")[1:]

    proposal = propose(cluster(*nodes, pods=pods, budgets=(pod_budget("pdb"),)))

    assert "n-00" not in names(proposal)
    assert ("n-00", "POD_BUDGET", "shop/pdb") in refused(proposal.refusals)


# --- Balanced ------------------------------------------------------------------------------------


def test_a_balanced_nodepool_approves_fewer_nodes_that_pay() -> None:
    """Two of sixteen dollars for moving 4 of 92 pods pay off, three dollars for 45 pods do not."""
    nodes, kept = row(4), [node(f"z-{number}", type="large") for number in range(3)]
    pods = one_each(nodes, "10m")
    pods += [
        pod(f"{each.name}-{n}", on=each.name, cpu="10m") for each in nodes[2:] for n in range(39)
    ]
    pods += [pod(f"z-{n}", on=f"z-{n}", do_not_disrupt="true") for n in range(3)]
    given = cluster(*nodes, *kept, pods=pods, pools=[pool(policy=BALANCED)])

    assert names(propose(given)) == ["n-00", "n-01"]
    assert names(propose(replace(given, pools=(pool(),)))) == ["n-00", "n-01", "n-02", "n-03"]


def test_the_last_rejection_is_counted_if_nothing_was_found() -> None:
    """The move saves one of nine dollars, but moves forty of fifty pods."""
    pods = [pod(f"x-{number}", on=f"n-0{number % 2}") for number in range(40)]
    pods += [pod(f"z-{number}", on="z", do_not_disrupt="true") for number in range(4)]
    given = cluster(*row(2), node("z", type="large"), pods=pods, pools=[pool(policy=BALANCED)])

    proposal = propose(given)

    labels = {"decision": "rejected", "nodepool": "web", "policy": "Balanced"}
    assert names(proposal) == []
    assert Count("consolidation_moves_total", labels) in proposal.counts


def test_a_move_is_counted_once() -> None:
    nodes = row(8)

    proposal = propose(cluster(*nodes, pods=one_each(nodes, "1")))

    labels = {
        "decision": "approved",
        "nodepool": "web",
        "policy": "WhenEmptyOrUnderutilized",
    }
    assert [each for each in proposal.counts if each.metric == "consolidation_moves_total"] == [
        Count("consolidation_moves_total", labels)
    ]


# --- the memo ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "is_settled"), [(budgets("100%"), True), (budgets("0"), False)])
def test_a_search_without_a_result_is_settled_unless_a_budget_ended_it(
    policy: object, *, is_settled: bool
) -> None:
    nodes = row(2)
    given = cluster(*nodes, pods=one_each(nodes, "3"), pools=[replace(pool(), policy=policy)])

    proposal = propose(given)

    assert (proposal.commands, proposal.is_settled) == ((), is_settled)


def test_a_scale_out_settles_nothing() -> None:
    booting = node("new", age=MINUTE, initialized=False, true_conditions=[])
    coming = pod("new", on="new", expected=True, unschedulable=False)

    proposal = propose(cluster(node("a"), booting, pods=[pod("x", on="a"), coming]))

    assert not proposal.is_settled


def test_eligible_nodes_are_a_gauge() -> None:
    nodes = row(3)

    proposal = propose(cluster(*nodes, node("empty"), pods=one_each(nodes, "3")))

    gauge = Count("voluntary_disruption_eligible_nodes", {"reason": "underutilized"}, 3.0)
    assert gauge in proposal.counts
