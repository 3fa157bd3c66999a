from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.core.lifecycle.drain import DrainingNode
from karpy.core.lifecycle.termination import (
    ClaimTermination,
    after_claim_machine_deletion,
    after_machine_deletion,
    claim_of,
    is_terminating,
    may_lack_machine,
    release_node,
    tainted,
    terminate_claim,
    terminate_node,
    termination_time,
)
from karpy.model.constraints import Taint
from karpy.model.kinds import NODE_CLAIM
from karpy.model.notices import Notice, Subject
from karpy.model.records import ClaimRecord, NodeRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import DISRUPTED, bound, claim, condition_of, node, texts_of

MINUTE = timedelta(minutes=1)
TIME = "karpenter.sh/nodeclaim-termination-timestamp"
BALANCERS = {"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"}
RELEASED = Changes(
    counts=(
        Count("nodeclaims_termination_duration_seconds", {"nodepool": "web"}, 60.0),
        Count(
            "nodeclaims_terminated_total",
            {"nodepool": "web", "capacity_type": "spot", "zone": "zone-a"},
        ),
    ),
    remarks=(Remark("deleted nodeclaim", {"NodeClaim": "web-1"}),),
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (node(), False),
        (node(deleted=MINUTE), True),
        (node(deleted=MINUTE, finalizers=("other",)), False),
    ],
)
def test_a_deleting_node_with_the_finalizer_is_terminating(
    given: NodeRecord, *, expected: bool
) -> None:
    assert is_terminating(given) is expected


def test_several_claims_of_a_node_are_none() -> None:
    assert claim_of([claim()]) == claim()
    assert claim_of([]) is None
    assert claim_of([claim(), claim()]) is None


def test_a_node_that_is_not_ready_may_lack_its_machine() -> None:
    assert may_lack_machine(node(is_ready=False))
    assert not may_lack_machine(node())


@pytest.mark.parametrize(
    "taints",
    [(), (Taint("karpenter.sh/disrupted", "NoExecute"),), (DISRUPTED,)],
    ids=["none", "another effect", "there already"],
)
def test_a_terminating_node_is_tainted_once(taints: tuple[Taint, ...]) -> None:
    assert tainted(node(taints=taints)) == node(taints=(DISRUPTED,), labels=BALANCERS)


def test_a_terminating_node_has_its_claim_deleted() -> None:
    departure = terminate_node(
        DrainingNode(node(deleted=MINUTE), claim(), (bound("web"),)), (), NOON
    )

    changes = departure.changes
    assert changes.deletes_claim
    assert changes.node == node(deleted=MINUTE, taints=(DISRUPTED,), labels=BALANCERS)
    assert changes.remarks == (
        Remark(
            "tainted node",
            {
                "Node": "node-1",
                "taint.Key": "karpenter.sh/disrupted",
                "taint.Effect": "NoSchedule",
            },
        ),
    )
    assert [each.name for each in departure.evictions] == ["web"]
    assert not departure.ends_machine


def test_a_tainted_node_is_not_tainted_again() -> None:
    known = node(deleted=MINUTE, taints=(DISRUPTED,), labels=BALANCERS)

    changes = terminate_node(DrainingNode(known, claim(deleted=MINUTE)), (), NOON).changes

    assert (changes.node, changes.remarks, changes.deletes_claim) == (known, (), False)


def test_the_deadline_of_a_claim_is_that_of_its_pods() -> None:
    moment = "2026-03-02T12:00:10Z"
    going = claim(deleted=MINUTE, annotations={TIME: moment})

    departure = terminate_node(DrainingNode(node(deleted=MINUTE), going, (bound("web"),)), (), NOON)

    assert texts_of(departure.changes.notices)[0] == (
        "Node",
        "TerminationGracePeriodExpiring",
        f"All pods will be deleted by {moment}",
    )
    assert [each.deadline for each in departure.evictions] == [NOON + timedelta(seconds=10)]


def test_an_unreadable_deadline_is_none() -> None:
    assert termination_time(claim(annotations={TIME: "soon"})) is None
    assert termination_time(claim()) is None
    assert termination_time(None) is None


def test_an_empty_node_waits_for_its_volumes() -> None:
    drained = claim(said={"Drained": MINUTE})

    departure = terminate_node(DrainingNode(node(deleted=MINUTE), drained), ["va-1"], NOON)

    assert condition_of(departure.changes.claim, "VolumesDetached")[0] == "Unknown"
    assert not departure.ends_machine


def test_an_empty_node_without_volumes_has_its_machine_terminated() -> None:
    drained = claim(said={"Drained": MINUTE})

    departure = terminate_node(DrainingNode(node(deleted=MINUTE), drained), (), NOON)

    assert departure.ends_machine
    assert condition_of(departure.changes.claim, "Drained")[0] == "True"
    assert condition_of(departure.changes.claim, "VolumesDetached")[0] == "True"
    assert departure.changes.requeue_after is None


def test_an_empty_node_without_a_claim_has_its_machine_terminated() -> None:
    departure = terminate_node(DrainingNode(node(deleted=MINUTE)), (), NOON)

    assert departure.ends_machine
    assert departure.changes.claim is None


