from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Unpack

import pytest
from msgspec.structs import replace

from karpy.core.disruption.candidates import refusal_notices
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation
from karpy.core.disruption.methods.repair import Repair
from karpy.core.disruption.terminatefirst import AT_LIMIT, FULL
from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.nodepool.staticcapacity import template_launch
from karpy.core.scheduling.overlays import apply_overlays
from karpy.model.commands import Command, CommandNode, Replacement
from karpy.model.conditions import Condition
from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVED
from karpy.model.nodes import Node, RepairAction, RepairPolicy, RepairRules
from karpy.model.pods import Pod
from karpy.model.pools import DisruptionReason, NodeOverlay, NodePool
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.builders import NOON, instance_type, is_in, offering
from tests.core.disruption.scenes import (
    DOLLAR,
    HOUR,
    MINUTE,
    WEB,
    NodeFields,
    budgets,
    cluster,
    event_rows,
    node,
    only_node,
    pod,
    pod_budget,
    pool,
    refused,
)

METHOD = Repair()
POLICIES: Final = (
    RepairPolicy("Ready", "False", 10 * MINUTE),
    RepairPolicy("Slow", "True", MINUTE, ".*", RepairAction.REBOOT, grace_period=5 * MINUTE),
    RepairPolicy("Stale", "True", MINUTE, ".*", RepairAction.REBOOT),
    RepairPolicy("Gone", "True", timedelta(), ".*", grace_period=timedelta()),
)
RULES: Final = RepairRules(POLICIES)
MAY = Settings(terminate_first_repair=True)
REASON = DisruptionReason.UNHEALTHY


def broken(
    name: str = "a", type_: str = "Ready", since: timedelta = HOUR, **fields: Unpack[NodeFields]
) -> Node:
    """Build a node with a fault, by default one that is not ready for an hour."""
    status = "False" if type_ == "Ready" else "True"
    fields.setdefault("age", timedelta(days=1))
    fields["conditions"] = [Condition(type_, status, NOON - since, "Because")]
    return node(name, **fields)


def crowd(
    *nodes: Node,
    well: int = 9,
    pods: Sequence[Pod] = (),
    pools: Sequence[NodePool] | None = None,
    types: Sequence[InstanceType] | None = None,
    repair: RepairRules = RULES,
    **changes: object,
) -> Snapshot:
    """Build a cluster in which most nodes are healthy, and full."""
    others = [node(f"well-{number}") for number in range(well)]
    full = [pod(f"full-{each.name}", on=each.name, cpu="4") for each in others]
    made = cluster(*nodes, *others, pods=[*pods, *full], pools=pools, types=types, repair=repair)
    return replace(made, **changes)


def proposed(snapshot: Snapshot) -> Proposal:
    return METHOD.propose(Evaluation(snapshot))


def chosen(snapshot: Snapshot) -> list[str]:
    """Return the nodes of the commands."""
    return [each.node for command in proposed(snapshot).commands for each in command.nodes]


def reasons(snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(each.node, each.why.name) for each in proposed(snapshot).refusals]


def events(snapshot: Snapshot) -> list[tuple[str, str, str, str]]:
    """Return the events on nodes that are left alone."""
    return event_rows(refusal_notices(proposed(snapshot).refusals, Evaluation(snapshot)))


# --- which nodes ---------------------------------------------------------------------------------


def test_only_broken_nodes_are_considered() -> None:
    proposal = proposed(crowd(broken("a"), broken("b", since=MINUTE)))

    assert [each.node for each in proposal.commands[0].nodes] == ["a"]
    assert proposal.refusals == ()
    assert proposal.counts[0] == Count(
        "voluntary_disruption_eligible_nodes", {"reason": "unhealthy"}, 1.0
    )


def test_without_policies_nothing_is_repaired_and_nothing_emitted() -> None:
    assert proposed(crowd(broken("a"), repair=RepairRules())) == Proposal()


