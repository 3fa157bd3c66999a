"""A Node and its NodeClaim, seen as one at every stage of a node's life."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from karpy.model.constraints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from karpy.model.labels import HOSTNAME, INITIALIZED, NODE_POOL, REGISTERED, ZONE
from karpy.model.nodes import Node, join_node
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.resources import NODES
from tests.builders.nodes import kube_node, node_claim

DEDICATED = Taint("dedicated", NO_SCHEDULE, "web")
STARTUP = Taint("cilium", NO_EXECUTE, "starting")
NOT_READY = Taint("node.kubernetes.io/not-ready", NO_SCHEDULE)
CORDON = Taint("node.kubernetes.io/unschedulable", NO_SCHEDULE)
REBOOTING = Taint("karpenter.sh/rebooting", NO_SCHEDULE)

CLAIM = node_claim(
    "web-abc",
    labels={NODE_POOL: "web", ZONE: "a"},
    taints=(DEDICATED,),
    startup_taints=(STARTUP,),
    capacity={"cpu": 4000, "memory": 16, "example.com/gpu": 1},
    allocatable={"cpu": 3900, "memory": 14, "example.com/gpu": 1},
)
ON_NODE = {NODE_POOL: "web", ZONE: "a", HOSTNAME: "ip-1"}


def _kube_node(*marks: str, taints: tuple[Taint, ...] = ()) -> NodeRecord:
    return kube_node(
        "ip-1",
        labels=ON_NODE | dict.fromkeys(marks, "true"),
        taints=taints,
        capacity={"cpu": 4000, "memory": 15, "example.com/gpu": 0},
        allocatable={"cpu": 3800, "memory": 13, "example.com/gpu": 0},
    )


def _joined(
    node: NodeRecord | None,
    claim: ClaimRecord | None,
    limits: Mapping[str, int | None] | None = None,
) -> Node:
    """Join without the objects behind it, which are what was given."""
    return replace(join_node(node, claim, limits), node_record=None, claim_record=None)


def test_a_claim_without_a_node_speaks_for_itself() -> None:
    assert _joined(None, CLAIM) == Node(
        "web-abc",
        labels=CLAIM.meta.labels,
        taints=(DEDICATED,),
        capacity={"cpu": 4000, "memory": 16, "example.com/gpu": 1, "nodes": 1},
        allocatable={"cpu": 3900, "memory": 14, "example.com/gpu": 1},
        is_initialized=False,
        claim="web-abc",
    )


def test_a_claim_without_a_machine_counts_as_what_its_pods_ask_for() -> None:
    asked = replace(node_claim("c"), requests={"cpu": 3000})
    launched = replace(asked, provider_id="p", capacity={"cpu": 8000})

    assert join_node(None, asked).capacity == {"cpu": 3000, NODES: 1}
    assert join_node(None, asked).allocatable == {}
    assert join_node(None, launched).capacity == {"cpu": 8000, NODES: 1}


def test_the_claim_speaks_for_a_node_that_is_not_registered() -> None:
    """Its labels and taints are not complete yet; what the kubelet measured already counts."""
    assert _joined(_kube_node(taints=(NOT_READY, CORDON)), CLAIM) == Node(
        "web-abc",
        labels=CLAIM.meta.labels,
        taints=(DEDICATED,),
        capacity={"cpu": 4000, "memory": 15, "example.com/gpu": 1, "nodes": 1},
        allocatable={"cpu": 3800, "memory": 13, "example.com/gpu": 1},
        is_initialized=False,
        claim="web-abc",
    )


def test_a_registered_node_speaks_for_itself_but_its_devices_are_still_the_claims() -> None:
    """A device plugin reports zero until it runs; pods that want the device may still go there."""
    node = _kube_node(REGISTERED, taints=(DEDICATED, STARTUP, NOT_READY, CORDON))

    assert _joined(node, CLAIM) == Node(
        "ip-1",
        labels=node.meta.labels,
        taints=(DEDICATED, CORDON),
        capacity={"cpu": 4000, "memory": 15, "example.com/gpu": 1, "nodes": 1},
        allocatable={"cpu": 3800, "memory": 13, "example.com/gpu": 1},
        is_initialized=False,
        claim="web-abc",
    )


def test_an_initialized_node_is_taken_as_it_is() -> None:
    """A startup taint that comes back now is there for another reason."""
    node = _kube_node(REGISTERED, INITIALIZED, taints=(STARTUP, NOT_READY))

    assert _joined(node, CLAIM) == Node(
        "ip-1",
        labels=node.meta.labels,
        taints=(STARTUP, NOT_READY),
        capacity={"cpu": 4000, "memory": 15, "example.com/gpu": 0, "nodes": 1},
        allocatable={"cpu": 3800, "memory": 13, "example.com/gpu": 0},
        is_initialized=True,
        claim="web-abc",
    )


def test_a_node_of_no_pool_is_always_registered_and_initialized() -> None:
    node = kube_node("metal-1", labels={ZONE: "a"}, taints=(NOT_READY,), capacity={"cpu": 8000})

    assert _joined(node, None) == Node(
        "metal-1",
        {ZONE: "a"},
        (NOT_READY,),
        capacity={"cpu": 8000, "nodes": 1},
        allocatable={"cpu": 8000},
    )


def test_a_node_of_a_pool_whose_claim_is_not_in_sight_is_managed_all_the_same() -> None:
    """A recording may hold Nodes alone."""
    node = _kube_node(REGISTERED, taints=(NOT_READY, CORDON))

    joined = join_node(node, None)

    assert (joined.name, joined.taints, joined.is_initialized) == ("ip-1", (CORDON,), False)
    assert joined.claim == ""


@pytest.mark.parametrize(
    ("taint", "goes"),
    [
        (NOT_READY, True),
        (Taint("node.kubernetes.io/not-ready", NO_EXECUTE), True),
        (Taint("node.kubernetes.io/not-ready", PREFER_NO_SCHEDULE), False),
        (Taint("node.kubernetes.io/unreachable", NO_SCHEDULE), True),
        (Taint("node.kubernetes.io/unreachable", NO_EXECUTE), False),
        (Taint("node.cloudprovider.kubernetes.io/uninitialized", NO_SCHEDULE, "true"), True),
        (Taint("karpenter.sh/unregistered", NO_EXECUTE), True),
        (Taint("karpenter.sh/disrupted", NO_SCHEDULE), False),
        (Taint("karpenter.sh/disrupted", NO_SCHEDULE, "1772452740000"), True),
        (REBOOTING, True),
        (Taint("readiness.k8s.io/network", NO_EXECUTE, "pending"), True),
        (Taint("cilium", NO_EXECUTE, "another value"), True),
        (Taint("cilium", NO_SCHEDULE, "starting"), False),
        (CORDON, False),
    ],
    ids=str,
)
def test_temporary_taints_are_known_by_key_and_effect(taint: Taint, *, goes: bool) -> None:
    joined = join_node(_kube_node(REGISTERED, taints=(taint,)), CLAIM)

    assert joined.taints == (() if goes else (taint,))


@pytest.mark.parametrize(
    ("is_rebooting", "expected"), [(True, (CORDON,)), (False, (REBOOTING, CORDON))]
)
def test_a_rebooting_node_will_be_back(*, is_rebooting: bool, expected: tuple[Taint, ...]) -> None:
    """Its fence goes with the reboot; without one it has another origin."""
    node = _kube_node(REGISTERED, INITIALIZED, taints=(REBOOTING, CORDON))
    claim = node_claim("web-abc", is_rebooting=is_rebooting)

    assert _joined(node, claim).taints == expected


@pytest.mark.parametrize(
    ("node_goes", "claim_goes", "expected"),
    [(False, True, True), (True, False, False), (True, None, True), (False, None, False)],
)
def test_the_claim_decides_whether_the_node_goes(
    *, node_goes: bool, claim_goes: bool | None, expected: bool
) -> None:
    node = kube_node("ip-1", labels=ON_NODE, is_deleting=node_goes)
    claim = None if claim_goes is None else node_claim("web-abc", is_deleting=claim_goes)

    assert _joined(node, claim).is_deleting is expected


def test_volume_limits_are_passed_on() -> None:
    limits = {"ebs.csi.aws.com": 25, "efs.csi.aws.com": None}

    assert _joined(_kube_node(), None, limits).volume_limits == limits


def test_a_node_is_known_by_hostname_and_pool() -> None:
    assert (Node("n", {}).hostname, Node("n", {}).pool) == ("n", "")
    assert (Node("n", ON_NODE).hostname, Node("n", ON_NODE).pool) == ("ip-1", "web")
    assert Node("n", {HOSTNAME: ""}).hostname == "n"


def test_there_is_no_node_made_of_nothing() -> None:
    with pytest.raises(AssertionError):
        join_node(None, None)


def test_all_of_a_node_can_be_used_unless_it_says_otherwise() -> None:
    assert join_node(kube_node("n", capacity={"cpu": 4000}), None).allocatable == {"cpu": 4000}


@pytest.mark.parametrize("taints", [(), (CORDON,)])
def test_a_cordoned_node_is_tainted_once(taints: tuple[Taint, ...]) -> None:
    node = replace(kube_node("n", taints=taints), is_unschedulable=True)

    assert join_node(node, None).taints == (CORDON,)
