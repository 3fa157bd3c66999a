"""A wrong value anywhere in the input becomes a problem, and never an exception of the reader."""

import copy
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karpy.codec.catalogs import kwok_catalog, read_catalog
from karpy.codec.karpbench import read_workload
from karpy.codec.manifests import Reading, read_manifests
from karpy.errors import CatalogInvalid, WorkloadInvalid
from karpy.model.labels import CAPACITY_TYPE, ZONE
from karpy.model.settings import Settings
from tests.codec.plain import (
    Json,
    Value,
    container,
    plain_pod,
    plain_pool,
    plain_type,
    plain_workload,
    wants,
    workload,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"a": "b"}}, "namespaces": ["x"]}
NODE_TERM = {"matchExpressions": [wants("a", "In", "b"), wants("c", "Gt", "3")]}
RICH_SPEC: Json = {
    "containers": [
        container(requests={"cpu": "1"}, limits={"memory": "1Gi"}, ports=[{"hostPort": 80}])
    ],
    "initContainers": [container(requests={"cpu": "2"}, restartPolicy="Always")],
    "overhead": {"cpu": "100m"},
    "resources": {"requests": {"cpu": "3"}},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [NODE_TERM]},
            PREFERRED: [{"weight": 1, "preference": NODE_TERM}],
        },
        "podAffinity": {REQUIRED: [TERM]},
        "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]},
    },
    "topologySpreadConstraints": [
        {
            "topologyKey": ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [wants("a", "In", "b")]},
            "matchLabelKeys": ["a"],
        }
    ],
    "volumes": [
        {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "w", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}},
    ],
}
RICH_POD = plain_pod(
    meta={
        "labels": {"a": "b"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
    },
    **RICH_SPEC,
    status={
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}],
        "containerStatuses": [
            {
                "name": "main",
                "resources": {"requests": {"cpu": "1"}},
                "allocatedResources": {"cpu": "1"},
            }
        ],
    },
)
RICH_POOL = plain_pool(
    "p",
    wants(CAPACITY_TYPE, "In", "spot", minValues=1),
    weight=5,
    limits={"cpu": "10"},
    labels={"a": "b"},
    taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}],
    startupTaints=[{"key": "s", "effect": "NoSchedule"}],
    conditions=[{"type": "Ready", "status": "True"}],
)
META = {"name": "x", "namespace": "ns", "labels": {"a": "b"}, "annotations": {"a": "b"}}
OTHERS: list[Json] = [
    {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": META,
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "providerID": "p"},
        "status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}},
    },
    {
        "kind": "NodeClaim",
        "apiVersion": "karpenter.sh/v1",
        "metadata": META,
        "spec": {
            "nodeClassRef": {"group": "g", "kind": "k", "name": "n"},
            "requirements": [wants("a", "In", "b")],
            "taints": [{"key": "k", "effect": "NoSchedule"}],
        },
        "status": {"nodeName": "x", "capacity": {"cpu": "1"}, "conditions": [{"type": "a"}]},
    },
    {
        "kind": "NodeOverlay",
        "apiVersion": "karpenter.sh/v1alpha1",
        "metadata": META,
        "spec": {"requirements": [wants("a", "In", "b")], "price": "1", "capacity": {"x/y": "1"}},
    },
    {
        "kind": "CSINode",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": META,
        "spec": {"drivers": [{"name": "d", "allocatable": {"count": 5}}]},
    },
    {
        "kind": "StorageClass",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": META,
        "provisioner": "p",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}],
    },
    {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": META,
        "spec": {
            "csi": {"driver": "d"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [NODE_TERM]}},
        },
    },
    {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "metadata": META,
        "spec": {"storageClassName": "x", "volumeName": "x"},
        "status": {"phase": "Bound"},
    },
    {
        "kind": "PodDisruptionBudget",
        "apiVersion": "policy/v1",
        "metadata": META,
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "minAvailable": "5%"},
        "status": {"disruptionsAllowed": 1},
    },
    {"kind": "Service", "apiVersion": "v1", "metadata": META, "spec": {"selector": {"a": "b"}}},
    {"kind": "Namespace", "apiVersion": "v1", "metadata": META},
]
WORKLOADS = [
    workload(kind, replicas=2, pod=RICH_SPEC, meta=META, volumeClaimTemplates=[{"metadata": META}])
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicationController", "Job")
]
RICH: list[Json] = [RICH_POD, RICH_POOL, *WORKLOADS, *OTHERS]
RICH_WORKLOAD = plain_workload(
    pods=[RICH_POD],
    nodePools=[RICH_POOL],
    daemonSets=[WORKLOADS[2]],
    nodes=[{"name": "n", "nodePool": "p", "instanceType": "small", "taints": [], "labels": {}}],
    options={"preferencePolicy": "Ignore", "defaultConstraints": []},
    instanceTypesByNodePool={"p": ["small"]},
)

