from datetime import timedelta
from typing import Unpack

import pytest
from msgspec.structs import replace

from karpy.core.disruption.repairing import Triage, find_broken, triage
from karpy.core.lifecycle.changes import Count
from karpy.model.conditions import Condition
from karpy.model.repairs import RepairAction, RepairPolicy
from karpy.model.surroundings import NodeState, Surroundings
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    NodeFields,
    around,
    budgets,
    refused,
    state,
    tenant,
    told,
)

MINUTE = timedelta(minutes=1)
HOUR = 60 * MINUTE
POLICIES = (
    RepairPolicy("Ready", "False", 10 * MINUTE),
    RepairPolicy("Slow", "True", MINUTE, ".*", RepairAction.REBOOT, grace_period=5 * MINUTE),
)
PROTECTED = tenant("x", do_not_disrupt="true")


def sick(
    name: str, type_: str = "Disk", since: timedelta = HOUR, **fields: Unpack[NodeFields]
) -> NodeState:
    """Build a node with a fault."""
    well = state(name, **fields)
    assert well.node is not None
    fault = Condition("Ready", "False", NOON - since, "KubeletNotReady")
    if type_ == "Slow":
        fault = Condition("Slow", "True", NOON - since, "Swapping")
    return replace(well, node=replace(well.node, conditions=(fault,)))


def crowd(*nodes: NodeState, well: int = 9, **changes: object) -> Surroundings:
    """Build a cluster in which most nodes are well."""
    others = (state(f"well-{number}") for number in range(well))
    return around(*nodes, *others, **changes)


def triaged(surroundings: Surroundings, *rebooted: timedelta) -> Triage:
    reboots = {"uid-a-claim": [NOON - each for each in rebooted]}
    return triage(surroundings, POLICIES, reboots)


def names(found: Triage) -> list[str]:
    return [each.candidate.name for each in found.patients]


def test_only_broken_nodes_are_considered() -> None:
    surroundings = crowd(sick("a"), sick("b", since=MINUTE))

    found = triaged(surroundings)

    assert names(found) == ["a"]
    assert found.refusals == ()
    assert found.notices == ()
    assert list(find_broken(surroundings, POLICIES)) == ["a-claim"]
    assert found.counts[0] == Count(
        "voluntary_disruption_eligible_nodes", {"reason": "unhealthy"}, 1.0
    )


def test_those_come_first_that_have_waited_longest_and_mind_least() -> None:
    crowded = sick("c", tenants=[tenant("x"), tenant("y")])
    nodes = [crowded, sick("d"), sick("b"), sick("a", since=2 * HOUR)]

    found = triaged(crowd(*nodes, well=20))

    assert names(found) == ["a", "b", "d", "c"]


def test_a_node_of_no_pool_is_not_repaired() -> None:
    found = triaged(crowd(sick("a", pool="")))

    note = "repair requires a NodePool to construct and budget a safe replacement"
    assert refused(found.refusals) == [("a", "REPAIR_NEEDS_POOL", "")]
    assert told(found.notices) == [
        ("Node", "a", "DisruptionBlocked", note),
        ("NodeClaim", "a-claim", "DisruptionBlocked", note),
    ]


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (sick("a", said=["Rebooting"]), "REBOOTING"),
        (sick("a", deleting=True), "LEAVING"),
        (sick("a", registered=False, initialized=False), "UNREGISTERED"),
        (sick("a", nominated_for=MINUTE), "NOMINATED"),
        (sick("a", pool="gone"), "POOL_MISSING"),
    ],
)
def test_some_broken_nodes_must_wait(node: NodeState, why: str) -> None:
    found = triaged(crowd(node))

    assert names(found) == []
    assert [each.why.name for each in found.refusals] == [why]


