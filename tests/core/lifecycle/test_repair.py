from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.core.lifecycle.repair import NodeRepair, are_mostly_healthy, repair, snake_case
from karpy.model.conditions import Condition
from karpy.model.nodes import RepairAction, RepairPolicy
from karpy.model.records import NodeRecord
from karpy.model.verdicts import NodeReason, NodeRefusal
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import claim, node

MINUTE = timedelta(minutes=1)
TIME = "karpenter.sh/nodeclaim-termination-timestamp"
POLICIES = (
    RepairPolicy("KWOKUnhealthy", "True", 30 * MINUTE),
    RepairPolicy("DiskBroken", "True", 10 * MINUTE, reason_pattern="^IO"),
    RepairPolicy("Slow", "True", timedelta(), action=RepairAction.REBOOT),
)


def sick(*conditions: Condition, name: str = "node-1") -> NodeRecord:
    return node(name=name, conditions=conditions)


def since(minutes: int, type_: str = "KWOKUnhealthy", reason: str = "") -> Condition:
    return Condition(type_, "True", NOON - minutes * MINUTE, reason)


def test_the_claim_of_an_unhealthy_node_is_deleted_at_once() -> None:
    broken, made = sick(since(30)), replace(claim(grace_period=MINUTE), image_id="image-1")

    changes = repair(made, broken, POLICIES, [broken], NOON, pods=2).changes

    labels = {
        "reason": "unhealthy",
        "nodepool": "web",
        "capacity_type": "spot",
        "consolidation_policy": "",
        "termination_mode": "eventual",
    }
    with_termination_deadline = claim(
        grace_period=MINUTE, annotations={TIME: "2026-03-02T12:00:00Z"}
    )
    assert changes == Changes(
        replace(with_termination_deadline, image_id="image-1"),
        deletes_claim=True,
        counts=(
            Count("nodeclaims_disrupted_total", labels),
            Count("pods_disruption_initiated_total", labels, 2.0),
            Count(
                "nodeclaims_unhealthy_disrupted_total",
                {
                    "condition": "kwok_unhealthy",
                    "nodepool": "web",
                    "capacity_type": "spot",
                    "image_id": "image-1",
                    "termination_mode": "eventual",
                },
            ),
        ),
        remarks=(Remark("deleting unhealthy node", {"Node": "node-1"}),),
    )


@pytest.mark.parametrize(
    ("broken", "remaining"),
    [
        (sick(since(20)), 10 * MINUTE),
        (sick(since(5, "DiskBroken", "IOError"), since(20)), 5 * MINUTE),
    ],
    ids=["one fault", "the sooner of two"],
)
def test_an_unhealthy_condition_is_tolerated_for_a_while(
    broken: NodeRecord, remaining: timedelta
) -> None:
    assert repair(claim(), broken, POLICIES, [broken], NOON) == NodeRepair(
        Changes(requeue_after=remaining)
    )


@pytest.mark.parametrize(
    "well",
    [
        node(),
        sick(since(99, "DiskBroken", "Full")),
        sick(since(99, "Slow")),
        sick(Condition("KWOKUnhealthy", "False", NOON - 99 * MINUTE)),
    ],
    ids=["no fault", "another reason", "a reboot would do", "another status"],
)
def test_a_condition_without_a_replace_policy_is_ignored(well: NodeRecord) -> None:
    assert repair(claim(), well, POLICIES, [well], NOON) == NodeRepair()


@pytest.mark.parametrize(
    ("nodes", "unhealthy", "expected"),
    [(10, 2, True), (10, 3, False), (3, 1, True), (3, 2, False), (1, 1, True)],
)
def test_a_fifth_of_the_nodes_rounded_up_may_be_unhealthy(
    nodes: int, unhealthy: int, *, expected: bool
) -> None:
    peers = [sick(since(0))] * unhealthy + [node()] * (nodes - unhealthy)

    assert are_mostly_healthy(peers, POLICIES) is expected


def test_too_many_unhealthy_nodes_are_not_repaired_and_have_events() -> None:
    broken = sick(since(30))

    repaired = repair(claim(), broken, POLICIES, [broken, broken], NOON)

    changes = repaired.changes
    assert repaired.refusal == NodeRefusal(NodeReason.MOSTLY_UNHEALTHY, "node-1", "web")
    assert changes.requeue_after == 5 * MINUTE
    assert not changes.deletes_claim
    assert [(each.subject.kind.name, each.same_as) for each in changes.notices] == [
        ("Node", ("uid-node-1",)),
        ("NodeClaim", ("uid-web-1",)),
        ("NodePool", ("uid-web",)),
    ]
    assert {(each.reason, each.note, each.window_seconds) for each in changes.notices} == {
        ("NodeRepairBlocked", "more than 20% nodes are unhealthy in the nodepool", 900.0)
    }


def test_a_claim_without_a_pool_is_compared_with_all_nodes() -> None:
    broken = sick(since(30))

    changes = repair(claim(pool=""), broken, POLICIES, [broken, broken], NOON).changes

    assert [(each.subject.kind.name, each.note) for each in changes.notices] == [
        ("Node", "more then 20% nodes are unhealthy in the cluster"),
        ("NodeClaim", "more then 20% nodes are unhealthy in the cluster"),
    ]


def test_a_deleting_claim_gets_a_deadline_and_is_not_counted() -> None:
    broken, going = sick(since(30)), claim(deleted=MINUTE, annotations={TIME: "unreadable"})

    repaired = repair(going, broken, POLICIES, [broken], NOON)

    assert repaired == NodeRepair(
        Changes(claim(deleted=MINUTE, annotations={TIME: "2026-03-02T12:00:00Z"})),
        NodeRefusal(NodeReason.DELETING, "node-1"),
    )


def test_an_earlier_deadline_stays() -> None:
    broken, going = sick(since(30)), claim(annotations={TIME: "2026-03-02T11:59:59Z"})

    assert repair(going, broken, POLICIES, [broken], NOON).changes.claim == going


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("KWOKUnhealthy", "kwok_unhealthy"),
        ("WhenEmptyOrUnderutilized", "when_empty_or_underutilized"),
        ("Ready", "ready"),
    ],
)
def test_condition_types_are_snake_case_in_metrics(name: str, expected: str) -> None:
    assert snake_case(name) == expected
