from datetime import UTC, datetime

import pytest

from karpy.codec.fields import Fields
from karpy.codec.instances import InstanceReader
from karpy.codec.karpbench import read_settings, read_workload, workload_faults
from karpy.codec.uids import derived_uid
from karpy.errors import WorkloadInvalid
from karpy.model.constraints import SpreadConstraint
from karpy.model.instances import Catalog
from karpy.model.labels import WELL_KNOWN, ZONE
from karpy.model.pods import (
    DaemonSet,
    DisruptionBudget,
    Owner,
    Pod,
    PodController,
    PodRules,
    Service,
)
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.records import NodeClassRef
from karpy.model.requirements import Requirement
from karpy.model.settings import (
    MinValuesPolicy,
    Packing,
    PreferencePolicy,
    ReservedMode,
    Settings,
)
from karpy.model.snapshot import Snapshot
from karpy.model.storage import PersistentVolume, PersistentVolumeClaim, Storage, StorageClass
from tests.codec.plain import Json, Value, plain_pod, plain_type, plain_workload, workload

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
POOL = NodePool("default", node_class=NodeClassRef("example.com", "Class", "basic"))


def fault(obj: Value) -> str:
    with pytest.raises(WorkloadInvalid) as raised:
        read_workload(obj, "w.json")
    return raised.value.message


def test_a_small_workload_is_read_whole() -> None:
    kind = InstanceReader().read(plain_type())
    pod = plain_pod(
        meta={"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "u"}, status={"phase": "Pending"}
    )

    assert read_workload(plain_workload(pods=[pod], wellKnownLabels=["size"])) == Snapshot(
        now=NEW_YEAR,
        pods=(
            Pod(
                name="web",
                namespace="default",
                uid="u",
                created=NEW_YEAR,
                labels={},
                requests={"pods": 1},
                rules=PodRules(),
                phase="Pending",
                is_unschedulable=True,
            ),
        ),
        namespaces={"default": {"kubernetes.io/metadata.name": "default"}},
        pools=(POOL,),
        catalog=Catalog(types=(kind,), well_known=WELL_KNOWN | {"size"}),
    )


def test_time_stands_still_at_the_latest_moment_known() -> None:
    node = {
        "name": "n",
        "nodePool": "default",
        "instanceType": "small",
        "created": "2027-01-01T00:00:00Z",
    }

    assert read_workload(plain_workload(nodes=[node])).now == datetime(2027, 1, 1, tzinfo=UTC)
    assert read_workload(plain_workload(now="2028-01-01T00:00:00Z")).now.year == 2028


def test_a_pool_may_have_types_of_its_own() -> None:
    types = [plain_type("a"), plain_type("b")]
    obj = plain_workload(instanceTypes=types, instanceTypesByNodePool={"default": ["b"]})

    catalog = read_workload(obj).catalog

    assert [each.name for each in catalog.types_for("default")] == ["b"]
    assert [each.name for each in catalog.types_for("other")] == ["a", "b"]


def test_daemon_sets_stand_for_the_pod_they_would_run() -> None:
    daemon = workload("DaemonSet", "log", meta={"namespace": "kube-system"})
    uid = derived_uid("DaemonSet", "kube-system", "log")
    del daemon["apiVersion"], daemon["kind"]

    assert read_workload(plain_workload(daemonSets=[daemon])).daemons == (
        DaemonSet(
            "log",
            "kube-system",
            Pod(
                name="log",
                namespace="kube-system",
                uid=uid,
                created=datetime(1970, 1, 1, tzinfo=UTC),
                labels={"app": "log"},
                requests={"cpu": 1000, "pods": 1},
                rules=PodRules(),
                is_unschedulable=True,
                owners=(Owner("apps/v1", "DaemonSet", "log", uid, True),),
            ),
        ),
    )


def test_a_workload_may_have_every_kind_of_a_cluster() -> None:
    meta = {"name": "x", "namespace": "ns"}
    selector = {"matchLabels": {"a": "b"}}
    wanted = (Requirement("a", frozenset({"b"})),)
    obj = plain_workload(
        pdbs=[{"metadata": meta, "spec": {"selector": selector, "minAvailable": 1}}],
        namespaces=[{"metadata": {"name": "ns", "labels": {"a": "b"}}}],
        services=[{"metadata": meta, "spec": {"selector": {"a": "b"}}}],
        replicaSets=[{"metadata": {**meta, "uid": "r"}, "spec": {"selector": selector}}],
        statefulSets=[{"metadata": {**meta, "uid": "s"}, "spec": {"selector": selector}}],
        replicationControllers=[{"metadata": {**meta, "uid": "c"}}],
        persistentVolumeClaims=[{"metadata": meta, "spec": {"volumeName": "pv"}}],
        persistentVolumes=[{"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "d"}}}],
        storageClasses=[{"metadata": {"name": "sc"}, "provisioner": "d"}],
        nodeOverlays=[{"metadata": {"name": "o"}, "spec": {"requirements": [], "price": "1"}}],
    )

    snapshot = read_workload(obj)

    assert snapshot.budgets == (DisruptionBudget("x", "ns", wanted, "1"),)
    assert snapshot.namespaces == {"ns": {"kubernetes.io/metadata.name": "ns", "a": "b"}}
    assert snapshot.services == (Service("x", "ns", {"a": "b"}),)
    assert snapshot.controllers == (
        PodController("apps/v1", "ReplicaSet", "x", "ns", "r", wanted),
        PodController("apps/v1", "StatefulSet", "x", "ns", "s", wanted),
        PodController("v1", "ReplicationController", "x", "ns", "c"),
    )
    assert snapshot.storage == Storage(
        claims={"ns/x": PersistentVolumeClaim("x", "ns", "pv", is_bind_completed=True)},
        volumes={"pv": PersistentVolume("pv", "d")},
        classes={"sc": StorageClass("sc", "d")},
    )
    assert snapshot.overlays == (NodeOverlay("o", price="1"),)
    assert snapshot.settings == Settings(node_overlay=True)


def test_options_become_settings() -> None:
    options = {
        "preferencePolicy": "Ignore",
        "minValuesPolicy": "BestEffort",
        "reservedCapacity": False,
        "reservedMode": "Fallback",
        "nodeOverlay": False,
        "ignoreDeviceClaims": False,
        "packing": "Cheapest",
        "concurrency": 5,
        "defaultConstraints": [
            {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        ],
    }

    assert read_settings(Fields(options), has_overlays=True) == Settings(
        preference_policy=PreferencePolicy.IGNORE,
        min_values_policy=MinValuesPolicy.BEST_EFFORT,
        reserved_capacity=False,
        reserved_mode=ReservedMode.FALLBACK,
        node_overlay=False,
        ignore_device_claims=False,
        default_spreads=(SpreadConstraint(ZONE, 1),),
        packing=Packing.CHEAPEST,
    )


def test_without_options_settings_are_karpenters() -> None:
    assert read_settings(Fields({})) == Settings()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "karpbench/v2"}, "`format` is not `karpbench/v1`"),
        ({"pods": {}}, "`pods` is an object, not a list"),
        ({"pods": [plain_pod(), 5]}, "`pods[1]` is `5`, not an object"),
        ({"pods": [plain_pod("")]}, "`pods[0].metadata.name` is missing"),
        (
            {"pods": [plain_pod(nodeSelector={"a": 5})]},
            "`pods[0].spec.nodeSelector[a]` is `5`, not text",
        ),
        ({"instanceTypes": [{"name": "x"}]}, "`instanceTypes[0].requirements` is missing"),
        (
            {"instanceTypes": [plain_type(), plain_type()]},
            "`instanceTypes` name the same type twice",
        ),
        (
            {"instanceTypesByNodePool": {"default": ["none"]}},
            "`instanceTypesByNodePool.default[0]` is `none`, not on sale",
        ),
        ({"nodePools": [{}]}, "`nodePools[0].metadata.name` is missing"),
        ({"options": {"preferencePolicy": "x"}}, "`options.preferencePolicy` is `x`"),
        (
            {"nodes": [{"name": "n", "instanceType": "none"}]},
            "`nodes[0].instanceType` is `none`, not on sale",
        ),
        (
            {"nodes": [{"name": "n", "instanceType": "small", "nodePool": "none"}]},
            "`nodes[0].nodePool` is `none`, not there",
        ),
        (
            {"daemonSets": [{"metadata": {"name": "d"}}]},
            "`daemonSets[0].spec.template.spec.containers` is missing",
        ),
        ({"now": "noon"}, "`now` is `noon`, not a time"),
    ],
)
def test_a_fault_of_a_workload_is_reported_with_its_path(change: Json, problem: str) -> None:
    assert fault({**plain_workload(), **change}) == (
        f"`w.json` is no karpbench/v1 workload: {problem}"
    )


