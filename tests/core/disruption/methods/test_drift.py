from collections.abc import Sequence
from datetime import timedelta
from typing import Unpack

import pytest
from msgspec.structs import replace

from karpy.core.disruption.candidates import refusal_notices
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation
from karpy.core.disruption.methods.drift import Drift
from karpy.core.lifecycle.changes import Count
from karpy.model.commands import Command, CommandNode
from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, RESERVED
from karpy.model.nodes import Node
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.pools import DisruptionReason
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.builders import NOON, instance_type, is_in, offering
from tests.core.disruption.scenes import (
    DOLLAR,
    HOUR,
    MINUTE,
    NEVER,
    WEB,
    NodeFields,
    budgets,
    cluster,
    event_rows,
    node,
    pod,
    pod_budget,
    pool,
    refused,
)

METHOD = Drift()


def drifted(name: str, **fields: Unpack[NodeFields]) -> Node:
    """Build a node that drifted an hour ago."""
    fields["true_conditions"] = ["Drifted"]
    return node(name, **fields)


def older(name: str) -> Node:
    """Build a node that drifted two hours ago."""
    return drifted(name, conditions_since=NOON - 2 * HOUR)


def proposed(snapshot: Snapshot) -> Proposal:
    return METHOD.propose(Evaluation(snapshot))


def chosen(snapshot: Snapshot) -> list[str]:
    """Return the nodes of the commands."""
    return [each.node for command in proposed(snapshot).commands for each in command.nodes]


def pods_of_launches(snapshot: Snapshot) -> list[tuple[str, ...]]:
    """Return the pods of each replacement."""
    (command,) = proposed(snapshot).commands
    return [each.launch.pods for each in command.replacements]


def test_no_node_is_launched_for_the_case_that_pods_take_the_room_of_a_buffer() -> None:
    some = [
        pod("x", on="a", cpu="1"),
        pod("y", on="b", cpu="3"),
        pod("buffer-1", cpu="4", virtual=True),
    ]

    (command,) = proposed(cluster(drifted("a"), node("b"), node("c"), pods=some)).commands

    assert (command.replacements, command.nominated) == ((), ("b",))


# --- which node ----------------------------------------------------------------------------------


def test_pods_of_a_drifted_node_go_to_other_nodes_if_there_is_room() -> None:
    snapshot = cluster(drifted("a"), node("b"), pods=[pod("x", on="a", cpu="3")])

    proposal = proposed(snapshot)

    assert proposal.commands == (
        Command(
            "drift",
            DisruptionReason.DRIFTED,
            (CommandNode("a", "a-claim", "web", DOLLAR, 1),),
            nominated=("b",),
            proposed=NOON,
        ),
    )
    assert proposal.commands[0].decision == "delete"
    assert refused(proposal.refusals) == [("b", "NOT_DRIFTED", "")]


def test_a_drifted_node_without_room_elsewhere_is_replaced_by_a_new_one() -> None:
    snapshot = cluster(drifted("a"), pods=[pod("x", on="a", cpu="3")])

    (command,) = proposed(snapshot).commands

    assert command.decision == "replace"
    assert [each.launch.pods for each in command.replacements] == [("shop/x",)]
    assert command.nominated == ()


def test_a_node_is_replaced_by_as_many_as_its_pods_take() -> None:
    types = [instance_type("small", cpu="4")]
    pods = [pod(f"x{each}", on="a", cpu="3") for each in range(3)]

    launches = pods_of_launches(cluster(drifted("a", type="large"), pods=pods, types=types))

    assert sorted(launches) == [("shop/x0",), ("shop/x1",), ("shop/x2",)]


def test_the_room_of_a_buffer_is_replaced_before_its_node_goes() -> None:
    buffer = pod("buffer-1", cpu="3", virtual=True)

    assert pods_of_launches(cluster(drifted("a"), pods=[buffer])) == [("shop/buffer-1",)]


def test_the_room_of_a_buffer_may_be_elsewhere() -> None:
    buffer = pod("buffer-1", cpu="3", virtual=True)

    assert pods_of_launches(cluster(drifted("a"), node("b"), pods=[buffer])) == []