def test_policies_that_are_invalid_repair_nothing_and_all_is_named() -> None:
    invalid = RepairRules((RepairPolicy("Ready", "Odd", -MINUTE),))

    assert proposed(crowd(broken("a"), repair=invalid)) == Proposal(
        remarks=(
            Remark(
                "invalid repair policies, no node is repaired",
                {
                    "error": "Ready=Odd: a status is True, False or Unknown; "
                    "Ready=Odd: durations are not negative"
                },
                is_error=True,
            ),
        )
    )


def test_the_longest_wait_comes_first_then_the_lowest_cost_then_the_name() -> None:
    nodes = [broken("c"), broken("d"), broken("b"), broken("a", since=2 * HOUR)]
    costly = [pod("x", on="c"), pod("y", on="c")]

    def order(*left: Node) -> str:
        return chosen(crowd(*left, pods=costly, well=20))[0]

    assert [order(*nodes), order(*nodes[:3]), order(*nodes[:2]), order(nodes[0])] == [
        "a",
        "b",
        "d",
        "c",
    ]


def test_a_long_wait_outweighs_a_higher_priority() -> None:
    """The scores are 6 (second priority of three, for 150 minutes) and 2.5 (third, for 15)."""
    low = RepairPolicy("Low", "True", 30 * MINUTE, ".*", priority=10)
    high = RepairPolicy("High", "True", 30 * MINUTE, ".*", priority=90)
    rules = RepairRules((replace(POLICIES[0], priority=0), low, high))
    first = broken("b", "Low", 180 * MINUTE)
    second = broken("a", "High", 45 * MINUTE)

    assert chosen(crowd(first, second, repair=rules, well=20)) == ["b"]


def test_a_node_near_its_expiry_costs_less_to_disrupt() -> None:
    old = broken("b", age=9 * HOUR, expire_after=10 * HOUR)
    pods = [pod("x", on="a"), pod("y", on="b")]

    assert chosen(crowd(broken("a"), old, pods=pods, well=20)) == ["b"]


def test_one_node_is_repaired_at_a_time() -> None:
    snapshot = crowd(broken("a"), broken("b"), well=20)

    assert chosen(snapshot) == ["a"]
    assert reasons(snapshot) == [("b", "NOT_CONSIDERED")]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (broken(true_conditions=["Rebooting"]), "REBOOTING"),
        (broken(deleting=True), "DELETING"),
        (broken(replaced=True), "DELETING"),
        (broken(registered=False, initialized=False), "UNREGISTERED"),
        (broken(nominated_for=MINUTE), "NOMINATED"),
        (broken(pool="gone"), "POOL_MISSING"),
        (broken(foreign=True), "UNMANAGED"),
    ],
)
def test_some_broken_nodes_must_wait(made: Node, why: str) -> None:
    snapshot = crowd(made)

    assert chosen(snapshot) == []
    assert [each[1] for each in reasons(snapshot)] == [why]


@pytest.mark.parametrize(
    "made",
    [
        broken(annotations={"karpenter.sh/do-not-disrupt": "true"}),
        broken(initialized=False, nominated_for=MINUTE),
    ],
    ids=["do-not-disrupt", "never initialized"],
)
def test_what_protects_a_healthy_node_does_not_protect_a_broken_one(made: Node) -> None:
    assert chosen(crowd(made)) == ["a"]


def test_a_broken_node_of_no_pool_is_not_repaired_and_a_healthy_one_not_mentioned() -> None:
    """Karpenter emits the event for every such node, in every pass."""
    snapshot = crowd(broken("a", pool=""), node("b", pool=""))

    text = "repair requires a NodePool to construct and budget a safe replacement"
    assert reasons(snapshot) == [("a", "REPAIR_NEEDS_POOL")]
    assert events(snapshot) == [
        ("Node", "a", "DisruptionBlocked", text),
        ("NodeClaim", "a-claim", "DisruptionBlocked", text),
    ]


