import pytest
from msgspec.structs import replace

from karpy.core.disruption.taints import find_orphaned_taints, tainted, untainted
from karpy.core.lifecycle.changes import Changes
from karpy.core.lifecycle.registration import gate
from karpy.model.conditions import TRUE, Condition
from karpy.model.constraints import Taint
from karpy.model.nodes import Node, join_node
from karpy.model.pools import DisruptionReason
from tests.builders.pods import NOON
from tests.core.disruption.scenes import DISRUPTED, cluster, node, only_claim, only_node

REASON = DisruptionReason.EMPTY
OWN = Taint("example.com/own", "NoExecute")
STRAY = node("a", taints=[OWN, DISRUPTED], true_conditions=["DisruptionReason"])
CLEAN = node("a", taints=[OWN], true_conditions=[])


def written(of: Node, changes: Changes | None) -> Node:
    """Return a node as it is after changes to it."""
    assert changes is not None
    return join_node(changes.node or of.node_record, changes.claim or of.claim_record)


def test_a_tainted_node_takes_no_new_pods_and_its_claim_says_why() -> None:
    changes = tainted(CLEAN, REASON, NOON)

    assert changes is not None
    assert changes.node == node("a", taints=[OWN, DISRUPTED]).node_record
    assert changes.claim is not None
    assert changes.claim.conditions.get("DisruptionReason") == Condition(
        "DisruptionReason", TRUE, NOON, "Empty", "Empty"
    )


def test_a_tainted_node_is_not_tainted_again() -> None:
    once = written(CLEAN, tainted(CLEAN, REASON, NOON))

    assert tainted(once, REASON, NOON) is None


def test_of_taint_and_condition_what_is_missing_is_written() -> None:
    changes = tainted(node("a", taints=[DISRUPTED], true_conditions=[]), REASON, NOON)

    assert changes is not None
    assert (changes.node is None, changes.claim is None) == (True, False)


def test_a_taint_of_the_same_key_and_effect_is_enough() -> None:
    own_value = node("a", taints=[replace(DISRUPTED, value="x")], true_conditions=[])

    changes = tainted(own_value, REASON, NOON)

    assert changes is not None
    assert changes.node is None


def test_the_gate_of_a_new_node_is_no_sign_of_a_disruption() -> None:
    changes = tainted(node("a", taints=[gate(NOON)], true_conditions=[]), REASON, NOON)

    assert untainted(node("a", taints=[gate(NOON)])) is None
    assert changes is not None
    assert changes.node is not None
    assert changes.node.taints == (DISRUPTED,)


def test_a_node_that_is_being_deleted_is_not_tainted() -> None:
    assert tainted(node("a", deleting=True), REASON, NOON) is None


def test_taint_and_condition_are_removed() -> None:
    assert untainted(STRAY) == Changes(claim=CLEAN.claim_record, node=CLEAN.node_record)


def test_a_node_without_taint_and_condition_stays_as_it_is() -> None:
    assert untainted(CLEAN) is None


def test_a_node_that_is_being_deleted_keeps_its_taint_and_its_reason() -> None:
    """The drain needs the taint, and the events on evicted pods name the reason."""
    assert (
        untainted(
            node("a", deleting=True, taints=[DISRUPTED], true_conditions=["DisruptionReason"])
        )
        is None
    )


def test_taints_that_no_command_owns_are_found() -> None:
    strays = list(find_orphaned_taints(cluster(STRAY, node("b"))))

    assert strays == [(STRAY, Changes(claim=CLEAN.claim_record, node=CLEAN.node_record))]


def test_a_node_keeps_the_reason_of_its_reboot_until_it_is_initialized() -> None:
    booting = node("a", initialized=False, taints=[DISRUPTED], true_conditions=["DisruptionReason"])

    ((_, changes),) = find_orphaned_taints(cluster(booting))

    assert changes.claim is None
    assert changes.node is not None
    assert changes.node.taints == ()
    assert list(find_orphaned_taints(cluster(written(booting, changes)))) == []


@pytest.mark.parametrize(
    "kept",
    [
        node("a", taints=[DISRUPTED], replaced=True),
        node("a", taints=[DISRUPTED], deleting=True),
        node("a", taints=[DISRUPTED], true_conditions=["Rebooting"]),
        node("a", taints=[DISRUPTED], foreign=True),
        only_node("a", taints=[DISRUPTED]),
        only_claim("a", true_conditions=["DisruptionReason"]),
    ],
    ids=["of a command", "deleting", "rebooting", "foreign", "unmanaged", "no node"],
)
def test_taints_that_belong_to_something_else_are_left_alone(kept: Node) -> None:
    assert list(find_orphaned_taints(cluster(kept))) == []


def test_taints_of_a_command_are_left_alone() -> None:
    assert list(find_orphaned_taints(cluster(STRAY, in_command=frozenset({"a-claim"})))) == []
