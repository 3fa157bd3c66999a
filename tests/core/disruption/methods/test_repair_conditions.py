from datetime import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.core.disruption.methods.repair import (
    DueRepair,
    Match,
    find_policy_faults,
    find_repair,
    is_unhealthy,
)
from karpy.model.conditions import Condition
from karpy.model.nodes import RepairAction, RepairPolicy
from karpy.model.records import ClaimRecord, NodeRecord
from tests.builders.pods import NOON
from tests.core.disruption.scenes import MINUTE, claim_record, node_record

FALLBACK = RepairPolicy("Ready", "False", 10 * MINUTE)
DISK = RepairPolicy("Disk", "True", 30 * MINUTE, "^IO", priority=10)
SLOW = RepairPolicy("Slow", "True", 30 * MINUTE, ".*", RepairAction.REBOOT, priority=90)
POLICIES = (FALLBACK, DISK, SLOW)


def since(minutes: int, type_: str, reason: str = "", status: str = "True") -> Condition:
    return Condition(type_, status, NOON - minutes * MINUTE, reason)


def broken(*conditions: Condition, created: datetime | None = None) -> NodeRecord:
    well = node_record("n1")
    return replace(well, conditions=conditions, meta=replace(well.meta, created=created))


def claim(*conditions: Condition) -> ClaimRecord:
    made = claim_record("n1")
    return replace(made, conditions=replace(made.conditions, items=conditions))


def repair_of(
    *conditions: Condition, policies: tuple[RepairPolicy, ...] = POLICIES
) -> DueRepair | None:
    return find_repair(claim(), broken(*conditions), policies, NOON)


def test_a_fault_is_tolerated_for_a_while() -> None:
    assert repair_of(since(29, "Disk", "IOError")) is None


def test_a_fault_is_repaired_by_its_policy() -> None:
    condition = since(30, "Disk", "IOError")

    assert repair_of(condition) == DueRepair(
        RepairAction.REPLACE, Match(condition, DISK, NOON), None, Fraction(1)
    )


def test_a_reason_that_no_policy_names_is_left_to_the_fallback() -> None:
    condition = since(10, "Disk", "Full")

    assert repair_of(condition) == DueRepair(
        RepairAction.REPLACE, Match(condition, FALLBACK, NOON), None, Fraction(0)
    )


def test_a_condition_that_no_policy_names_is_no_fault() -> None:
    assert repair_of(since(99, "Disk", status="False"), since(99, "Noise")) is None


def test_a_policy_whose_toleration_lasts_keeps_the_fallback_off() -> None:
    assert repair_of(since(20, "Disk", "IOError")) is None


def test_a_new_reason_alone_does_not_begin_the_toleration_anew() -> None:
    condition = since(30, "Disk", "IOAgain")

    found = repair_of(condition)

    assert found is not None
    assert found.match.due == NOON


def test_the_most_disruptive_action_counts_and_the_longest_wait() -> None:
    disk, slow = since(180, "Disk", "IOError"), since(45, "Slow")

    found = repair_of(slow, disk)

    assert found is not None
    assert (found.action, found.match.condition) == (RepairAction.REPLACE, disk)
    assert found.score == Fraction(6)


def test_of_equal_actions_the_highest_priority_is_named() -> None:
    disk, slow = since(180, "Disk", "IOError"), since(45, "Slow")
    policies = (FALLBACK, DISK, replace(SLOW, action=RepairAction.REPLACE))

    found = repair_of(disk, slow, policies=policies)

    assert found is not None
    assert found.match.condition == slow
    assert found.score == Fraction(6)


@pytest.mark.parametrize(
    ("conditions", "named"),
    [
        ([since(40, "A"), since(60, "B")], "B"),
        ([since(60, "B"), since(60, "A")], "A"),
    ],
    ids=["the earlier", "the lower name"],
)
def test_of_equal_policies_the_earlier_and_then_the_lower_type_is_named(
    conditions: list[Condition], named: str
) -> None:
    alike = [RepairPolicy(each, "True", MINUTE, ".*") for each in "AB"]

    found = repair_of(*conditions, policies=(FALLBACK, *alike))

    assert found is not None
    assert found.match.condition.type == named


def test_the_shortest_grace_period_counts_whatever_its_action_is() -> None:
    policies = (
        FALLBACK,
        replace(DISK, grace_period=15 * MINUTE),
        replace(SLOW, grace_period=5 * MINUTE),
    )

    found = repair_of(since(60, "Disk", "IOError"), since(60, "Slow"), policies=policies)

    assert found is not None
    assert (found.action, found.grace_period) == (RepairAction.REPLACE, 5 * MINUTE)


@pytest.mark.parametrize(
    ("made", "node"),
    [
        (claim(), broken(since(60, "Slow"), created=NOON - 20 * MINUTE)),
        (claim(since(20, "Rebooting", status="False")), broken(since(60, "Slow"))),
    ],
    ids=["the node came later", "it was rebooted since"],
)
def test_the_toleration_begins_anew_with_the_node(made: ClaimRecord, node: NodeRecord) -> None:
    assert find_repair(made, node, POLICIES, NOON) is None
    assert find_repair(made, node, POLICIES, NOON + 10 * MINUTE) is not None


def test_a_reboot_that_is_not_over_begins_no_toleration() -> None:
    rebooting = claim(since(1, "Rebooting"))

    assert find_repair(rebooting, broken(since(30, "Slow")), POLICIES, NOON) is not None


@given(st.integers(0, 600), st.integers(0, 600))
def test_a_repair_that_is_due_stays_due_and_gets_more_urgent(age: int, wait: int) -> None:
    node = broken(since(age, "Disk", "IOError"), since(age, "Slow"))

    first = find_repair(claim(), node, POLICIES, NOON)
    then = find_repair(claim(), node, POLICIES, NOON + wait * MINUTE)

    assert first is None or (then is not None and then.score >= first.score)


def test_a_node_is_unhealthy_at_once_and_for_any_reason() -> None:
    assert is_unhealthy(broken(since(0, "Disk", "Full")), POLICIES)
    assert not is_unhealthy(broken(since(0, "Disk", status="Unknown")), POLICIES)


def test_the_policies_of_kwok_are_valid() -> None:
    assert find_policy_faults(REPAIR_POLICIES) == ()


def test_no_policy_at_all_is_valid() -> None:
    assert find_policy_faults(()) == ()


def test_all_that_is_wrong_with_policies_is_named_at_once() -> None:
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


def test_the_fallback_replaces_the_node() -> None:
    assert find_policy_faults([replace(FALLBACK, action=RepairAction.REBOOT)]) == (
        "the policy that applies to any reason must replace the node",
    )


def test_there_is_one_fallback() -> None:
    assert find_policy_faults([FALLBACK, replace(FALLBACK, status="Unknown")]) == (
        "2 policies apply to any reason; it must be exactly one",
    )