# --- vetoes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "expected"), [("true", []), ("True", ["a"]), ("", ["a"])])
def test_the_annotation_against_repair_keeps_a_node(value: str, expected: list[str]) -> None:
    assert chosen(crowd(broken(annotations={"karpenter.sh/do-not-repair": value}))) == expected


def test_the_annotation_against_repair_is_named_in_events_before_what_pods_forbid() -> None:
    snapshot = crowd(
        broken(annotations={"karpenter.sh/do-not-repair": "true"}),
        pods=[pod("x", on="a", do_not_disrupt="true")],
    )

    text = 'repair is blocked through the "karpenter.sh/do-not-repair" annotation'
    assert events(snapshot) == [
        ("Node", "a", "DisruptionBlocked", text),
        ("NodeClaim", "a-claim", "DisruptionBlocked", text),
    ]


def test_the_annotation_against_repair_is_not_mentioned_while_a_fault_is_tolerated() -> None:
    tolerated = broken(since=MINUTE, annotations={"karpenter.sh/do-not-repair": "true"})

    assert reasons(crowd(tolerated)) == []


def test_pods_that_forbid_a_repair_need_a_grace_period_that_ends_it() -> None:
    snapshot = crowd(broken(), pods=[pod("x", on="a", do_not_disrupt="true")])

    (refusal,) = proposed(snapshot).refusals

    assert (refusal.why.name, refusal.detail, refusal.pods) == (
        "REPAIR_NEEDS_GRACE",
        "shop/x",
        ("shop/x",),
    )
    assert events(snapshot)[0] == (
        "Node",
        "a",
        "DisruptionBlocked",
        "repair requires a termination grace period to bypass blocking pods",
    )


def test_budgets_of_pods_forbid_a_repair_as_annotations_do() -> None:
    guarded = pod("x", on="a", labels=WEB)
    guard = (pod_budget("guard"),)

    assert reasons(crowd(broken(), pods=[guarded], budgets=guard)) == [("a", "REPAIR_NEEDS_GRACE")]
    assert chosen(crowd(broken(grace_period=HOUR), pods=[guarded], budgets=guard)) == ["a"]


@pytest.mark.parametrize(
    ("made", "bound"),
    [
        (broken(grace_period=HOUR), None),
        (broken(type_="Slow"), 5 * MINUTE),
        (broken(type_="Slow", grace_period=HOUR), 5 * MINUTE),
        (broken(type_="Slow", grace_period=MINUTE), MINUTE),
        (broken(type_="Gone", grace_period=MINUTE), timedelta()),
    ],
)
def test_the_shorter_of_two_grace_periods_bounds_the_drain(
    made: Node, bound: timedelta | None
) -> None:
    protected = pod("x", on="a", do_not_disrupt="true")

    (command,) = proposed(crowd(made, pods=[protected])).commands

    assert command.nodes[0].drain_bound == bound


# --- the share of broken nodes -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sick", "well", "expected"), [(2, 8, ["a"]), (3, 7, []), (1, 2, ["a"]), (2, 1, [])]
)
def test_a_pool_with_many_broken_nodes_is_left_alone(
    sick: int, well: int, expected: list[str]
) -> None:
    nodes = [broken(name) for name in "abc"[:sick]]

    assert chosen(crowd(*nodes, well=well)) == expected


def test_a_pool_that_is_left_alone_has_events() -> None:
    snapshot = crowd(broken("a"), broken("b", since=MINUTE), well=1)

    proposal = proposed(snapshot)

    text = 'more than 20% of nodes in nodepool "web" are unhealthy'
    assert refused(proposal.refusals) == [("a", "MOSTLY_UNHEALTHY", "2 of 3 nodes are unhealthy")]
    assert event_rows(proposal.notices) == [
        ("Node", "a", "NodeRepairBlocked", text),
        ("NodeClaim", "a-claim", "NodeRepairBlocked", text),
        ("NodePool", "web", "NodeRepairBlocked", text),
    ]
    assert {(each.same_as, each.window_seconds, each.is_warning) for each in proposal.notices} == {
        (("uid-a",), 900.0, True),
        (("uid-a-claim",), 900.0, True),
        (("uid-web",), 900.0, True),
    }


