from datetime import UTC, datetime

from msgspec.structs import replace

from karpy.adapters.clouds.kwok.naming import node_name
from karpy.adapters.clouds.kwok.nodes import (
    claimed_machine,
    is_machine,
    new_machine,
    read_machine,
    write_node,
)
from karpy.adapters.clouds.kwok.offers import PricedType
from karpy.codec.catalogs import kwok_catalog
from karpy.model.instances import InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from karpy.model.records import ClaimRecord, Identity
from karpy.model.requirements import Operator, collect, one_of, require
from karpy.ports.cloud import LaunchSpec, Machine
from tests.adapters.clouds.kwok.stage import spec_of
from tests.sim.stories import SMALL

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
CLAIM = "general-x7"
NAME = node_name(CLAIM, f"uid-of-{CLAIM}")
LABELS = {
    "eks-node-viewer/instance-price": "0.019003",
    "example.com/team": "shop",
    "karpenter.kwok.sh/instance-cpu": "1",
    "karpenter.kwok.sh/instance-family": "c",
    "karpenter.kwok.sh/instance-memory": "2Gi",
    "karpenter.kwok.sh/instance-size": "1",
    "karpenter.sh/capacity-type": "spot",
    "karpenter.sh/nodepool": "general",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/hostname": CLAIM,
    "kubernetes.io/os": "linux",
    "kwok-partition": "a",
    "kwok.x-k8s.io/node": "fake",
    "node.kubernetes.io/instance-type": SMALL,
    "topology.kubernetes.io/zone": "test-zone-a",
}
"""As Karpenter's KWOK provider has them."""
ALIASES = {"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux"}
ANNOTATIONS = {"example.com/note": "hello", "kwok.x-k8s.io/node": "fake"}
GIB = 2**30


def wanted() -> LaunchSpec:
    asked = (
        one_of("example.com/team", "shop"),
        one_of(CAPACITY_TYPE, "spot", "on-demand"),
        require("example.com/old", Operator.NOT_IN, ["yes"]),
        require("example.com/any", Operator.EXISTS),
    )
    return spec_of(
        CLAIM,
        labels={NODE_POOL: "general"},
        annotations={"example.com/note": "hello"},
        requirements=collect(asked),
        requests={"cpu": 500, "pods": 3, "example.com/card": 2},
    )


def sold(zone: str = "test-zone-a", capacity_type: str = "spot") -> PricedType:
    type_ = next(each for each in kwok_catalog().types if each.name == SMALL)
    offering = next(
        each for each in type_.offerings if (each.zone, each.capacity_type) == (zone, capacity_type)
    )
    return PricedType(type_, offering)


def machine() -> Machine:
    return new_machine(wanted(), sold(), NOON)


def test_a_new_machine_is_what_its_claim_and_its_offering_say() -> None:
    assert machine() == Machine(
        provider_id=f"kwok://{NAME}",
        claim=CLAIM,
        instance_type=SMALL,
        zone="test-zone-a",
        capacity_type="spot",
        created=NOON,
        labels=LABELS,
        annotations=ANNOTATIONS,
        capacity={
            "cpu": 1000,
            "memory": 2 * GIB,
            "pods": 16,
            "ephemeral-storage": 20 * GIB,
            "example.com/card": 2,
        },
        allocatable={
            "cpu": 900,
            "memory": 2 * GIB - 10 * 2**20,
            "pods": 16,
            "ephemeral-storage": 20 * GIB,
            "example.com/card": 2,
        },
    )


def test_an_offering_may_have_other_amounts_than_its_type() -> None:
    requirements = collect((one_of(ZONE, "a"), one_of(CAPACITY_TYPE, "spot")))
    offering = Offering(
        requirements, 1, capacity_override={"cpu": 8000}, overhead_override={"cpu": 500}
    )
    type_ = InstanceType("big", {}, (offering,), {"cpu": 4000}, {"cpu": 100})

    made = new_machine(spec_of(), PricedType(type_, offering), NOON)

    assert (made.capacity, made.allocatable) == ({"cpu": 8000}, {"cpu": 7500})


def test_a_node_is_closed_until_it_is_registered_and_asks_for_a_kubelet() -> None:
    assert write_node(NAME, machine()) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NAME, "labels": LABELS | ALIASES, "annotations": ANNOTATIONS},
        "spec": {
            "providerID": f"kwok://{NAME}",
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
        },
        "status": {
            "capacity": {
                "cpu": "1",
                "ephemeral-storage": "20Gi",
                "example.com/card": "2",
                "memory": "2Gi",
                "pods": "16",
            },
            "allocatable": {
                "cpu": "900m",
                "ephemeral-storage": "20Gi",
                "example.com/card": "2",
                "memory": "2038Mi",
                "pods": "16",
            },
            "phase": "Pending",
        },
    }


def test_a_machine_is_derived_from_its_node() -> None:
    node = write_node(NAME, machine())
    meta = {**node["metadata"], "creationTimestamp": "2026-01-05T12:00:00Z"}

    assert is_machine(node)
    told = read_machine({**node, "metadata": meta}, NOON)
    assert told == replace(machine(), labels=LABELS | ALIASES)


def test_a_node_that_is_being_deleted_is_a_machine_that_ends() -> None:
    node = write_node(NAME, machine())
    meta = {**node["metadata"], "deletionTimestamp": "2026-01-05T12:00:00Z"}

    assert read_machine({**node, "metadata": meta}, NOON).is_terminating


def test_a_node_that_only_looks_alike_is_no_machine_of_ours() -> None:
    node = write_node(NAME, machine())

    assert not is_machine({**node, "metadata": {"name": "other"}})
    assert not is_machine({"metadata": {"name": NAME}})


def test_a_machine_is_derived_from_its_claim() -> None:
    """Another process wrote the claim, and ended before it made the Node."""
    made = machine()
    own = {key: LABELS[key] for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)}
    claim = ClaimRecord(
        Identity(CLAIM, created=NOON, labels={**own, "a": "b"}, annotations={"c": "d"}),
        provider_id=made.provider_id,
        capacity=made.capacity,
        allocatable=made.allocatable,
    )

    assert claimed_machine(claim, NOON) == Machine(
        provider_id=made.provider_id,
        claim=CLAIM,
        instance_type=SMALL,
        zone="test-zone-a",
        capacity_type="spot",
        created=NOON,
        labels={
            **own,
            "a": "b",
            "kubernetes.io/hostname": CLAIM,
            "kwok.x-k8s.io/node": "fake",
        },
        annotations={"c": "d", "kwok.x-k8s.io/node": "fake"},
        capacity=made.capacity,
        allocatable=made.allocatable,
    )
