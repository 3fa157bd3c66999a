from collections.abc import Sequence
from typing import Unpack

import pytest
from msgspec.structs import replace

from karpy.core.disruption.candidates import refusal_notices
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation
from karpy.core.disruption.methods.staticdrift import StaticDrift
from karpy.core.disruption.terminatefirst import AT_LIMIT, FULL, NOT_READY
from karpy.core.lifecycle.changes import Count
from karpy.core.nodepool.staticcapacity import template_launch
from karpy.model.commands import Command, CommandNode, Replacement
from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, RESERVED
from karpy.model.nodes import Node
from karpy.model.pools import DisruptionReason, NodePool
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.builders import NOON, instance_type, is_in, offering
from tests.core.disruption.scenes import (
    DOLLAR,
    NodeFields,
    budgets,
    cluster,
    event_rows,
    node,
    only_claim,
    pod,
    pool,
    refused,
)

METHOD = StaticDrift()
MAY = Settings(terminate_first_drift=True)
RESERVED_ONLY = [is_in(CAPACITY_TYPE, RESERVED)]


def drifted(name: str, **fields: Unpack[NodeFields]) -> Node:
    fields["true_conditions"] = ["Drifted"]
    return node(name, **fields)


def proposed(snapshot: Snapshot) -> Proposal:
    return METHOD.propose(Evaluation(snapshot))