def test_pods_that_take_the_room_of_a_buffer_have_it_replaced() -> None:
    pods = [pod("x", on="a", cpu="3"), pod("buffer-1", cpu="3", virtual=True)]

    assert pods_of_launches(cluster(drifted("a"), node("b"), pods=pods)) == [("shop/buffer-1",)]


def test_a_buffer_that_finds_no_room_elsewhere_holds_no_node() -> None:
    buffer = pod("buffer-1", cpu="3", virtual=True)
    full = pool(limits={"cpu": "1"})

    assert pods_of_launches(cluster(drifted("a"), pods=[buffer], pools=[full])) == []


def test_a_replacement_may_cost_more_than_the_node() -> None:
    """Drift replaces nodes at any price."""
    types = [instance_type("small", dollars=1.0), instance_type("dear", dollars=9.0)]
    dear_only = pool(requirements=[is_in("node.kubernetes.io/instance-type", "dear")])
    snapshot = cluster(drifted("a"), pods=[pod("x", on="a")], pools=[dear_only], types=types)

    (command,) = proposed(snapshot).commands

    assert command.savings == -8 * DOLLAR


def test_the_oldest_drift_comes_first_and_names_decide_ties() -> None:
    pods = [pod(f"on-{each}", on=each) for each in "abc"]
    nodes = [drifted("c"), drifted("b"), older("a")]

    first = chosen(cluster(*nodes, pods=pods))
    second = chosen(cluster(*nodes[:2], pods=pods[1:]))

    assert (first, second) == (["a"], ["b"])


def test_a_node_without_pods_that_must_move_comes_before_all_others() -> None:
    pods = [pod("x", on="a"), pod("d", on="b", daemon=True)]

    proposal = proposed(cluster(older("a"), drifted("b"), pods=pods))

    assert [each.node for each in proposal.commands[0].nodes] == ["b"]
    assert refused(proposal.refusals) == [("a", "NOT_CONSIDERED", "")]


def test_drift_needs_neither_consolidation_nor_a_quiet_node() -> None:
    never = pool(policy=NEVER)

    assert chosen(cluster(drifted("a", last_pod_event=NOON), pools=[never])) == ["a"]


def test_nodes_of_static_pools_are_left_to_static_drift() -> None:
    proposal = proposed(cluster(drifted("a"), pools=[pool(replicas=1)]))

    assert (proposal.commands, proposal.refusals) == ((), ())


