from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Count, Remark, joined, listed
from karpy.core.lifecycle.registration import HEARING_TIME, ClaimInputs, GatePolicy, advance, gate
from karpy.model.conditions import Conditions
from karpy.model.constraints import Taint
from karpy.model.records import NodeRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import UNREGISTERED, claim, condition_of, node

MINUTE = timedelta(minutes=1)
LABELS = {"karpenter.sh/registered": "true"}
GATE = gate(NOON - MINUTE)


def test_a_claim_without_a_node_waits_for_one_until_its_time_is_over() -> None:
    changes = advance(claim(age=5 * MINUTE), ClaimInputs(), NOON)

    assert condition_of(changes.claim, "Registered")[1] == "NodeNotFound"
    assert condition_of(changes.claim, "Initialized")[1] == "AwaitingReconciliation"
    assert changes.requeue_after == 10 * MINUTE


def test_a_ready_node_registers_and_initializes_in_one_go() -> None:
    changes = advance(claim(), ClaimInputs((node(taints=(GATE,), labels=LABELS),)), NOON)

    assert condition_of(changes.claim, "Ready") == ("True", "Ready", "")
    assert changes.node is not None
    assert changes.node.meta.labels["karpenter.sh/registered"] == "true"
    assert changes.node.meta.labels["karpenter.sh/initialized"] == "true"
    assert [each.event for each in changes.remarks] == [
        "registered nodeclaim",
        "initialized nodeclaim",
    ]
    assert changes.has_registered is True
    assert changes.requeue_after is None


def young(age: float, *taints: Taint, is_ready: bool) -> NodeRecord:
    made = node(taints=(UNREGISTERED, *taints), is_ready=is_ready)
    return replace(made, meta=replace(made.meta, created=NOON - timedelta(seconds=age)))


NOT_READY = Taint("node.kubernetes.io/not-ready", "NoSchedule")


@pytest.mark.parametrize(
    ("given", "pause"),
    [
        (young(4, NOT_READY, is_ready=False), timedelta(seconds=6)),
        (young(4, NOT_READY, is_ready=True), timedelta(seconds=6)),
        (young(4, is_ready=True), HEARING_TIME),
    ],
    ids=["boots", "tainted", "gated"],
)
def test_a_node_that_will_be_ready_in_a_moment_registers_without_a_word(
    given: NodeRecord, pause: timedelta
) -> None:
    made = claim()

    changes = advance(made, ClaimInputs((given,)), NOON)

    assert changes.node is not None
    assert changes.node.meta.labels["karpenter.sh/registered"] == "true"
    assert UNREGISTERED not in changes.node.taints
    assert changes.claim == made
    assert (changes.counts, changes.remarks, changes.has_registered) == ((), (), None)
    assert changes.requeue_after == pause


def test_a_claim_keeps_silent_for_longer_on_a_node_that_is_held() -> None:
    made, late = claim(), young(12, is_ready=True)

    assert advance(made, ClaimInputs((late,), door=GatePolicy.HELD), NOON).claim == made
    assert advance(made, ClaimInputs((late,)), NOON).claim != made


@pytest.mark.parametrize("said", [{}, {"Registered": MINUTE}], ids=["yet", "said"])
def test_a_registered_node_opens(said: dict[str, timedelta]) -> None:
    made = node(taints=(GATE,), labels=LABELS)

    held = advance(claim(said=said), ClaimInputs((made,), door=GatePolicy.HELD), NOON)
    free = advance(claim(said=said), ClaimInputs((made,)), NOON)

    assert GATE in (held.node or made).taints
    assert (free.node or made).taints == ()


def test_a_node_that_takes_longer_is_spoken_of() -> None:
    changes = advance(claim(), ClaimInputs((young(10, is_ready=False),)), NOON)

    assert condition_of(changes.claim, "Registered")[0] == "True"
    assert condition_of(changes.claim, "Initialized")[1] == "NodeNotReady"
    assert changes.has_registered is True


def test_that_a_new_node_is_what_was_promised_is_said_with_the_rest() -> None:
    changes = advance(claim(), ClaimInputs((node(taints=(GATE,), labels=LABELS),)), NOON)

    assert condition_of(changes.claim, "ConsistentStateFound")[0] == "True"


def test_startup_taints_hold_up_a_node_that_gets_them_now() -> None:
    made = claim(startup_taints=(Taint("cilium", "NoExecute"),))

    changes = advance(made, ClaimInputs((node(taints=(UNREGISTERED,)),)), NOON)

    assert condition_of(changes.claim, "Registered")[0] == "True"
    assert condition_of(changes.claim, "Initialized")[1] == "StartupTaintsExist"


def test_a_claim_that_is_too_late_says_why_and_goes() -> None:
    changes = advance(claim(age=15 * MINUTE), ClaimInputs(), NOON)

    assert changes.deletes_claim
    assert changes.has_registered is False
    assert condition_of(changes.claim, "Registered")[1] == "NodeNotFound"


def test_a_claim_of_which_nothing_was_said_begins_with_its_creation() -> None:
    bare = claim(provider_id="", age=MINUTE)
    bare = replace(bare, conditions=Conditions((), bare.conditions.dependents))

    changes = advance(bare, ClaimInputs(), NOON)

    assert condition_of(changes.claim, "Launched")[1] == "AwaitingReconciliation"
    assert changes.requeue_after == 4 * MINUTE


def test_a_claim_that_is_done_writes_nothing() -> None:
    said = {"Registered": MINUTE, "Initialized": MINUTE}

    assert advance(claim(said=said), ClaimInputs((node(),)), NOON) == Changes(claim(said=said))


def test_looks_at_the_same_objects_are_put_together() -> None:
    first = Changes(claim(), counts=(Count("a"),), requeue_after=2 * MINUTE, has_registered=True)
    then = Changes(node=node(), remarks=(Remark("b"),), requeue_after=MINUTE, deletes_claim=True)

    assert joined(first, then) == Changes(
        claim(),
        node(),
        deletes_claim=True,
        counts=(Count("a"),),
        remarks=(Remark("b"),),
        requeue_after=MINUTE,
        has_registered=True,
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), ""),
        (("a", "b"), "a, b"),
        (tuple("abcde"), "a, b, c, d, e"),
        (tuple("abcdefg"), "a, b, c, d, e and 2 other(s)"),
    ],
)
def test_long_lists_are_cut(names: tuple[str, ...], expected: str) -> None:
    assert listed(names) == expected