def test_faults_of_other_pools_do_not_count() -> None:
    others = [broken(f"batch-{number}", pool="batch") for number in range(5)]

    assert chosen(crowd(broken("a"), *others)) == ["a"]


def test_nodes_of_a_pool_count_whatever_is_behind_them() -> None:
    bare = [only_node(f"bare-{number}", conditions=[]) for number in range(4)]

    assert chosen(crowd(broken("a"), broken("b"), *bare, well=1)) == ["a"]
    assert chosen(crowd(broken("a"), broken("b"), well=1)) == []


# --- budgets -------------------------------------------------------------------------------------


def test_budgets_hold_for_repairs_but_not_for_nodes_that_never_worked() -> None:
    closed = pool(policy=budgets("0"))
    snapshot = crowd(broken("a"), broken("b", initialized=False), pools=[closed])

    proposal = proposed(snapshot)

    assert [each.node for each in proposal.commands[0].nodes] == ["b"]
    assert refused(proposal.refusals) == [("a", "BUDGET_SPENT", "0 of 10 nodes allowed, 0 taken")]
    assert event_rows(proposal.notices)[-1] == (
        "NodePool",
        "web",
        "DisruptionBlocked",
        "No allowed disruptions for disruption reason Unhealthy due to blocking budget",
    )


def test_nodes_that_are_not_ready_take_nothing_from_the_budget_of_repairs() -> None:
    snapshot = crowd(broken("a"), broken("b", since=MINUTE), pools=[pool(policy=budgets("1"))])

    assert chosen(snapshot) == ["a"]


def test_nodes_that_reboot_take_from_the_budget_of_repairs() -> None:
    rebooting = node("b", true_conditions=["Rebooting"])
    snapshot = crowd(broken("a"), rebooting, pools=[pool(policy=budgets("1"))])

    assert chosen(snapshot) == []


# --- replacements --------------------------------------------------------------------------------


def test_a_node_without_pods_is_deleted() -> None:
    (command,) = proposed(crowd(broken())).commands

    assert command == Command(
        "repair",
        REASON,
        (CommandNode("a", "a-claim", "web", DOLLAR, 0, RepairAction.REPLACE, "Ready/Because"),),
        proposed=NOON,
    )


def test_a_node_with_pods_is_deleted_after_its_replacement_is_initialized() -> None:
    pods = [pod("x", on="a", cpu="3"), pod("y", on="a", cpu="1", do_not_disrupt="true")]

    (command,) = proposed(crowd(broken(grace_period=HOUR), pods=pods)).commands

    (replacement,) = command.replacements
    assert command.decision == "replace"
    assert set(replacement.launch.pods) == {"shop/x", "shop/y"}


def test_the_room_of_a_buffer_is_replaced_before_its_node_goes() -> None:
    (command,) = proposed(crowd(broken(), pods=[pod("buffer-1", cpu="3", virtual=True)])).commands

    assert [each.launch.pods for each in command.replacements] == [("shop/buffer-1",)]


def test_pods_go_to_other_nodes_if_there_is_room() -> None:
    (command,) = proposed(crowd(broken(), node("free"), pods=[pod("x", on="a")])).commands

    assert (command.decision, command.nominated) == ("delete", ("free",))


def test_pods_that_are_expected_on_a_node_hold_their_room() -> None:
    """The node is nominated for these pods by an earlier decision; they are not bound yet."""
    coming = pod("coming", on="free", cpu="3", expected=True)
    snapshot = crowd(broken(), node("free"), pods=[pod("x", on="a", cpu="3"), coming])

    (command,) = proposed(snapshot).commands

    assert command.nominated == ()
    assert [each.launch.pods for each in command.replacements] == [("shop/x",)]


