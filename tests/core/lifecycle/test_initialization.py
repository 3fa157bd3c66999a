from collections.abc import Mapping
from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Remark
from karpy.core.lifecycle.initialization import check_consistency, initialize
from karpy.model.constraints import Taint
from karpy.model.kinds import NODE_CLAIM
from karpy.model.notices import Notice, Subject
from karpy.model.records import ClaimRecord, NodeRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import claim, condition_of, node

STARTUP = Taint("cilium", "NoExecute", "wait")
MINUTE = timedelta(minutes=1)
GI = 2**30


def registered(**requests: int) -> ClaimRecord:
    return claim(said={"Registered": MINUTE}, startup_taints=(STARTUP,), requests=requests)


def test_a_node_that_meets_all_preconditions_is_initialized() -> None:
    changes = initialize(registered(cpu=1000), (node(),), NOON)

    assert condition_of(changes.claim, "Initialized") == ("True", "Initialized", "")
    assert condition_of(changes.claim, "Ready") == ("True", "Ready", "")
    assert changes.node is not None
    assert changes.node.meta.labels["karpenter.sh/initialized"] == "true"
    fields = {
        "NodeClaim": "web-1",
        "provider-id": "kwok://web-1",
        "Node": "node-1",
        "allocatable": "cpu: 4",
    }
    assert changes.remarks == (Remark("initialized nodeclaim", fields),)


@pytest.mark.parametrize(
    ("nodes", "reason", "message"),
    [
        ((), "NodeNotFound", "Node not registered with cluster"),
        ((node(), node(name="n2")), "NodeNotFound", "Node not registered with cluster"),
        ((node(is_ready=False),), "NodeNotReady", "Node status is NotReady"),
        (
            (node(taints=(Taint("cilium", "NoExecute", "other"),)),),
            "StartupTaintsExist",
            'StartupTaint "cilium=other:NoExecute" still exists',
        ),
        (
            (node(taints=(Taint("node.kubernetes.io/not-ready", "NoSchedule"),)),),
            "KnownEphemeralTaintsExist",
            'KnownEphemeralTaint "node.kubernetes.io/not-ready:NoSchedule" still exists',
        ),
        (
            (node(taints=(Taint("readiness.k8s.io/disk", "NoSchedule"),)),),
            "KnownEphemeralTaintsExist",
            'KnownEphemeralTaint "readiness.k8s.io/disk:NoSchedule" still exists',
        ),
        (
            (node(capacity={"cpu": 4000, "gpu": 0}),),
            "ResourceNotRegistered",
            'Resource "gpu" was requested but not registered',
        ),
    ],
)
def test_the_first_unmet_precondition_is_the_reason(
    nodes: tuple[NodeRecord, ...], reason: str, message: str
) -> None:
    changes = initialize(registered(cpu=1000, gpu=1, none=0), nodes, NOON)

    assert condition_of(changes.claim, "Initialized") == ("Unknown", reason, message)
    assert replace(changes, claim=None) == Changes()


def test_device_drivers_must_have_published_their_devices() -> None:
    changes = initialize(registered(cpu=1000), (node(),), NOON, ["gpu.example.com", "a.com"])

    assert condition_of(changes.claim, "Initialized") == (
        "Unknown",
        "DRADriverPoolsNotPublished",
        "Drivers without published pools: a.com, gpu.example.com",
    )


@pytest.mark.parametrize(
    "taint",
    [
        Taint("cilium", "NoSchedule"),
        Taint("node.kubernetes.io/unreachable", "NoExecute"),
        Taint("karpenter.sh/rebooting", "NoSchedule"),
    ],
)
def test_other_taints_do_not_delay_initialization(taint: Taint) -> None:
    changes = initialize(registered(cpu=1000), (node(taints=(taint,)),), NOON)

    assert condition_of(changes.claim, "Initialized")[0] == "True"


@pytest.mark.parametrize(
    "waiting",
    [claim(), claim(said={"Registered": MINUTE, "Rebooting": MINUTE})],
    ids=["unregistered", "rebooting"],
)
def test_a_claim_that_is_not_registered_or_reboots_is_left_alone(waiting: ClaimRecord) -> None:
    assert initialize(waiting, (node(),), NOON) == Changes()


def test_an_initialized_claim_stays_initialized_whatever_its_node_does() -> None:
    done = claim(said={"Registered": MINUTE, "Initialized": MINUTE})

    assert initialize(done, (), NOON) == Changes(done)


def initialized(
    capacity: Mapping[str, int], requests: Mapping[str, int] | None = None
) -> ClaimRecord:
    said = {"Registered": MINUTE, "Initialized": MINUTE}
    asked = {"memory": GI} if requests is None else requests
    return claim(said=said, capacity=capacity, requests=asked)


def test_a_node_with_less_than_its_claims_capacity_is_reported() -> None:
    made = initialized({"memory": 128 * GI})

    changes = check_consistency(made, node(capacity={"memory": 64 * GI}), NOON)

    issue = "expected 128Gi of resource memory, but found 64Gi (50.0% of expected)"
    expected = ("False", "ConsistencyCheckFailed", "Consistency Check Failed")
    assert condition_of(changes.claim, "ConsistentStateFound") == expected
    assert replace(changes, claim=None) == Changes(
        notices=(
            Notice(
                Subject(NODE_CLAIM, "web-1", uid="uid-web-1"),
                "FailedConsistencyCheck",
                issue,
                is_warning=True,
                same_as=("uid-web-1", issue),
            ),
        ),
        remarks=(Remark("consistency error", {"error": issue}, True),),
        requeue_after=10 * MINUTE,
    )


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (initialized({"memory": 100}), {"memory": 90}),
        (initialized({"memory": 100}, {"memory": 0}), {}),
        (initialized({}), {}),
        (claim(capacity={"cpu": 1000}), {}),
    ],
    ids=["nearly all of it", "not asked for", "not promised", "not initialized"],
)
def test_only_requested_resources_with_a_known_capacity_are_compared(
    made: ClaimRecord, found: Mapping[str, int]
) -> None:
    changes = check_consistency(made, node(capacity=found), NOON)

    expected = ("True", "ConsistentStateFound", "")
    assert condition_of(changes.claim, "ConsistentStateFound") == expected
    assert changes.notices == ()


def test_a_deleting_claim_is_not_checked() -> None:
    assert check_consistency(claim(deleted=MINUTE), node(), NOON) == Changes()