def decisions(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return node and decision of each command."""
    return [(each.nodes[0].node, each.decision) for each in proposed(snapshot).commands]


def reasons(snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(each.node, each.why.name) for each in proposed(snapshot).refusals]


def reserved(left: int = 0) -> list[InstanceType]:
    only = offering(reservation="r1", left=left)
    return [instance_type("m.xlarge", offerings=[only])]


# --- commands ------------------------------------------------------------------------------------


def test_each_drifted_node_has_a_command_with_one_replacement_from_the_template() -> None:
    static = pool(replicas=3, requirements=[is_in("team", "shop")])
    nodes = [drifted("b"), drifted("a"), node("c")]

    proposal = proposed(cluster(*nodes, pods=[pod("x", on="a", cpu="3")], pools=[static]))

    launch = template_launch(static)
    assert launch.pods == ()
    assert "team" in launch.requirements
    assert proposal.commands == tuple(
        Command(
            "static-drift",
            DisruptionReason.DRIFTED,
            (CommandNode(name, f"{name}-claim", "web", DOLLAR, pods),),
            (Replacement(launch),),
            proposed=NOON,
        )
        for name, pods in (("a", 1), ("b", 0))
    )
    assert refused(proposal.refusals) == [("c", "NOT_DRIFTED", "")]


def test_a_replacement_of_unknown_price_saves_nothing() -> None:
    (command,) = proposed(cluster(drifted("a"), pools=[pool(replicas=1)])).commands

    assert (command.decision, command.savings) == ("replace", 0)


def test_nodes_of_dynamic_pools_are_left_to_drift() -> None:
    proposal = proposed(cluster(drifted("a"), pools=[pool()]))

    assert (proposal.commands, proposal.refusals) == ((), ())
    assert proposal.counts == (
        Count("voluntary_disruption_eligible_nodes", {"reason": "drifted"}, 0.0),
    )


def test_what_forbids_is_said_of_nodes_that_have_not_drifted_too() -> None:
    held = node("a", annotations={"karpenter.sh/do-not-disrupt": "true"})
    snapshot = cluster(held, node("b"), pools=[pool(replicas=2)])

    assert reasons(snapshot) == [("a", "DO_NOT_DISRUPT"), ("b", "NOT_DRIFTED")]


def test_pools_have_their_commands_by_name() -> None:
    nodes = [drifted("z", pool="batch"), drifted("a")]
    pools = [pool(replicas=1), pool("batch", replicas=1)]

    assert decisions(cluster(*nodes, pools=pools)) == [("z", "replace"), ("a", "replace")]


# --- budgets, limits, replicas -------------------------------------------------------------------


def test_no_more_nodes_go_than_the_budget_allows() -> None:
    nodes = [drifted(each) for each in "abc"]

    snapshot = cluster(*nodes, pools=[pool(replicas=3, policy=budgets("2"))])

    assert decisions(snapshot) == [("a", "replace"), ("b", "replace")]
    assert reasons(snapshot) == [("c", "BUDGET_SPENT")]


def test_a_pool_without_budget_keeps_its_nodes() -> None:
    snapshot = cluster(drifted("a"), pools=[pool(replicas=1, policy=budgets("0"))])

    assert decisions(snapshot) == []
    assert refused(proposed(snapshot).refusals) == [
        ("a", "BUDGET_SPENT", "0 of 1 nodes allowed, 0 taken")
    ]


def test_replacements_are_launched_as_far_as_the_limit_goes() -> None:
    nodes = [drifted(each) for each in "abc"]

    snapshot = cluster(*nodes, pools=[pool(replicas=3, limits={"nodes": "5"})])

    assert decisions(snapshot) == [("a", "replace"), ("b", "replace")]
    assert refused(proposed(snapshot).refusals) == [("c", "NO_REPLACEMENT", AT_LIMIT)]


def test_a_node_of_a_pool_at_its_limit_stays_with_an_event() -> None:
    snapshot = cluster(drifted("a"), pools=[pool(replicas=1, limits={"nodes": "1"})])

    refusals = proposed(snapshot).refusals

    text = "static NodePool is at its node limit and cannot stage a replacement"
    assert refused(refusals) == [("a", "NO_REPLACEMENT", text)]
    assert event_rows(refusal_notices(refusals, Evaluation(snapshot))) == [
        ("Node", "a", "DisruptionBlocked", text),
        ("NodeClaim", "a-claim", "DisruptionBlocked", text),
    ]


def test_nodes_that_are_being_deleted_count_against_the_limit() -> None:
    going = node("b", deleting=True)

    snapshot = cluster(drifted("a"), going, pools=[pool(replicas=2, limits={"nodes": "2"})])

    assert decisions(snapshot) == []


def test_a_pool_that_has_too_many_nodes_gives_them_up_instead() -> None:
    snapshot = cluster(drifted("a"), node("b"), pools=[pool(replicas=1)])

    assert refused(proposed(snapshot).refusals) == [
        ("b", "NOT_DRIFTED", ""),
        ("a", "POOL_SHRINKING", "2 nodes, 1 wanted"),
    ]


def test_a_node_that_a_command_replaces_counts_until_it_is_deleted() -> None:
    """The replacement of that node is active already, so the pool has one node too many."""
    nodes = [drifted("a", replaced=True), drifted("b"), node("new")]
    snapshot = cluster(*nodes, pools=[pool(replicas=2)], in_command=frozenset({"a-claim"}))

    deleted = replace(snapshot, nodes=(drifted("a", deleting=True), *nodes[1:]))

    assert reasons(snapshot) == [
        ("a", "IN_COMMAND"),
        ("new", "NOT_DRIFTED"),
        ("b", "POOL_SHRINKING"),
    ]
    assert decisions(replace(deleted, in_command=frozenset())) == [("b", "replace")]


@pytest.mark.parametrize("settings", [Settings(), MAY])
@pytest.mark.parametrize("unfit", [pool(replicas=1, ready=False), pool(replicas=1, deleting=True)])
def test_a_pool_that_is_not_ready_launches_nothing(unfit: NodePool, settings: Settings) -> None:
    snapshot = cluster(drifted("a"), pools=[unfit], settings=settings)

    assert refused(proposed(snapshot).refusals) == [("a", "NO_REPLACEMENT", NOT_READY)]


# --- terminate-first -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"), [(Settings(), []), (MAY, [("a", "terminate-first")])]
)
def test_a_node_of_a_pool_at_its_limit_is_deleted_first_behind_a_gate(
    settings: Settings, expected: list[tuple[str, str]]
) -> None:
    static = pool(replicas=1, limits={"nodes": "1"})
    snapshot = cluster(drifted("a"), pools=[static], settings=settings)

    assert decisions(snapshot) == expected


def test_a_node_that_is_deleted_first_says_why_and_has_no_replacement() -> None:
    static = pool(replicas=1, limits={"nodes": "1"})

    (command,) = proposed(cluster(drifted("a"), pools=[static], settings=MAY)).commands

    assert (command.terminates_first, command.replacements) == ("static-at-limit", ())
    assert command.savings == DOLLAR


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([drifted("a"), drifted("b"), node("c")], [("a", "terminate-first")]),
        ([drifted("a"), drifted("b"), node("c", initialized=False)], []),
        ([drifted("a"), drifted("b")], []),
    ],
    ids=["all are there", "the replacement boots", "the replacement is not there"],
)
def test_the_next_node_is_deleted_first_only_when_the_one_before_is_back(
    nodes: list[Node], expected: list[tuple[str, str]]
) -> None:
    static = pool(replicas=3, limits={"nodes": "3"}, policy=budgets("1"))
    given = cluster(*nodes, only_claim("d", deleting=True), pools=[static], settings=MAY)

    assert decisions(given) == expected


def test_a_limit_below_the_number_of_replicas_leaves_nothing_missing() -> None:
    static = pool(replicas=9, limits={"nodes": "1"}, policy=budgets("1"))

    assert decisions(cluster(drifted("a"), pools=[static], settings=MAY)) == [
        ("a", "terminate-first")
    ]


def test_nodes_are_not_deleted_first_beside_one_that_can_be_replaced() -> None:
    static = pool(replicas=2, limits={"nodes": "3"})
    snapshot = cluster(drifted("a"), drifted("b"), pools=[static], settings=MAY)

    assert decisions(snapshot) == [("a", "replace")]
    assert refused(proposed(snapshot).refusals) == [("b", "NO_REPLACEMENT", AT_LIMIT)]


def test_of_full_reservations_only_nodes_on_one_are_deleted_first() -> None:
    static = pool(replicas=3, requirements=RESERVED_ONLY, policy=budgets("2"))
    nodes = [drifted("a"), drifted("b"), drifted("c", reservation="r1", type="m.xlarge")]

    snapshot = cluster(*nodes, pools=[static], types=reserved(), settings=MAY)

    assert decisions(snapshot) == [("c", "terminate-first")]
    assert proposed(snapshot).commands[0].terminates_first == "no-reserved-capacity"
    assert [(each.node, each.why.name, each.detail) for each in proposed(snapshot).refusals] == [
        ("b", "BUDGET_SPENT", "2 of 3 nodes allowed, 0 taken"),
        ("a", "NO_REPLACEMENT", FULL),
    ]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (reserved(left=1), "replace"),
        (reserved(), "terminate-first"),
        (
            [
                instance_type(
                    "m.xlarge",
                    offerings=[offering(reservation="r1"), offering(available=False)],
                )
            ],
            "replace",
        ),
    ],
    ids=["machines are left", "full", "something else exists, if not now"],
)
def test_reservations_are_full_only_if_nothing_else_could_be_launched(
    types: Sequence[InstanceType], expected: str
) -> None:
    on_reservation = drifted("a", reservation="r1", type="m.xlarge")
    static = pool(replicas=1, requirements=[])

    snapshot = cluster(on_reservation, pools=[static], types=types, settings=MAY)

    assert decisions(snapshot) == [("a", expected)]


# --- validation ----------------------------------------------------------------------------------


def test_static_drift_is_carried_out_at_once() -> None:
    (command,) = proposed(cluster(drifted("a"), pools=[pool(replicas=1)])).commands

    assert not METHOD.is_validated
    assert METHOD.validate(command, Evaluation(cluster())) == Validation(command)
