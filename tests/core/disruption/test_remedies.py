from datetime import datetime, timedelta
from fractions import Fraction

import pytest
from msgspec.structs import replace

from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.core.disruption.remedies import (
    Match,
    Remedy,
    find_policy_faults,
    find_remedy,
    is_unhealthy,
)
from karpy.model.conditions import Condition
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.repairs import RepairAction, RepairPolicy
from tests.builders.pods import NOON
from tests.core.disruption.scenes import state

MINUTE = timedelta(minutes=1)
HALF_AN_HOUR = 30 * MINUTE
FALLBACK = RepairPolicy("Ready", "False", 10 * MINUTE)
DISK = RepairPolicy("Disk", "True", HALF_AN_HOUR, "^IO", priority=10)
SLOW = RepairPolicy("Slow", "True", HALF_AN_HOUR, ".*", RepairAction.REBOOT, priority=90)
POLICIES = (FALLBACK, DISK, SLOW)


def since(minutes: int, type_: str, reason: str = "", status: str = "True") -> Condition:
    return Condition(type_, status, NOON - minutes * MINUTE, reason)


def sick(*conditions: Condition, created: datetime | None = None) -> NodeRecord:
    node = state("n1").node
    assert node is not None
    return replace(node, conditions=conditions, meta=replace(node.meta, created=created))


def claim(*conditions: Condition) -> ClaimRecord:
    made = state("n1").claim
    assert made is not None
    return replace(made, conditions=replace(made.conditions, items=conditions))


def remedy_of(
    *conditions: Condition, policies: tuple[RepairPolicy, ...] = POLICIES
) -> Remedy | None:
    return find_remedy(claim(), sick(*conditions), policies, NOON)


def test_a_fault_is_put_up_with_for_a_while() -> None:
    assert remedy_of(since(29, "Disk", "IOError")) is None


def test_a_fault_is_mended_by_its_policy() -> None:
    condition = since(30, "Disk", "IOError")

    remedy = remedy_of(condition)

    assert remedy == Remedy(RepairAction.REPLACE, Match(condition, DISK, NOON), None, Fraction(1))


def test_a_reason_that_no_policy_names_is_left_to_the_one_for_all_others() -> None:
    condition = since(10, "Disk", "Full")

    remedy = remedy_of(condition)

    assert remedy == Remedy(
        RepairAction.REPLACE, Match(condition, FALLBACK, NOON), None, Fraction(0)
    )


def test_a_condition_that_no_policy_names_is_no_fault() -> None:
    assert remedy_of(since(99, "Disk", status="False"), since(99, "Noise")) is None


def test_a_policy_that_waits_keeps_the_one_for_all_others_off() -> None:
    assert remedy_of(since(20, "Disk", "IOError")) is None


def test_the_hardest_action_counts_and_the_longest_wait() -> None:
    disk, slow = since(180, "Disk", "IOError"), since(45, "Slow")

    remedy = remedy_of(slow, disk)

    assert remedy is not None
    assert (remedy.action, remedy.match.condition) == (RepairAction.REPLACE, disk)
    assert remedy.score == Fraction(6)


def test_of_equal_actions_the_highest_priority_is_named() -> None:
    disk, slow = since(180, "Disk", "IOError"), since(45, "Slow")
    policies = (FALLBACK, DISK, replace(SLOW, action=RepairAction.REPLACE))

    remedy = remedy_of(disk, slow, policies=policies)

    assert remedy is not None
    assert remedy.match.condition == slow
    assert remedy.score == Fraction(6)


def test_the_shortest_grace_period_counts_whoever_asks_for_it() -> None:
    policies = (
        FALLBACK,
        replace(DISK, grace_period=15 * MINUTE),
        replace(SLOW, grace_period=5 * MINUTE),
    )

    remedy = remedy_of(since(60, "Disk", "IOError"), since(60, "Slow"), policies=policies)

    assert remedy is not None
    assert (remedy.action, remedy.grace_period) == (RepairAction.REPLACE, 5 * MINUTE)


@pytest.mark.parametrize(
    ("made", "node"),
    [
        (claim(), sick(since(60, "Slow"), created=NOON - 20 * MINUTE)),
        (claim(since(20, "Rebooting", status="False")), sick(since(60, "Slow"))),
    ],
    ids=["the node came later", "it was rebooted since"],
)
def test_patience_begins_anew_with_the_node(made: ClaimRecord, node: NodeRecord) -> None:
    assert find_remedy(made, node, POLICIES, NOON) is None
    assert find_remedy(made, node, POLICIES, NOON + 10 * MINUTE) is not None


def test_a_node_is_unhealthy_at_once_and_for_any_reason() -> None:
    assert is_unhealthy(sick(since(0, "Disk", "Full")), POLICIES)
    assert not is_unhealthy(sick(since(0, "Disk", status="Unknown")), POLICIES)


def test_the_policies_of_kwok_are_valid() -> None:
    assert find_policy_faults(REPAIR_POLICIES) == ()


def test_all_that_is_wrong_with_policies_is_told_at_once() -> None:
    policies = (
        RepairPolicy("", "True", MINUTE, "a"),
        RepairPolicy("A", "Maybe", -MINUTE, "("),
        RepairPolicy("B", "True", MINUTE, "b", priority=101),
        RepairPolicy("C", "True", MINUTE, "c", grace_period=-MINUTE),
    )

    assert find_policy_faults(policies) == (
        "a policy names no condition",
        "A=Maybe: a status is True, False or Unknown",
        "A=Maybe: durations are not negative",
        "A=Maybe: `(` is no regular expression: missing ), unterminated subpattern at position 0",
        "B=True: priority 101 is not between 0 and 100",
        "C=True: durations are not negative",
        "0 policies apply to any reason; it must be exactly one",
    )


def test_the_policy_for_all_other_reasons_replaces() -> None:
    assert find_policy_faults([replace(FALLBACK, action=RepairAction.REBOOT)]) == (
        "the policy that applies to any reason must replace the node",
    )
