"""Pods read in bulk, and counted on the way: as if read one by one, and counted afterwards."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.adapters.mirror.censusbook import CensusBook
from karpy.adapters.mirror.shelves import Shelf
from karpy.codec.fields import FieldInvalid
from karpy.codec.podrows import PodRows
from karpy.codec.pods import PodReader
from karpy.model.census import NOBODY, Alike, Census
from karpy.model.pods import Pod
from tests.codec.plain import Json, plain_pod

DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
ANTI_AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "a"}},
            }
        ]
    }
}
HUGE = {"example.com/stars": "100000000000000000000000"}
METAS = st.fixed_dictionaries(
    {"namespace": st.sampled_from(["default", "shop"])},
    optional={
        "labels": st.sampled_from([{}, {"app": "a"}, {"app": "b"}]),
        "creationTimestamp": st.just("2026-01-01T00:00:00Z"),
        "deletionTimestamp": st.just("2026-01-02T00:00:00Z"),
        "ownerReferences": st.sampled_from([[], [DAEMON], [{**DAEMON, "kind": "ReplicaSet"}]]),
    },
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeName": st.sampled_from(["", "n0", "n1"]),
        "affinity": st.just(ANTI_AFFINITY),
        "tolerations": st.just([{"operator": "Exists"}]),
        "hostNetwork": st.just(True),
        "volumes": st.just([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
    },
)
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["Pending", "Running", "Failed"]),
        "nominatedNodeName": st.just("n1"),
        "conditions": st.sampled_from(
            [[], [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]]
        ),
    },
)
REQUESTS = st.sampled_from([None, {"cpu": "1"}, {"cpu": "250m", "memory": "1Gi"}, HUGE])
PORTS = st.sampled_from([None, [{"containerPort": 80, "hostPort": 80}]])


@st.composite
def plain_pods(draw: st.DrawFn) -> list[Json]:
    """Draw pods with names of their own."""
    pods = []
    for index in range(draw(st.integers(0, 8))):
        container: dict[str, Any] = {"name": "main"}
        if requests := draw(REQUESTS):
            container["resources"] = {"requests": requests}
        if ports := draw(PORTS):
            container["ports"] = ports
        meta = {**draw(METAS), "name": f"p{index}", "uid": f"u{index}"}
        spec = {"containers": [container], **draw(SPECS)}
        pods.append({"metadata": meta, "spec": spec, "status": draw(STATUSES)})
    return pods


def counted_afterwards(pods: list[Pod]) -> Census:
    shelf: Shelf[Pod] = Shelf()
    book = CensusBook(shelf)
    for pod in pods:
        shelf.put(pod.key, pod)
    return book.counted().census


def rows_of(census: Census) -> Counter[tuple[frozenset[tuple[str, str]], str, str]]:
    """Count pods that are counted by labels, namespace and node."""
    return Counter(
        (frozenset(alike.labels.items()), alike.namespace, node)
        for alike in census.crowd.having()
        for node in alike.nodes
    )


@given(plain_pods())
def test_pods_come_out_as_if_read_one_by_one(objs: list[Json]) -> None:
    rows, reader = PodRows(), PodReader()

    rows.read_all(objs)

    assert rows.counted() == tuple(reader.read(each) for each in objs)


@given(plain_pods())
def test_sums_are_as_if_counted_afterwards(objs: list[Json]) -> None:
    rows = PodRows()

    rows.read_all(objs)

    census = rows.counted().census
    # Unusual pods are left for whoever decides to count, which comes to the same.
    late, everyone = [pod for pod in census.uncounted if pod.node_name], [*rows.counted()]
    expected = counted_afterwards([pod for pod in everyone if pod not in late])
    assert rows_of(census) == rows_of(expected)
    assert replace(census, crowd=NOBODY, uncounted=(), demanding=()) == replace(
        expected, crowd=NOBODY, uncounted=(), demanding=()
    )
    assert census.demanding == counted_afterwards(everyone).demanding


def test_a_pod_on_a_node_is_counted_and_one_that_waits_is_not() -> None:
    rows = PodRows()
    meta = {"namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z", "uid": "u"}

    rows.read_all([plain_pod(meta=meta, nodeName=name) for name in ("n", "n", "")])

    census = rows.counted().census
    assert [*census.crowd.having()] == [Alike({}, "shop", ["n", "n"])]
    assert [pod.node_name for pod in census.uncounted] == [""]
    assert census.requests == {"n": {"pods": 2}}


def test_neither_a_pod_that_goes_nor_one_with_an_empty_node_is_counted_as_running() -> None:
    rows = PodRows()
    meta = {"namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {}}
    leaves = {**meta, "name": "leaves", "deletionTimestamp": "2026-01-02T00:00:00Z"}
    spec: Json = {"containers": [{"name": "main"}]}
    status = {"phase": "Running"}

    rows.read_all(
        [
            {"metadata": leaves, "spec": {**spec, "nodeName": "n"}, "status": status},
            {
                "metadata": {**meta, "name": "waits", "uid": "u"},
                "spec": {**spec, "nodeName": ""},
                "status": status,
            },
        ]
    )

    census = rows.counted().census
    assert census.requests == {}
    assert [(pod.name, pod.is_deleting) for pod in census.uncounted] == [
        ("leaves", True),
        ("waits", False),
    ]


def test_running_pods_are_told_apart_by_labels_and_found_by_them() -> None:
    rows = PodRows()
    meta = {"namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"}

    rows.read_all(
        {
            "metadata": {**meta, "name": f"p{node}", "uid": f"u{node}", "labels": labels},
            "spec": {"containers": [{"name": "main"}], "nodeName": node},
            "status": {"phase": "Running"},
        }
        for node, labels in (("n0", {"app": "a"}), ("n1", {"tier": "a"}), ("n2", {"app": "a"}))
    )

    found = rows.census().crowd.having({("app", "a"): None}.keys())
    assert [*found] == [Alike({"app": "a"}, "shop", ["n0", "n2"])]


def test_a_pod_that_cannot_be_read_is_named_by_its_place() -> None:
    with pytest.raises(FieldInvalid, match=r"pods\[1\].metadata.name"):
        PodRows().read_all([plain_pod(), {"metadata": {}, "spec": {"containers": [{}]}}])


def test_pods_with_the_same_labels_share_them_whatever_else_differs() -> None:
    rows = PodRows()
    meta = {"namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}}
    small, large = ({"resources": {"requests": {"cpu": cpu}}} for cpu in ("1", "2"))

    rows.read_all(
        {
            "metadata": {**meta, "labels": {"a": "b"}, "name": name, "uid": name},
            "spec": {"containers": [{"name": "main", **container}]},
        }
        for name, container in (("one", small), ("two", large), ("three", small))
    )

    one, two, three = rows.finished()
    assert one.labels is two.labels
    assert two.labels is three.labels