def test_what_forbids_the_disruption_of_a_node_is_a_refusal() -> None:
    nodes = [
        drifted("a", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        drifted("b", nominated_for=MINUTE),
        drifted("c"),
    ]

    proposal = proposed(cluster(*nodes))

    assert [each.node for each in proposal.commands[0].nodes] == ["c"]
    assert refused(proposal.refusals) == [("a", "DO_NOT_DISRUPT", ""), ("b", "NOMINATED", "")]


# --- budgets -------------------------------------------------------------------------------------


def test_a_pool_without_budget_keeps_its_nodes_and_others_have_their_turn() -> None:
    snapshot = cluster(
        older("a"),
        drifted("b", pool="batch"),
        pools=[pool(policy=budgets("0")), pool("batch")],
    )

    proposal = proposed(snapshot)

    assert [each.node for each in proposal.commands[0].nodes] == ["b"]
    assert refused(proposal.refusals) == [("a", "BUDGET_SPENT", "0 of 1 nodes allowed, 0 taken")]
    assert event_rows(proposal.notices) == [
        (
            "NodePool",
            "web",
            "DisruptionBlocked",
            "No allowed disruptions for disruption reason Drifted due to blocking budget",
        )
    ]


def test_nodes_that_are_being_replaced_take_from_the_budget() -> None:
    snapshot = cluster(node("a", replaced=True), drifted("b"), pools=[pool(policy=budgets("1"))])

    assert chosen(snapshot) == []
    assert chosen(replace(snapshot, pools=(pool(policy=budgets("2")),))) == ["b"]


def test_gauges_say_how_many_nodes_have_drifted() -> None:
    first, *rest = proposed(cluster(drifted("a"), drifted("b"), node("c"))).counts

    labels = {"reason": "drifted"}
    assert first == Count("voluntary_disruption_eligible_nodes", labels, 2.0)
    assert {each.labels["reason"] for each in rest} == {"drifted"}
    assert proposed(cluster(node("a"))).counts == (
        Count("voluntary_disruption_eligible_nodes", labels, 0.0),
    )


# --- pods that find no place ---------------------------------------------------------------------


def test_a_node_whose_pods_find_no_place_stays_and_the_next_has_its_turn() -> None:
    snapshot = cluster(
        older("a"),
        drifted("b"),
        pods=[pod("huge", on="a", cpu="300"), pod("x", on="b")],
    )

    proposal = proposed(snapshot)
    (refusal,) = proposal.refusals

    assert [each.node for each in proposal.commands[0].nodes] == ["b"]
    assert (refusal.why.name, refusal.pods, refusal.price) == (
        "PODS_UNPLACED",
        ("shop/huge",),
        DOLLAR,
    )
    assert refusal.detail.startswith("shop/huge: ")
    text = f"not all pods would schedule, {refusal.detail}"
    assert event_rows(refusal_notices(proposal.refusals, Evaluation(snapshot))) == [
        ("Node", "a", "DisruptionBlocked", text),
        ("NodeClaim", "a-claim", "DisruptionBlocked", text),
    ]


def test_a_pending_pod_that_finds_no_place_holds_nothing_up() -> None:
    pods = [pod("hopeless", cpu="300"), pod("x", on="a")]

    assert chosen(cluster(drifted("a"), pods=pods)) == ["a"]


def test_no_pod_is_planned_on_a_node_that_is_not_initialized() -> None:
    booting = node("b", initialized=False)
    full = pool(limits={"cpu": "8"})

    proposal = proposed(cluster(drifted("a"), booting, pods=[pod("x", on="a")], pools=[full]))

    assert [each.why.name for each in proposal.refusals] == ["UNINITIALIZED", "PODS_UNPLACED"]
    assert "would schedule against uninitialized node b" in proposal.refusals[1].detail


# --- grace periods -------------------------------------------------------------------------------


CLOSED = pod_budget("closed", max_unavailable="0")
PROTECTED = pod("protected", on="a", cpu="300", do_not_disrupt="true")
GUARDED = pod("guarded", on="a", cpu="300", labels=WEB)


@pytest.mark.parametrize(
    ("kept", "budget", "why"),
    [
        (PROTECTED, (), "POD_DO_NOT_DISRUPT"),
        (GUARDED, (CLOSED,), "POD_BUDGET"),
        (pod("odd", on="a", unreadable="odd"), (), "POD_UNREADABLE"),
    ],
)
def test_a_grace_period_ends_what_pods_forbid_and_they_need_no_place_before(
    kept: Pod, budget: Sequence[DisruptionBudget], why: str
) -> None:
    pods = [kept, pod("x", on="a")]

    def proposed_under(grace: timedelta | None) -> Proposal:
        made = drifted("a", grace_period=grace)
        return proposed(cluster(made, pods=pods, budgets=tuple(budget)))

    without, within = proposed_under(None), proposed_under(HOUR)

    assert [each.why.name for each in without.refusals] == [why]
    assert without.commands == ()
    (command,) = within.commands
    assert [each.launch.pods for each in command.replacements] == [("shop/x",)]
    assert within.refusals == ()


@pytest.mark.parametrize(
    ("moved", "budget"),
    [
        (pod("x", on="a", labels=WEB), pod_budget("spent", 0)),
        (pod("x", on="a", labels=WEB, unready=True), replace(CLOSED, allows_unready=True)),
        (pod("x", on="a", stateful=True, deleted=NOON, do_not_disrupt="true"), None),
        (pod("x", on="a", do_not_disrupt="1h", age=2 * HOUR), None),
    ],
    ids=["budget spent for now", "not ready", "deleting", "protection is over"],
)
def test_under_a_grace_period_pods_that_a_drain_evicts_need_a_place(
    moved: Pod, budget: DisruptionBudget | None
) -> None:
    given = () if budget is None else (budget,)

    launches = pods_of_launches(
        cluster(drifted("a", grace_period=HOUR), pods=[moved], budgets=given)
    )

    assert launches == [("shop/x",)]


# --- terminate-first -----------------------------------------------------------------------------


MAY = Settings(terminate_first_drift=True)


def reserved(left: int = 0, *, available: bool = True) -> list[InstanceType]:
    """Build a catalog whose only type is reserved, with so many machines left."""
    only = offering(reservation="r1", left=left, available=available)
    return [instance_type("m.xlarge", offerings=[only])]


def on_reservation(settings: Settings, types: Sequence[InstanceType], *pods: Pod) -> Snapshot:
    return cluster(
        drifted("a", reservation="r1", type="m.xlarge"),
        pods=pods or [pod("x", on="a", cpu="3")],
        pools=[pool(requirements=[is_in(CAPACITY_TYPE, RESERVED)])],
        types=types,
        settings=settings,
    )


def test_a_node_is_deleted_first_if_its_replacement_needs_its_reservation() -> None:
    proposal = proposed(on_reservation(MAY, reserved()))

    assert proposal.commands == (
        Command(
            "drift",
            DisruptionReason.DRIFTED,
            (CommandNode("a", "a-claim", "web", DOLLAR, 1),),
            terminates_first="no-reserved-capacity",
            proposed=NOON,
        ),
    )
    assert proposal.commands[0].decision == "terminate-first"


def test_pods_of_a_node_that_is_deleted_first_are_expected_on_others() -> None:
    types = reserved()
    snapshot = on_reservation(MAY, types, pod("x", on="a", cpu="3"), pod("y", on="a", cpu="1"))
    beside = node("b", type=types[0], reservation="r1")
    full = pod("z", on="b", cpu="2500m")

    (command,) = proposed(
        replace(snapshot, nodes=(*snapshot.nodes, beside), pods=(*snapshot.pods, full))
    ).commands

    assert (command.decision, command.nominated) == ("terminate-first", ("b",))


def test_the_next_node_is_deleted_first_only_when_the_one_before_is_back() -> None:
    """A missing node consumes the budget, as a node that is not ready does."""
    types = reserved()
    one = on_reservation(MAY, types)
    back = node("b", type=types[0], reservation="r1", initialized=False)
    on_its_way = pod("y", on="b", cpu="3", expected=True)
    pools = tuple(replace(each, policy=budgets("1")) for each in one.pools)
    snapshot = replace(one, nodes=(*one.nodes, back), pods=(*one.pods, on_its_way), pools=pools)

    proposal = proposed(snapshot)

    assert proposal.commands == ()
    assert refused(proposal.refusals)[-1] == (
        "a",
        "BUDGET_SPENT",
        "1 of 1 nodes allowed, 1 taken",
    )


@pytest.mark.parametrize(
    ("settings", "types"),
    [
        (Settings(), reserved()),
        (MAY, reserved(available=False)),
        (Settings(terminate_first_repair=True), reserved()),
    ],
    ids=["gate is closed", "reservation is gone", "gate of repair"],
)
def test_a_node_is_not_deleted_first_without_need(
    settings: Settings, types: Sequence[InstanceType]
) -> None:
    proposal = proposed(on_reservation(settings, types))

    assert proposal.commands == ()
    assert [each.why.name for each in proposal.refusals] == ["PODS_UNPLACED"]


def test_a_node_is_replaced_as_usual_if_its_reservation_has_machines_left() -> None:
    (command,) = proposed(on_reservation(MAY, reserved(left=1))).commands

    assert command.decision == "replace"


def test_one_machine_is_credited_and_no_more() -> None:
    huge = [pod("x", on="a", cpu="3"), pod("y", on="a", cpu="3")]

    proposal = proposed(on_reservation(MAY, reserved(), *huge))

    assert proposal.commands == ()


# --- validation ----------------------------------------------------------------------------------


def test_drift_is_carried_out_at_once() -> None:
    snapshot = cluster(drifted("a"))
    (command,) = proposed(snapshot).commands

    assert not METHOD.is_validated
    assert METHOD.validate(command, Evaluation(cluster())) == Validation(command)
