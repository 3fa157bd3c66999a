"""Proposed consolidation commands: their events, and their validation 15 s later."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import DisruptionMethod, Validation
from karpy.core.disruption.methods.multinode import MultiNodeConsolidation
from karpy.core.disruption.methods.singlenode import SingleNodeConsolidation
from karpy.model.commands import Command, Stage
from karpy.model.nodes import Node
from karpy.model.snapshot import Snapshot
from tests.builders import ZONE_A, ZONE_B, catalog, instance_type, offering
from tests.core.disruption.scenes import (
    BALANCED,
    DOLLAR,
    MINUTE,
    TYPES,
    budgets,
    cluster,
    event_rows,
    node,
    pod,
    pool,
    refused,
)

LATER = timedelta(seconds=15)
SINGLE, MULTI = SingleNodeConsolidation(), MultiNodeConsolidation()
PAIR = cluster(
    *(node(each) for each in "abc"),
    pods=[pod("x", on="a", cpu="1"), pod("y", on="b", cpu="1"), pod("z", on="c", cpu="2")],
)
"""Two of three nodes can go."""
LARGE = cluster(node("a", type="large"), pods=[pod("x", on="a", cpu="3")])
"""A node that a smaller one can replace."""


def proposed(method: DisruptionMethod, given: Snapshot) -> Command:
    (command,) = method.propose(Evaluation(given)).commands
    return replace(command, id="7")


def after(given: Snapshot, **changes: object) -> Snapshot:
    """Return a snapshot 15 s later."""
    return replace(given, **{"now": given.now + LATER, **changes})


def validate(method: DisruptionMethod, given: Snapshot, **changes: object) -> Validation:
    """Propose on a snapshot and validate on the next, with some changes."""
    command = proposed(method, given)
    return method.validate(command, Evaluation(after(given, **changes)))


def with_node(given: Snapshot, changed: Node) -> tuple[Node, ...]:
    return tuple(changed if each.name == changed.name else each for each in given.nodes)


def names(validation: Validation) -> list[str]:
    return [each.node for each in validation.command.nodes] if validation.command else []


# --- events --------------------------------------------------------------------------------------


def test_a_candidate_of_a_consolidation_has_an_event_with_its_savings() -> None:
    proposal = SINGLE.propose(Evaluation(LARGE))

    text = "Consolidation candidate: replace: [a] (savings: $3.00)"
    assert event_rows(proposal.notices) == [
        ("Node", "a", "ConsolidationCandidate", text),
        ("NodeClaim", "a-claim", "ConsolidationCandidate", text),
    ]


def test_each_of_several_candidates_has_an_event_with_their_number() -> None:
    proposal = MULTI.propose(Evaluation(PAIR))

    text = "Consolidation candidate: delete: [b] (part of 2-node consolidation) (savings: $2.00)"
    assert ("Node", "b", "ConsolidationCandidate", text) in event_rows(proposal.notices)
    assert len(proposal.notices) == 4


def test_a_command_that_is_given_up_has_an_event_with_the_reason() -> None:
    validation = validate(SINGLE, LARGE, nodes=(node("a", type="large", nominated_for=MINUTE),))

    text = "Consolidation rejected: replace: [a], reason: churn (savings: $3.00)"
    assert validation.why == "churn"
    assert event_rows(validation.notices) == [
        ("Node", "a", "ConsolidationRejected", text),
        ("NodeClaim", "a-claim", "ConsolidationRejected", text),
    ]


# --- commands that hold --------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "given"), [(SINGLE, LARGE), (MULTI, PAIR)])
def test_a_command_holds_if_nothing_has_changed(method: DisruptionMethod, given: Snapshot) -> None:
    assert validate(method, given) == Validation(proposed(method, given))


def test_a_command_that_holds_names_the_nodes_that_take_its_pods_by_now() -> None:
    """Meanwhile other nodes may have got room; the pods are expected there then."""
    given = cluster(node("a"), node("b"), node("c"), pods=[pod("x", on="a", cpu="3")])
    given = replace(given, pods=(*given.pods, pod("y", on="b"), pod("z", on="c")))
    command = replace(proposed(SINGLE, given), nominated=("b",))
    taken = (*given.pods, pod("new", on="b", cpu="2"))

    validation = SINGLE.validate(command, Evaluation(after(given, pods=taken)))

    assert validation.command is not None
    assert validation.command.nominated == ("c",)


# --- commands that do not ------------------------------------------------------------------------


def test_without_a_place_for_its_pods_a_command_is_given_up() -> None:
    given = cluster(node("a"), node("b"), pods=[pod("x", on="a", cpu="3"), pod("y", on="b")])

    validation = validate(
        SINGLE, given, pods=(*given.pods, pod("new", on="b", cpu="1500m"), pod("v", on="a"))
    )

    assert (validation.command, validation.why) == (None, "scheduling")
    ((name, why, detail),) = refused(validation.refusals)
    assert (name, why) == ("a", "CHANGED")
    assert detail.startswith("shop/x: no node has room")


def test_a_deletion_that_has_become_a_replacement_is_given_up() -> None:
    given = cluster(node("a", type="large"), node("b"), pods=[pod("x", on="a", cpu="3")])
    given = replace(given, pods=(*given.pods, pod("y", on="b", cpu="500m", do_not_disrupt="true")))

    validation = validate(SINGLE, given, pods=(*given.pods, pod("new", on="b", cpu="2")))

    assert validation.why == "scheduling"
    assert refused(validation.refusals)[-1] == (
        "a",
        "CHANGED",
        "0 new nodes were expected, and 1 are needed",
    )


def test_a_replacement_that_has_become_a_deletion_is_given_up() -> None:
    validation = validate(SINGLE, LARGE, nodes=(*LARGE.nodes, node("b", initialized=True)))

    assert refused(validation.refusals) == [
        ("a", "CHANGED", "1 new nodes were expected, and 0 are needed")
    ]


def test_a_replacement_whose_types_do_not_all_take_the_pods_any_more_is_given_up() -> None:
    validation = validate(SINGLE, LARGE, pods=(*LARGE.pods, pod("new", on="a", cpu="2")))

    assert refused(validation.refusals) == [
        ("a", "CHANGED", "the pods need another instance type by now")
    ]


def test_a_replacement_of_fewer_types_than_there_are_by_now_holds() -> None:
    more = instance_type("more", cpu="4", dollars=0.5)

    validation = validate(SINGLE, LARGE, catalog=catalog([*TYPES, more]))

    assert validation.command is not None


def test_a_replacement_that_is_not_cheaper_any_more_is_given_up() -> None:
    dear = [
        instance_type("small", cpu="4", offerings=[offering(each, dollars=9.0)])
        for each in (ZONE_A, ZONE_B)
    ]

    validation = validate(SINGLE, LARGE, catalog=catalog([dear[0], *TYPES[2:]]))

    assert (validation.command, validation.why) == (None, "scheduling")


def test_a_budget_that_is_spent_by_now_gives_a_command_up() -> None:
    validation = validate(SINGLE, LARGE, pools=(pool(policy=budgets("0")),))

    assert (validation.command, validation.why) == (None, "budget")
    assert [each[1] for each in refused(validation.refusals)] == ["BUDGET_SPENT"]


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ((), "GONE"),
        ((node("a", type="large", true_conditions=[]),), "NOT_QUIET"),
        (
            (node("a", type="large", annotations={"karpenter.sh/do-not-disrupt": "true"}),),
            "DO_NOT_DISRUPT",
        ),
        ((node("a", type="large", deleting=True),), "DELETING"),
    ],
)
def test_a_node_that_may_not_go_any_more_gives_its_command_up(
    there: tuple[Node, ...], why: str
) -> None:
    validation = validate(SINGLE, LARGE, nodes=there)

    assert (validation.command, validation.why) == (None, "churn")
    assert [each[1] for each in refused(validation.refusals)] == [why]


def test_a_scale_out_that_began_meanwhile_gives_a_command_up() -> None:
    booting = node("new", age=MINUTE, initialized=False, true_conditions=[])
    coming = pod("new", on="new", expected=True, unschedulable=False)

    validation = validate(SINGLE, LARGE, nodes=(*LARGE.nodes, booting), pods=(*LARGE.pods, coming))

    assert refused(validation.refusals) == [("a", "SCALING_OUT", "")]


# --- commands that shrink ------------------------------------------------------------------------


def test_a_command_of_several_nodes_shrinks_to_those_that_may_still_go() -> None:
    busy = node("a", nominated_for=MINUTE)

    validation = validate(MULTI, PAIR, nodes=with_node(PAIR, busy))

    assert names(validation) == ["b"]
    assert refused(validation.refusals) == [("a", "NOMINATED", "")]
    assert validation.command is not None
    assert validation.command.savings == DOLLAR
    assert (validation.command.id, validation.command.proposed, validation.command.stage) == (
        "7",
        PAIR.now,
        Stage.PROPOSED,
    )


def test_a_command_shrinks_to_what_the_budget_allows_by_now() -> None:
    validation = validate(MULTI, PAIR, pools=(pool(policy=budgets("1")),))

    assert names(validation) == ["a"]
    assert [each[:2] for each in refused(validation.refusals)] == [("b", "BUDGET_SPENT")]


def test_a_smaller_command_is_simulated_again() -> None:
    """The replacement of two nodes may cost more than the one node that is left."""
    some = [pod("x", on="a", cpu="3"), pod("y", on="b", cpu="3")]
    types = [TYPES[0], instance_type("wide", cpu="8", memory="32Gi", dollars=1.5)]
    given = cluster(node("a"), node("b"), pods=some, types=types)

    validation = validate(MULTI, given, nodes=with_node(given, node("b", nominated_for=MINUTE)))

    assert (validation.command, validation.why) == (None, "churn")
    assert refused(validation.refusals) == [
        ("b", "NOMINATED", ""),
        ("a", "CHANGED", "without the others no replacement is cheaper than the node"),
    ]


def test_a_command_of_which_no_node_is_left_is_given_up() -> None:
    validation = validate(MULTI, PAIR, nodes=())

    assert (validation.command, validation.why) == (None, "churn")
    assert [each[1] for each in refused(validation.refusals)] == ["GONE", "GONE"]


def test_a_smaller_command_must_pay_for_a_balanced_nodepool_too() -> None:
    """First five of nine dollars are saved for twelve of fourteen pods, then one dollar for ten."""
    some = [pod("x", on="a"), pod("z", on="c", do_not_disrupt="true")]
    some += [pod(f"y-{number}", on="b") for number in range(9)]
    given = cluster(
        node("a", type="large"),
        node("b"),
        node("c", type="large"),
        pods=some,
        pools=[pool(policy=BALANCED)],
    )
    busy = node("a", type="large", nominated_for=MINUTE)

    validation = validate(MULTI, given, nodes=with_node(given, busy))

    assert validation.command is None
    assert refused(validation.refusals)[1:] == [
        (
            "b",
            "CHANGED",
            "without the others the move would save too little for the pods that it disrupts",
        )
    ]
