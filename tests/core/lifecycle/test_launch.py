from datetime import timedelta

import pytest

from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.core.lifecycle.launch import (
    LaunchedMachine,
    add_finalizer,
    is_to_launch,
    launch_failed,
    launch_succeeded,
    launch_without_capacity,
    launch_without_class,
    shortened,
)
from karpy.model.kinds import NODE_CLAIM, POD
from karpy.model.notices import Notice, Subject
from karpy.model.records import ClaimRecord
from tests.builders.pods import NOON, pod
from tests.core.lifecycle.scenes import claim, condition_of

MACHINE = LaunchedMachine(
    provider_id="kwok://web-1",
    labels={
        "node.kubernetes.io/instance-type": "c-4x",
        "topology.kubernetes.io/zone": "zone-b",
        "team": "cloud",
    },
    annotations={"hash": "new", "more": "x"},
    capacity={"cpu": 4000},
    allocatable={"memory": 2**34, "cpu": 3900},
    image="image-1",
)


def unlaunched() -> ClaimRecord:
    return claim(provider_id="", labels={"team": "shop"}, annotations={"hash": "old"})


def test_a_claim_has_its_finalizer_before_its_machine_is_launched() -> None:
    bare = claim(provider_id="", finalizers=())

    held = add_finalizer(bare).claim

    assert held is not None
    assert not is_to_launch(bare)
    assert held.meta.finalizers == ("karpenter.sh/termination",)
    assert is_to_launch(held)


@pytest.mark.parametrize("done", [claim(), claim(provider_id="", deleted=timedelta())])
def test_a_launched_or_deleting_claim_is_not_launched(done: ClaimRecord) -> None:
    assert not is_to_launch(done)


def test_the_cloud_adds_labels_and_overwrites_annotations() -> None:
    launched = launch_succeeded(unlaunched(), MACHINE, NOON).claim

    assert launched is not None
    assert launched.meta.labels == {
        "karpenter.sh/nodepool": "web",
        "karpenter.sh/capacity-type": "spot",
        "topology.kubernetes.io/zone": "zone-a",
        "node.kubernetes.io/instance-type": "c-4x",
        "team": "shop",
    }
    assert launched.meta.annotations == {"hash": "new", "more": "x"}


def test_a_launched_claim_has_provider_id_and_capacity() -> None:
    changes = launch_succeeded(unlaunched(), MACHINE, NOON)

    launched = changes.claim
    assert launched is not None
    assert (launched.provider_id, launched.image_id) == ("kwok://web-1", "image-1")
    assert (launched.capacity, launched.allocatable) == (MACHINE.capacity, MACHINE.allocatable)
    assert condition_of(launched, "Launched") == ("True", "Launched", "")
    assert changes.remarks == (
        Remark(
            "launched nodeclaim",
            {
                "NodeClaim": "web-1",
                "provider-id": "kwok://web-1",
                "instance-type": "c-4x",
                "zone": "zone-a",
                "capacity-type": "spot",
                "allocatable": "cpu: 3900m, memory: 16Gi",
            },
        ),
    )


def test_a_claim_without_capacity_is_deleted_with_events_on_its_pending_pods() -> None:
    pods = [
        pod("waits"),
        pod("runs", on="node-1"),
        pod("goes", deleting=True),
        pod("ended", phase="Failed"),
    ]

    changes = launch_without_capacity(unlaunched(), "all options are sold out", pods)

    labels = {
        "reason": "insufficient_capacity",
        "nodepool": "web",
        "capacity_type": "spot",
        "consolidation_policy": "",
        "termination_mode": "graceful",
    }
    assert changes == Changes(
        deletes_claim=True,
        notices=(
            Notice(
                Subject(NODE_CLAIM, "web-1", uid="uid-web-1"),
                "InsufficientCapacityError",
                "NodeClaim web-1 event: all options are sold out",
                is_warning=True,
                same_as=("uid-web-1",),
            ),
            Notice(
                Subject(POD, "waits", "default", "uid-default-waits"),
                "InsufficientCapacityError",
                "NodeClaim web-1 nominated for this pod failed to launch: all options are sold out",
                is_warning=True,
                same_as=("uid-default-waits",),
            ),
        ),
        counts=(Count("nodeclaims_disrupted_total", labels),),
        remarks=(
            Remark("failed launching nodeclaim", {"error": "all options are sold out"}, True),
        ),
    )


def test_a_claim_whose_node_class_is_not_ready_is_deleted_without_an_event() -> None:
    changes = launch_without_class(unlaunched(), "no such class")

    assert changes.deletes_claim
    assert changes.notices == ()
    assert changes.counts[0].labels["reason"] == "nodeclass_not_ready"


def test_a_failed_launch_leaves_launched_unknown_with_the_error() -> None:
    changes = launch_failed(unlaunched(), "quota reached", NOON)

    assert condition_of(changes.claim, "Launched") == ("Unknown", "LaunchFailed", "quota reached")
    assert condition_of(changes.claim, "Ready")[:2] == ("Unknown", "ReconcilingDependents")
    assert not changes.deletes_claim


def test_a_provider_may_set_the_reason_of_a_failed_launch() -> None:
    changes = launch_failed(unlaunched(), "no subnet", NOON, "SubnetsMissing")

    assert condition_of(changes.claim, "Launched") == ("Unknown", "SubnetsMissing", "no subnet")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", "short"),
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1021 + "..."),
    ],
)
def test_messages_have_at_most_1024_characters(text: str, expected: str) -> None:
    assert shortened(text) == expected


def test_the_whole_event_message_is_cut() -> None:
    changes = launch_without_capacity(unlaunched(), "x" * 2000, [pod("waits")])

    assert [len(each.note) for each in changes.notices] == [1024, 1024]