def test_a_node_keeps_its_finalizer_until_its_machine_is_gone() -> None:
    changes = after_machine_deletion(node(deleted=MINUTE), claim(), NOON, is_gone=False)

    expected = ("True", "InstanceTerminating", "")
    assert condition_of(changes.claim, "InstanceTerminating") == expected
    assert replace(changes, claim=None) == Changes(requeue_after=timedelta(seconds=5))


def test_a_node_loses_its_finalizer_when_its_machine_is_gone() -> None:
    changes = after_machine_deletion(node(deleted=MINUTE), claim(), NOON, is_gone=True)

    pool = {"nodepool": "web"}
    assert condition_of(changes.claim, "InstanceTerminating")[0] == "True"
    assert replace(changes, claim=None) == Changes(
        node=node(deleted=MINUTE, finalizers=()),
        counts=(
            Count("nodes_terminated_total", {**pool, "zone": "zone-a"}),
            Count("nodes_termination_duration_seconds", pool, 60.0),
            Count("nodes_lifetime_duration_seconds", pool, 3600.0),
        ),
        remarks=(Remark("deleted node", {"Node": "node-1"}),),
    )


def test_a_node_without_a_claim_has_no_machine_to_wait_for() -> None:
    given = node(deleted=MINUTE)

    assert after_machine_deletion(given, None, NOON, is_gone=False) == release_node(given, NOON)


def going(**said: timedelta) -> ClaimRecord:
    return claim(deleted=MINUTE, said=said)


def test_a_deleting_claim_deletes_its_nodes_and_waits_for_them() -> None:
    nodes = (node(), node(name="node-2", deleted=MINUTE))

    finalizing = terminate_claim(going(Registered=MINUTE), nodes, NOON)

    assert finalizing == ClaimTermination(Changes(), nodes_to_delete=("node-1",))


def test_a_deleting_claim_without_nodes_terminates_its_machine() -> None:
    assert terminate_claim(going(Registered=MINUTE), (), NOON) == ClaimTermination(
        Changes(), ends_machine=True
    )


def test_a_claim_whose_node_cannot_be_read_keeps_its_machine() -> None:
    finalizing = terminate_claim(going(Registered=MINUTE), (), NOON, is_blind=True)

    assert finalizing == ClaimTermination(Changes(requeue_after=timedelta(seconds=5)))


def test_a_claim_that_never_registered_does_not_delete_its_node() -> None:
    assert terminate_claim(going(), (node(),), NOON) == ClaimTermination(
        Changes(), ends_machine=True
    )


def test_a_node_with_the_registered_label_is_drained_whatever_its_claim_says() -> None:
    """Pods may be on it: the claim was deleted before it could say that its node is registered."""
    joined = node(labels={"karpenter.sh/registered": "true"})

    assert terminate_claim(going(), (joined,), NOON) == ClaimTermination(
        Changes(), nodes_to_delete=("node-1",)
    )


def test_a_claim_that_was_never_launched_loses_its_finalizer_at_once() -> None:
    bare = claim(deleted=MINUTE, provider_id="")

    finalizing = terminate_claim(bare, (), NOON)

    released = claim(deleted=MINUTE, provider_id="", finalizers=())
    assert finalizing == ClaimTermination(replace(RELEASED, claim=released))


def test_a_grace_period_sets_the_deadline_of_all_pods() -> None:
    with_termination_deadline = claim(deleted=MINUTE, grace_period=5 * MINUTE)

    changes = terminate_claim(with_termination_deadline, (), NOON).changes

    moment = "2026-03-02T12:04:00Z"
    assert changes == Changes(
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


def test_a_deadline_that_is_written_stays() -> None:
    known = claim(deleted=MINUTE, grace_period=5 * MINUTE, annotations={TIME: "x"})

    assert terminate_claim(known, (), NOON).changes == Changes()


@pytest.mark.parametrize(
    "done",
    [claim(), claim(deleted=MINUTE, finalizers=())],
    ids=["stays", "let go"],
)
def test_a_claim_not_deleting_or_without_finalizer_is_left_alone(done: ClaimRecord) -> None:
    assert terminate_claim(done, (), NOON) == ClaimTermination(Changes())


def test_a_claim_keeps_its_finalizer_until_its_machine_is_gone() -> None:
    changes = after_claim_machine_deletion(going(), NOON, is_gone=False)

    expected = ("True", "InstanceTerminating", "")
    assert condition_of(changes.claim, "InstanceTerminating") == expected
    assert replace(changes, claim=None) == Changes(requeue_after=timedelta(seconds=5))


def test_a_claim_loses_its_finalizer_when_its_machine_is_gone() -> None:
    asked = going(InstanceTerminating=timedelta(seconds=30))

    changes = after_claim_machine_deletion(asked, NOON, is_gone=True)

    took = Count("nodeclaims_instance_termination_duration_seconds", {"nodepool": "web"}, 30.0)
    assert changes.claim is not None
    assert changes.claim.meta.finalizers == ()
    expected = replace(RELEASED, claim=changes.claim, counts=(took, *RELEASED.counts))
    assert changes == expected