@pytest.mark.parametrize(
    "node",
    [
        sick("a", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        sick("a", initialized=False, nominated_for=MINUTE),
    ],
    ids=["do-not-disrupt", "never initialized"],
)
def test_what_protects_a_node_that_is_well_does_not_protect_a_broken_one(node: NodeState) -> None:
    assert names(triaged(crowd(node))) == ["a"]


def test_a_node_is_spared_by_the_annotation_against_repair() -> None:
    found = triaged(crowd(sick("a", annotations={"karpenter.sh/do-not-repair": "true"})))

    note = 'repair is blocked through the "karpenter.sh/do-not-repair" annotation'
    assert refused(found.refusals) == [("a", "DO_NOT_REPAIR", "web")]
    assert told(found.notices) == [
        ("Node", "a", "DisruptionBlocked", note),
        ("NodeClaim", "a-claim", "DisruptionBlocked", note),
    ]


def test_pods_that_forbid_it_need_somebody_to_end_their_wait() -> None:
    found = triaged(crowd(sick("a", tenants=[PROTECTED])))

    assert refused(found.refusals) == [("a", "REPAIR_NEEDS_GRACE", "web")]
    assert told(found.notices)[0] == (
        "Node",
        "a",
        "DisruptionBlocked",
        "repair requires a termination grace period to bypass blocking pods",
    )


@pytest.mark.parametrize(
    ("node", "bound"),
    [
        (sick("a", tenants=[PROTECTED], grace_period=HOUR), None),
        (sick("a", "Slow", tenants=[PROTECTED]), 5 * MINUTE),
        (sick("a", "Slow", grace_period=HOUR), 5 * MINUTE),
        (sick("a", "Slow", grace_period=MINUTE), MINUTE),
        (sick("a"), None),
    ],
)
def test_the_shorter_of_two_grace_periods_bounds_the_drain(
    node: NodeState, bound: timedelta | None
) -> None:
    (patient,) = triaged(crowd(node)).patients

    assert patient.bound == bound


@pytest.mark.parametrize(("well", "expected"), [(8, ["a", "b"]), (1, [])])
def test_a_pool_with_many_broken_nodes_is_left_alone(well: int, expected: list[str]) -> None:
    found = triaged(crowd(sick("a"), sick("b"), well=well))

    assert names(found) == expected


def test_a_pool_that_is_left_alone_hears_of_it() -> None:
    found = triaged(crowd(sick("a"), sick("b", since=MINUTE), well=1))

    note = 'more than 20% of nodes in nodepool "web" are unhealthy'
    assert refused(found.refusals) == [("a", "MOSTLY_UNHEALTHY", "web")]
    assert told(found.notices) == [
        ("Node", "a", "NodeRepairBlocked", note),
        ("NodeClaim", "a-claim", "NodeRepairBlocked", note),
        ("NodePool", "web", "NodeRepairBlocked", note),
    ]


def test_budgets_hold_for_repairs_but_not_for_nodes_that_never_worked() -> None:
    nodes = [sick("a"), sick("b", initialized=False)]

    found = triaged(crowd(*nodes, policies={"web": budgets("0")}))

    assert names(found) == ["b"]
    assert refused(found.refusals) == [("a", "BUDGET_SPENT", "web")]
    assert told(found.notices)[-1] == (
        "NodePool",
        "web",
        "DisruptionBlocked",
        "No allowed disruptions for disruption reason Unhealthy due to blocking budget",
    )


@pytest.mark.parametrize(
    ("rebooted", "action"),
    [
        ([], RepairAction.REBOOT),
        ([HOUR], RepairAction.REBOOT),
        ([HOUR, 2 * HOUR], RepairAction.REPLACE),
        ([HOUR, 24 * HOUR], RepairAction.REBOOT),
    ],
)
def test_a_node_that_reboots_do_not_mend_is_replaced(
    rebooted: list[timedelta], action: RepairAction
) -> None:
    (patient,) = triaged(crowd(sick("a", "Slow")), *rebooted).patients

    assert patient.remedy.action is action
