import pytest
from msgspec.structs import replace

from karpy.model.constraints import Taint
from karpy.model.labels import INITIALIZED, NODE_POOL, REGISTERED
from karpy.model.nodes import Node
from karpy.model.pods import Owner, PodController
from karpy.model.requirements import Requirement
from karpy.model.storage import PersistentVolumeClaim
from tests.codec.plain import Json, Value, plain_pod, workload
from tests.codec.reading import names, obj, read


def node(name: str, provider: str = "", **fields: Value) -> Json:
    status = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
    return obj("Node", name, spec={"providerID": provider}, status=status, **fields)


def claim(name: str, **status: Value) -> Json:
    labels = {NODE_POOL: "default"}
    spec = {
        "nodeClassRef": {"group": "g", "kind": "Class", "name": "n"},
        "requirements": [],
        "taints": [{"key": "k", "effect": "NoSchedule"}],
    }
    return obj("NodeClaim", name, meta={"labels": labels}, spec=spec, status=status)


READY = {NODE_POOL: "default", REGISTERED: "true", INITIALIZED: "true"}


def test_nodes_are_joined_with_their_claims() -> None:
    nodes = read(
        node("by-provider", "p-1", meta={"labels": READY}),
        node("by-name", meta={"labels": READY}),
        node("alone"),
        claim("c-1", providerID="p-1"),
        claim("c-2", nodeName="by-name"),
        claim("in-flight", providerID="p-3", capacity={"cpu": "8"}, allocatable={"cpu": "7"}),
        obj("CSINode", "alone", spec={"drivers": [{"name": "d"}]}),
    ).snapshot.nodes
    capacity, allocatable = {"cpu": 4000, "nodes": 1}, {"cpu": 3000}

    assert tuple(replace(each, node_record=None, claim_record=None) for each in nodes) == (
        Node("by-provider", READY, (), capacity, allocatable, claim="c-1"),
        Node("by-name", READY, (), capacity, allocatable, claim="c-2"),
        Node("alone", {}, (), capacity, allocatable, volume_limits={"d": None}),
        Node(
            "in-flight",
            {NODE_POOL: "default"},
            (Taint("k", "NoSchedule"),),
            {"cpu": 8000, "nodes": 1},
            {"cpu": 7000},
            is_initialized=False,
            claim="in-flight",
        ),
    )


def owned(name: str, kind: str, owner: str, **labels: str) -> Json:
    refs = [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": True}]
    return plain_pod(name, meta={"labels": labels, "ownerReferences": refs})


def replica_set_of(deployment: str, name: str) -> Json:
    refs = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment, "uid": "u"}]
    return workload("ReplicaSet", name, meta={"ownerReferences": refs})


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([workload("Deployment", replicas=2)], ["web-0", "web-1"]),
        ([workload("StatefulSet"), owned("web-0", "StatefulSet", "web")], ["web-0"]),
        ([workload("Deployment"), replica_set_of("web", "web-5d")], ["web-0"]),
        ([replica_set_of("web", "web-5d")], ["web-5d-0"]),
        (
            [
                workload("Deployment"),
                replica_set_of("web", "web-5d"),
                owned("web-5d-x", "ReplicaSet", "web-5d"),
            ],
            ["web-5d-x"],
        ),
        (
            [
                workload("Deployment"),
                owned("web-5d-x", "ReplicaSet", "web-5d", **{"pod-template-hash": "5d"}),
            ],
            ["web-5d-x"],
        ),
        (
            [
                workload("Deployment"),
                owned("web-api-5d-x", "ReplicaSet", "web-api-5d", **{"pod-template-hash": "5d"}),
            ],
            ["web-api-5d-x", "web-0"],
        ),
        (
            [
                workload("Deployment", meta={"namespace": "other"}),
                owned("web-5d-x", "ReplicaSet", "web-5d", **{"pod-template-hash": "5d"}),
            ],
            ["web-5d-x", "web-0"],
        ),
        ([workload("Deployment"), plain_pod("web-5d-x")], ["web-5d-x", "web-0"]),
        ([workload("Deployment"), workload("StatefulSet")], ["web-0", "web-0-statefulset"]),
        ([workload("Job"), workload("ReplicationController", "rc")], ["web-0", "rc-0"]),
    ],
)
def test_a_workload_is_written_out_unless_its_pods_are_there(
    objects: list[Json], expected: list[str]
) -> None:
    assert names(*objects) == expected


def test_controllers_are_there_for_default_spreads() -> None:
    snapshot = read(workload("StatefulSet", "db"), workload("Deployment", "web")).snapshot
    database, web = snapshot.pods
    wanted = Requirement("app", frozenset({"db"}))

    assert snapshot.controllers[0] == PodController(
        "apps/v1", "StatefulSet", "db", "default", database.owners[0].uid, (wanted,)
    )
    assert web.owners == (
        Owner(
            "apps/v1",
            "ReplicaSet",
            snapshot.controllers[1].name,
            snapshot.controllers[1].uid,
            True,
        ),
    )


def test_claims_of_pods_that_do_not_exist_yet_are_created() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    volume = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    claims = read(
        workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[template]),
        obj("PersistentVolumeClaim", "data-db-1", spec={"volumeName": "pv"}),
        plain_pod("bare", volumes=[volume]),
        plain_pod("live", volumes=[volume], status={"phase": "Pending"}),
    ).snapshot.storage.claims

    assert claims == {
        "default/data-db-1": PersistentVolumeClaim(
            "data-db-1", "default", "pv", is_bind_completed=True
        ),
        "default/bare-tmp": PersistentVolumeClaim("bare-tmp", "default", storage_class="default"),
        "default/data-db-0": PersistentVolumeClaim("data-db-0", "default", storage_class="fast"),
    }