def test_pods_that_move_to_a_node_before_its_own_consolidation_may_do_so() -> None:
    busy = node("free", last_pod_event=NOON)
    lasting = pool(policy=replace(budgets(), consolidate_after=HOUR))
    snapshot = crowd(broken(), busy, pods=[pod("x", on="a")], pools=[lasting])

    (command,) = proposed(snapshot).commands

    assert command.nominated == ("free",)


def test_node_and_replacement_have_prices_of_the_same_overlaid_catalog() -> None:
    """With prices of two catalogs, savings would appear where nothing is saved."""
    plain = crowd(broken(), pods=[pod("x", on="a", cpu="3")])
    dear = NodeOverlay("dear", (is_in(INSTANCE_TYPE, "small"),), price="1.5")
    overlaid = replace(plain, catalog=apply_overlays(plain.catalog, plain.pools, (dear,)))

    (before,), (after,) = proposed(plain).commands, proposed(overlaid).commands

    assert (before.nodes[0].price, after.nodes[0].price) == (DOLLAR, 1_500_000)
    assert [each.launch.price for each in after.replacements] == [1_500_000]
    assert (before.savings, after.savings) == (0, 0)


def test_a_node_whose_pods_find_no_place_stays_and_the_next_has_its_turn() -> None:
    snapshot = crowd(
        broken("a", since=2 * HOUR), broken("b"), pods=[pod("huge", on="a", cpu="300")], well=20
    )

    proposal = proposed(snapshot)

    assert [each.node for each in proposal.commands[0].nodes] == ["b"]
    (refusal,) = proposal.refusals
    assert (refusal.why.name, refusal.pods) == ("PODS_UNPLACED", ("shop/huge",))
    assert events(snapshot)[0][3] == f"not all pods would schedule, {refusal.detail}"


def test_a_pod_that_cannot_be_read_holds_up_a_repair_only_until_a_grace_period_ends() -> None:
    odd = pod("odd", on="a", cpu="300", unreadable="`spec` is odd")

    assert reasons(crowd(broken(), pods=[odd])) == [("a", "REPAIR_NEEDS_GRACE")]
    assert chosen(crowd(broken(grace_period=HOUR), pods=[odd])) == ["a"]


def test_the_policy_that_was_selected_is_logged() -> None:
    (remark,) = proposed(crowd(broken("a", "Gone"))).remarks

    assert remark == Remark(
        "selected repair policy",
        {
            "Node": "a",
            "NodeClaim": "a-claim",
            "condition": "Gone",
            "status": "True",
            "reason": "Because",
            "reason-regex": ".*",
            "fallback": "false",
            "action": "ReplaceNode",
            "eligible-at": "2026-03-02T11:00:00Z",
            "termination-grace-period": "0s",
        },
    )


def test_what_is_left_alone_has_no_selected_policy() -> None:
    assert proposed(crowd(broken(), pods=[pod("huge", on="a", cpu="300")])).remarks == ()


# --- reboots -------------------------------------------------------------------------------------


def test_a_reboot_needs_no_replacement() -> None:
    (command,) = proposed(
        crowd(broken(type_="Slow"), pods=[pod("huge", on="a", cpu="300")])
    ).commands

    assert (command.decision, command.replacements) == ("reboot", ())
    assert command.nodes[0] == CommandNode(
        "a", "a-claim", "web", DOLLAR, 1, RepairAction.REBOOT, "Slow/Because", 5 * MINUTE
    )