odd_values: st.SearchStrategy[Value] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        float("inf"),
        "",
        "x y",
        "-1",
        [],
        [None],
        {},
        {"a": None},
        {"": 1},
        [[]],
    ]
) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def places(value: Value, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """List the paths of all values within a value."""
    found = [path] if path else []
    inner = list(value.items()) if isinstance(value, dict) else []
    inner += list(enumerate(value)) if isinstance(value, list) else []
    return found + [place for key, each in inner for place in places(each, (*path, key))]


def changed(value: Value, path: tuple[str | int, ...], new: Value) -> Value:
    """Return a copy with one value replaced."""
    made = copy.deepcopy(value)
    target = made
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = new
    return made


def read(value: Value) -> Reading:
    return read_manifests([("f", json.dumps(value))], kwok_catalog(), Settings(), NOON)


@pytest.mark.parametrize("value", RICH)
def test_the_rich_objects_have_no_problems(value: Json) -> None:
    assert read(value).problems == ()


@settings(max_examples=250)
@given(st.data(), st.sampled_from(RICH), odd_values)
def test_an_odd_value_makes_problems_of_its_object_alone(
    data: st.DataObject, value: Json, odd: Value
) -> None:
    path = data.draw(st.sampled_from(places(value)))

    reading = read([plain_pod("before"), changed(value, path, odd), plain_pod("after")])

    assert len({each.where for each in reading.problems}) <= 1
    assert {"default/before", "default/after"} <= {pod.key for pod in reading.snapshot.pods}
    assert all(each.hint for each in reading.problems)


@settings(max_examples=150)
@given(st.data(), odd_values)
def test_an_odd_workload_is_read_or_refused(data: st.DataObject, odd: Value) -> None:
    path = data.draw(st.sampled_from(places(RICH_WORKLOAD)))
    value = changed(RICH_WORKLOAD, path, odd)

    assert is_read_or_refused(value)


def is_read_or_refused(value: Value) -> bool:
    try:
        return bool(read_workload(value).now)
    except WorkloadInvalid as error:
        return bool(error.hint)


@settings(max_examples=100)
@given(st.data(), odd_values)
def test_an_odd_catalog_is_read_or_refused(data: st.DataObject, odd: Value) -> None:
    catalog = [plain_type(volumeLimits={"d": 1}), {**plain_type("k"), "architecture": "amd64"}]
    path = data.draw(st.sampled_from(places(catalog)))

    assert is_taken_or_refused(changed(catalog, path, odd))


def is_taken_or_refused(value: Value) -> bool:
    try:
        return bool(read_catalog(value).types)
    except CatalogInvalid as error:
        return bool(error.hint)


@given(st.text(), st.text())
def test_any_text_can_be_read(first: str, second: str) -> None:
    reading = read_manifests([("a", first), ("b", second)], kwok_catalog(), Settings(), NOON)

    assert reading.snapshot.now == NOON
