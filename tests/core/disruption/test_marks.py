import pytest
from msgspec.structs import replace

from karpy.core.disruption.marks import find_strays, marked, unmarked
from karpy.core.lifecycle.changes import Changes
from karpy.core.lifecycle.registration import gate
from karpy.model.conditions import TRUE, Condition
from karpy.model.constraints import Taint
from karpy.model.disruption import DisruptionReason
from karpy.model.surroundings import NodeState
from tests.builders.pods import NOON
from tests.core.disruption.scenes import DISRUPTED, around, state

REASON = DisruptionReason.EMPTY
OWN = Taint("example.com/own", "NoExecute")
STRAY = state("a", taints=[OWN, DISRUPTED], said=["DisruptionReason"])
CLEAN = state("a", taints=[OWN], said=[])


def test_a_marked_node_takes_no_new_pods_and_says_why() -> None:
    outcome = marked(CLEAN, REASON, NOON)

    assert outcome is not None
    assert outcome.node == state("a", taints=[OWN, DISRUPTED]).node
    assert outcome.claim is not None
    assert outcome.claim.conditions.get("DisruptionReason") == Condition(
        "DisruptionReason", TRUE, NOON, "Empty", "Empty"
    )


def test_a_marked_node_is_not_marked_again() -> None:
    once = marked(CLEAN, REASON, NOON)
    assert once is not None

    assert marked(replace(CLEAN, claim=once.claim, node=once.node), REASON, NOON) is None


def test_a_taint_of_the_same_key_and_effect_will_do() -> None:
    tainted = state("a", taints=[replace(DISRUPTED, value="x")], said=[])

    outcome = marked(tainted, REASON, NOON)

    assert outcome is not None
    assert outcome.node is None


def test_the_gate_of_a_node_that_is_about_to_open_is_no_mark() -> None:
    gated = state("a", taints=[gate(NOON)])
    told = state("a", taints=[gate(NOON)], said=[])

    outcome = marked(told, REASON, NOON)

    assert unmarked(gated) is None
    assert outcome is not None
    assert outcome.node is not None
    assert outcome.node.taints == (DISRUPTED,)


def test_a_node_that_is_going_needs_no_mark() -> None:
    assert marked(state("a", deleting=True), REASON, NOON) is None


def test_marks_are_taken_back() -> None:
    assert unmarked(STRAY) == Changes(claim=CLEAN.claim, node=CLEAN.node)


def test_a_node_without_marks_stays_as_it_is() -> None:
    assert unmarked(CLEAN) is None


def test_marks_that_no_rollout_stands_behind_are_found() -> None:
    strays = list(find_strays(around(STRAY, state("b"))))

    assert strays == [(STRAY, Changes(claim=CLEAN.claim, node=CLEAN.node))]


@pytest.mark.parametrize(
    "node",
    [
        replace(STRAY, is_marked=True),
        state("a", taints=[DISRUPTED], deleting=True),
        state("a", taints=[DISRUPTED], said=["Rebooting"]),
        NodeState(node=STRAY.node),
        NodeState(claim=STRAY.claim),
    ],
    ids=["marked", "deleting", "rebooting", "not ours", "no node"],
)
def test_marks_of_nodes_that_are_on_their_way_are_left_alone(node: NodeState) -> None:
    assert list(find_strays(around(node))) == []


def test_marks_of_a_rollout_are_left_alone() -> None:
    assert list(find_strays(around(STRAY, busy=frozenset({"a-claim"})))) == []
