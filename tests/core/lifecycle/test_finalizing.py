from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.finalizing import Finalizing, claim_machine_answered, finalize
from karpy.core.lifecycle.outcomes import Count, Outcome, Remark
from karpy.model.kinds import NODE_CLAIM
from karpy.model.notices import Notice, Subject
from karpy.model.records import ClaimRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import claim, condition_of, node

MINUTE = timedelta(minutes=1)
TIME = "karpenter.sh/nodeclaim-termination-timestamp"
RELEASED = Outcome(
    counts=(
        Count("nodeclaims_termination_duration_seconds", {"nodepool": "web"}, 60.0),
        Count(
            "nodeclaims_terminated_total",
            {"nodepool": "web", "capacity_type": "spot", "zone": "zone-a"},
        ),
    ),
    remarks=(Remark("deleted nodeclaim", {"NodeClaim": "web-1"}),),
)


def going(**said: timedelta) -> ClaimRecord:
    return claim(deleted=MINUTE, said=said)


def test_a_claim_takes_its_nodes_along_and_waits_for_them() -> None:
    nodes = (node(), node(name="node-2", deleted=MINUTE))

    finalizing = finalize(going(Registered=MINUTE), nodes, NOON)

    assert finalizing == Finalizing(Outcome(), doomed=("node-1",))


def test_a_claim_without_nodes_ends_its_machine() -> None:
    assert finalize(going(Registered=MINUTE), (), NOON) == Finalizing(Outcome(), is_cleared=True)


def test_a_claim_whose_node_cannot_be_read_keeps_its_machine() -> None:
    finalizing = finalize(going(Registered=MINUTE), (), NOON, is_blind=True)

    assert finalizing == Finalizing(Outcome(look_again=timedelta(seconds=5)))


def test_a_claim_that_never_registered_leaves_its_node_alone() -> None:
    assert finalize(going(), (node(),), NOON) == Finalizing(Outcome(), is_cleared=True)


def test_a_node_that_says_it_has_joined_is_drained_whatever_its_claim_says() -> None:
    """Pods may be on it: the claim was deleted before it could say that its node is registered."""
    joined = node(labels={"karpenter.sh/registered": "true"})

    assert finalize(going(), (joined,), NOON) == Finalizing(Outcome(), doomed=("node-1",))


def test_a_claim_that_was_never_launched_goes_at_once() -> None:
    bare = claim(deleted=MINUTE, provider_id="")

    finalizing = finalize(bare, (), NOON)

    released = claim(deleted=MINUTE, provider_id="", finalizers=())
    assert finalizing == Finalizing(replace(RELEASED, claim=released))


def test_a_grace_period_sets_the_end_of_all_pods() -> None:
    hurried = claim(deleted=MINUTE, grace_period=5 * MINUTE)

    outcome = finalize(hurried, (), NOON).outcome

    moment = "2026-03-02T12:04:00Z"
    assert outcome == Outcome(
        claim(deleted=MINUTE, grace_period=5 * MINUTE, annotations={TIME: moment}),
        notices=(
            Notice(
                Subject(NODE_CLAIM, "web-1", uid="uid-web-1"),
                "TerminationGracePeriodExpiring",
                f"All pods will be deleted by {moment}",
                is_warning=True,
                same_as=("web-1",),
            ),
        ),
        remarks=(Remark("annotated nodeclaim", {TIME: moment}),),
    )


def test_an_end_that_is_written_stays() -> None:
    known = claim(deleted=MINUTE, grace_period=5 * MINUTE, annotations={TIME: "x"})

    assert finalize(known, (), NOON).outcome == Outcome()


@pytest.mark.parametrize(
    "done",
    [claim(), claim(deleted=MINUTE, finalizers=())],
    ids=["stays", "let go"],
)
def test_a_claim_that_stays_or_is_let_go_is_left_alone(done: ClaimRecord) -> None:
    assert finalize(done, (), NOON) == Finalizing(Outcome())


def test_a_claim_waits_for_the_end_of_its_machine() -> None:
    outcome = claim_machine_answered(going(), NOON, is_gone=False)

    expected = ("True", "InstanceTerminating", "")
    assert condition_of(outcome.claim, "InstanceTerminating") == expected
    assert replace(outcome, claim=None) == Outcome(look_again=timedelta(seconds=5))


def test_a_claim_goes_when_its_machine_is_gone() -> None:
    asked = going(InstanceTerminating=timedelta(seconds=30))

    outcome = claim_machine_answered(asked, NOON, is_gone=True)

    took = Count("nodeclaims_instance_termination_duration_seconds", {"nodepool": "web"}, 30.0)
    assert outcome.claim is not None
    assert outcome.claim.meta.finalizers == ()
    expected = replace(RELEASED, claim=outcome.claim, counts=(took, *RELEASED.counts))
    assert outcome == expected