def test_a_workload_must_be_an_object() -> None:
    assert fault([]) == "`w.json` is no karpbench/v1 workload: is a list, not an object"


def test_a_pod_with_a_bad_name_is_named_by_its_place() -> None:
    meta = {"namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z", "uid": "u"}
    pods = [plain_pod(meta=meta), plain_pod(meta={**meta, "name": 5})]

    assert "`pods[1].metadata.name` is `5`, not text" in fault(plain_workload(pods=pods))


def test_nodepools_of_a_workload_are_validated_by_their_definition() -> None:
    inner = {"requirements": [{"key": "example.com/size", "operator": "In", "values": ["a"]}]}
    bare = {"metadata": {"name": "a"}, "spec": {"template": {"spec": inner}}}
    bad = {
        "apiVersion": "karpenter.sh/v1",
        "metadata": {"name": "b", "lables": {}},
        "spec": {"template": {"spec": {}}, "disruption": {"consolidateAfter": "abc"}},
    }
    old = {"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "c"}}

    faults = workload_faults(
        {"nodePools": [bare, bad, old], "wellKnownLabels": ["example.com/size"], "nodeOverlays": 1}
    )

    assert [(each.path, each.problem) for each in faults] == [
        ("nodePools[1].metadata.lables", "is no field of metadata"),
        ("nodePools[1].spec.disruption.consolidateAfter", "is `abc`"),
        (
            "nodePools[2].apiVersion",
            "is `karpenter.sh/v1beta1`, and NodePool has no such version",
        ),
    ]
