from datetime import timedelta

from msgspec.structs import replace

from karpy.adapters.telemetry.nodemetrics import NodeMetrics
from karpy.model.labels import ARCH, INITIALIZED
from tests.adapters.telemetry.books import Book
from tests.builders import daemon_pod, pod
from tests.core.lifecycle.scenes import claim, node

GI = 2**30
HERE = replace(
    node(labels={INITIALIZED: "true", ARCH: "arm64"}),
    capacity={"cpu": 4000, "memory": 8 * GI},
    allocatable={"cpu": 3900, "memory": 7 * GI},
)


def watched() -> Book:
    book = Book()
    NodeMetrics(book.metrics, book.records)
    return book


def test_a_node_is_exported_with_all_its_labels() -> None:
    book = watched()
    book.put_node(HERE)
    book.put_claim(claim())

    labels = book.labels("nodes_current_lifetime_seconds")

    assert labels == [
        {
            "arch": "arm64",
            "capacity_type": "",
            "instance_type": "",
            "managed": "true",
            "node_name": "node-1",
            "nodepool": "web",
            "os": "",
            "phase": "",
            "region": "",
            "windows_build": "",
            "zone": "zone-a",
        }
    ]
    assert book.told("nodes_current_lifetime_seconds", "managed") == {"true": 3600.0}


def test_resources_of_a_node_are_exported_by_resource() -> None:
    book = watched()
    book.put_node(HERE)
    web = replace(pod("web", on="node-1", cpu="1500m", memory="1Gi"), limits={"cpu": 2000})
    agent = daemon_pod("agent", on="node-1", cpu="100m", memory="1Gi")
    book.put_pods(web, agent, pod("elsewhere", on="node-2"), pod("pending"))

    told = {
        metric: book.told(f"nodes_{metric}", "resource_type")
        for metric in (
            "allocatable",
            "system_overhead",
            "total_pod_requests",
            "total_pod_limits",
            "total_daemon_requests",
            "total_daemon_limits",
        )
    }

    assert told == {
        "allocatable": {"cpu": 3.9, "memory": 7.0 * GI},
        "system_overhead": {"cpu": 0.1, "memory": GI},
        "total_pod_requests": {"cpu": 1.6, "memory": 2.0 * GI, "pods": 2.0},
        "total_pod_limits": {"cpu": 2.0, "pods": 2.0},
        "total_daemon_requests": {"cpu": 0.1, "memory": GI, "pods": 1.0},
        "total_daemon_limits": {"pods": 1.0},
    }


def test_utilization_is_exported_for_all_nodes() -> None:
    book = watched()
    book.put_node(replace(HERE, allocatable={"cpu": 4000}))
    book.put_pods(pod("web", on="node-1", cpu="1"))

    assert book.told("cluster_utilization_percent", "resource_type") == {"cpu": 25.0}


def test_a_deleted_node_has_no_series() -> None:
    book = watched()
    book.put_node(HERE)
    first = book.told("nodes_current_lifetime_seconds", "node_name")

    book.records.nodes.put("node-1", None)

    assert first == {"node-1": 3600.0}
    assert book.told("nodes_current_lifetime_seconds", "node_name") == {}


def test_a_node_grows_older_though_nothing_happens() -> None:
    book = watched()
    book.put_node(HERE)

    book.wait(timedelta(hours=1).total_seconds())

    assert book.told("nodes_current_lifetime_seconds", "node_name") == {"node-1": 7200.0}