@pytest.mark.parametrize(
    ("ago", "action"),
    [
        ([], RepairAction.REBOOT),
        ([HOUR], RepairAction.REBOOT),
        ([HOUR, 2 * HOUR], RepairAction.REPLACE),
        ([MINUTE, 11 * MINUTE, 23 * HOUR], RepairAction.REPLACE),
        ([HOUR, 24 * HOUR], RepairAction.REBOOT),
        ([25 * HOUR, 26 * HOUR], RepairAction.REBOOT),
    ],
)
def test_a_node_that_two_reboots_in_a_day_have_not_mended_is_replaced(
    ago: list[timedelta], action: RepairAction
) -> None:
    reboots = {"uid-a-claim": tuple(NOON - each for each in ago)}
    others = {"uid-other-claim": (NOON, NOON)}

    (command,) = proposed(
        crowd(broken(type_="Slow"), repair=RepairRules(POLICIES, {**reboots, **others}))
    ).commands

    (chosen_node,) = command.nodes
    assert chosen_node.action is action
    assert chosen_node.is_escalated is (action is RepairAction.REPLACE)


def test_a_node_that_is_replaced_for_another_fault_is_no_escalated_reboot() -> None:
    rules = RepairRules(POLICIES, {"uid-a-claim": (NOON, NOON)})

    (command,) = proposed(crowd(broken("a", "Gone"), repair=rules)).commands

    assert not command.nodes[0].is_escalated


# --- static pools --------------------------------------------------------------------------------


def test_a_node_of_a_static_pool_is_replaced_from_the_template() -> None:
    static = pool(replicas=10, requirements=[is_in("team", "shop")])

    (command,) = proposed(crowd(broken(), pools=[static], pods=[pod("x", on="a")])).commands

    assert command.replacements == (Replacement(template_launch(static)),)
    assert command.replacements[0].launch.pods == ()
    assert command.savings == 0


def test_a_static_pool_that_has_too_many_nodes_gives_them_up_instead() -> None:
    assert reasons(crowd(broken(), pools=[pool(replicas=9)])) == [("a", "POOL_SHRINKING")]


def reserved(left: int = 0) -> list[InstanceType]:
    only = offering(reservation="r1", left=left)
    return [instance_type("m.xlarge", offerings=[only])]


ON_RESERVATION = broken(reservation="r1", type="m.xlarge")
LIMITED = pool(replicas=10, limits={"nodes": "10"}, requirements=[])


@pytest.mark.parametrize(
    ("made", "types", "settings", "expected"),
    [
        (broken(), None, Settings(), AT_LIMIT),
        (broken(), None, Settings(terminate_first_drift=True), AT_LIMIT),
        (broken(), None, MAY, "static-at-limit"),
        (ON_RESERVATION, reserved(), MAY, "no-reserved-capacity"),
        (broken(), reserved(), MAY, FULL),
        (ON_RESERVATION, reserved(left=1), MAY, "static-at-limit"),
    ],
)
def test_a_node_of_a_static_pool_is_deleted_first_where_nothing_else_is_left(
    made: Node, types: Sequence[InstanceType] | None, settings: Settings, expected: str
) -> None:
    proposal = proposed(crowd(made, pools=[LIMITED], types=types, settings=settings))

    answers = [each.terminates_first for each in proposal.commands]
    answers += [each.detail for each in proposal.refusals]
    assert answers == [expected]


# --- reservations of dynamic pools ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(MAY, ["terminate-first"]), (Settings(), []), (Settings(terminate_first_drift=True), [])],
)
def test_a_node_is_deleted_first_if_its_replacement_needs_its_reservation(
    settings: Settings, expected: list[str]
) -> None:
    only_reserved = pool(requirements=[is_in(CAPACITY_TYPE, RESERVED)])
    snapshot = crowd(
        ON_RESERVATION,
        pods=[pod("x", on="a", cpu="3")],
        pools=[only_reserved],
        types=reserved(),
        settings=settings,
    )

    commands = proposed(snapshot).commands

    assert [each.decision for each in commands] == expected
    assert {each.terminates_first for each in commands} <= {"no-reserved-capacity"}


# --- validation ----------------------------------------------------------------------------------


def test_a_repair_is_carried_out_at_once() -> None:
    (command,) = proposed(crowd(broken())).commands

    assert not METHOD.is_validated
    assert METHOD.validate(command, Evaluation(cluster())) == Validation(command)
