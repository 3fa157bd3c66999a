import pytest
from msgspec.structs import replace

from karpy.codec.karpbench import read_workload
from karpy.model.constraints import Taint
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    OS,
    REGISTERED,
    ZONE,
)
from karpy.model.nodes import Node
from tests.codec.plain import Json, Value, plain_pool, plain_type, plain_workload, sold, wants

GI = 2**30
MI = 2**20
TAINT = {"key": "k", "effect": "NoSchedule"}
CAPACITY = {"cpu": 2000, "memory": 4 * GI, "pods": 10, "nodes": 1}
ALLOCATABLE = {"cpu": 1900, "memory": 4 * GI - 100 * MI, "pods": 10}
LABELS = {
    INSTANCE_TYPE: "small",
    ARCH: "amd64",
    OS: "linux",
    "team": "a",
    NODE_POOL: "default",
    REGISTERED: "true",
    INITIALIZED: "true",
    "example.com/class": "basic",
    ZONE: "zone-a",
    CAPACITY_TYPE: "spot",
    HOSTNAME: "n",
}


def entry(**fields: Value) -> Json:
    return {
        "name": "n",
        "nodePool": "default",
        "instanceType": "small",
        "zone": "zone-a",
        "capacityType": "spot",
        "created": "2026-01-01T00:00:00Z",
        **fields,
    }


def made(node: Json, **fields: Value) -> Node:
    pools = [plain_pool(labels={"team": "a"}, taints=[TAINT])]
    obj = plain_workload(**{"nodePools": pools, "nodes": [node], **fields})
    return replace(read_workload(obj).nodes[0], node_record=None, claim_record=None)


def test_a_node_has_the_labels_of_its_type_and_pool() -> None:
    assert made(entry()) == Node(
        name="n",
        labels=LABELS,
        taints=(Taint("k", "NoSchedule"),),
        capacity=CAPACITY,
        allocatable=ALLOCATABLE,
        claim="n",
    )


def test_a_node_is_ready_and_consolidatable() -> None:
    node = read_workload(plain_workload(nodes=[entry()])).nodes[0]

    assert node.claim_record is not None
    assert node.node_record is not None
    assert node.claim_record.conditions.is_true("Consolidatable")
    assert node.node_record.is_ready


def test_a_node_may_have_labels_and_taints_of_its_own() -> None:
    node = made(entry(labels={"team": "b", "x": "y"}, taints=[]))

    assert (node.labels, node.taints) == ({**LABELS, "team": "b", "x": "y"}, ())


def test_a_node_may_have_no_pool() -> None:
    assert made({"name": "n", "instanceType": "small"}) == Node(
        name="n",
        labels={INSTANCE_TYPE: "small", ARCH: "amd64", OS: "linux", HOSTNAME: "n"},
        capacity=CAPACITY,
        allocatable=ALLOCATABLE,
    )


def test_a_node_may_be_uninitialized_or_deleting() -> None:
    node = made(entry(initialized=False, deletionTimestamp="2026-01-01T00:00:00Z"))

    assert (node.is_initialized, node.is_deleting) == (False, True)


@pytest.mark.parametrize(
    ("systems", "pool", "expected"),
    [
        (["darwin", "linux", "windows"], [], "linux"),
        (["darwin", "windows"], [], "darwin"),
        (["linux", "windows"], [wants(OS, "In", "windows")], "windows"),
        (["linux", "windows"], [wants(OS, "In", "other")], "linux"),
        (["windows"], [], "windows"),
    ],
)
def test_linux_is_the_system_where_there_is_a_choice(
    systems: list[str], pool: list[Json], expected: str
) -> None:
    kind = plain_type(requirements=[wants(OS, "In", *systems)])

    node = made(entry(), instanceTypes=[kind], nodePools=[plain_pool("default", *pool)])

    assert node.labels[OS] == expected


def test_a_node_has_the_capacity_of_its_offering() -> None:
    offering = sold(
        "zone-a", "spot", 0.1, capacityOverride={"pods": "5"}, overheadOverride={"cpu": "1"}
    )

    node = made(entry(), instanceTypes=[plain_type(offerings=[offering])])

    assert (node.capacity["pods"], node.allocatable["cpu"]) == (5, 1000)


def test_a_node_publishes_its_attach_limits() -> None:
    limits = {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "d"}]}}

    assert made(entry(), csiNodes=[limits]).volume_limits == {"d": None}
