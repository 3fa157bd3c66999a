import asyncio

import pytest

from karpy.adapters.telemetry.controllermetrics import (
    ControllerMetrics,
    RequestMetrics,
    request_labels,
)
from karpy.controllers.queue import WorkQueue
from karpy.errors import Conflict
from tests.adapters.kube.clocks import run
from tests.adapters.telemetry.books import Book

GAUGES = (
    "workqueue_depth",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "controller_runtime_active_workers",
    "controller_runtime_max_concurrent_reconciles",
)
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


async def work(key: str) -> float | None:
    """Take a second, and end in the way that the key says."""
    await asyncio.sleep(1)
    if key == "fails":
        raise Conflict("another writer was faster")
    if key == "breaks":
        raise ZeroDivisionError
    return {"well": None, "again": 60.0}[key]


def work_for(seconds: float, *keys: str) -> tuple[Book, list[float]]:
    """Have keys worked on, two at a time, for a while; return also the gauges at the end of it."""
    book = Book()
    gauges: list[float] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        observer = ControllerMetrics(book.metrics, loop.time).of("pods")
        queue = WorkQueue(observer, first_pause=100.0, longest_pause=100.0)
        task = asyncio.create_task(queue.run(work, workers=2))
        for key in keys:
            queue.add(key)
        await asyncio.sleep(seconds)
        gauges.extend(round(book.told(each, "controller")["pods"], 3) for each in GAUGES)
        task.cancel()

    run(story())
    return book, gauges


def test_looks_are_counted_by_how_they_end() -> None:
    book, _ = work_for(10, "well", "again", "fails", "breaks")

    assert book.told("controller_runtime_reconcile_total", "controller", "result") == {
        "pods success": 1.0,
        "pods requeue_after": 1.0,
        "pods requeue": 0.0,
        "pods error": 2.0,
    }
    assert book.told("controller_runtime_reconcile_panics_total", "controller") == {"pods": 1.0}
    assert book.told("controller_runtime_reconcile_time_seconds_sum", "controller") == {"pods": 4.0}


def test_a_queue_tells_how_long_keys_wait_and_are_worked_on() -> None:
    book, _ = work_for(10, "well", "again", "fails", "breaks")

    totals = {
        metric: book.told(f"workqueue_{metric}", "name", "controller")["pods pods"]
        for metric in (
            "adds_total",
            "retries_total",
            "queue_duration_seconds_sum",
            "queue_duration_seconds_count",
            "work_duration_seconds_sum",
        )
    }

    assert totals == {
        "adds_total": 4.0,
        "retries_total": 3.0,
        "queue_duration_seconds_sum": 2.0,
        "queue_duration_seconds_count": 4.0,
        "work_duration_seconds_sum": 4.0,
    }


def test_work_in_progress_is_measured() -> None:
    _, gauges = work_for(0.5, "well", "again", "fails")

    assert gauges == [1.0, 1.0, 0.5, 2.0, 2.0]


def test_metrics_without_samples_are_zero() -> None:
    book, gauges = work_for(1)

    errors = "controller_runtime_reconcile_errors_total"
    assert gauges == [0.0, 0.0, 0.0, 0.0, 2.0]
    assert book.told(errors, "controller") == {"pods": 0.0}
    assert book.told("workqueue_adds_total", "name") == {"pods": 0.0}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("LIST", "", "v1", "pods", "")),
        ("GET", "/api/v1/nodes/n1", ("GET", "", "v1", "nodes", "")),
        ("GET", "/api/v1/namespaces/shop", ("GET", "", "v1", "namespaces", "")),
        ("GET", "/api/v1/namespaces", ("LIST", "", "v1", "namespaces", "")),
        ("GET", "/api/v1/namespaces/shop/pods", ("LIST", "", "v1", "pods", "")),
        (
            "POST",
            "/api/v1/namespaces/shop/pods/web/eviction",
            ("CREATE", "", "v1", "pods", "eviction"),
        ),
        ("POST", CLAIMS, ("CREATE", "karpenter.sh", "v1", "nodeclaims", "")),
        ("PUT", f"{CLAIMS}/a", ("UPDATE", "karpenter.sh", "v1", "nodeclaims", "")),
        ("PATCH", f"{CLAIMS}/a/status", ("PATCH", "karpenter.sh", "v1", "nodeclaims", "status")),
        ("DELETE", f"{CLAIMS}/a", ("DELETE", "karpenter.sh", "v1", "nodeclaims", "")),
        ("GET", "/version", None),
        ("GET", "/apis", None),
        ("GET", "/api/v1", None),
        ("GET", "/apis/apps/v1", None),
        ("GET", "/", None),
    ],
)
def test_a_request_is_known_by_its_path(
    method: str, path: str, expected: tuple[str, ...] | None
) -> None:
    assert request_labels(method, path) == expected


def test_requests_are_counted_by_their_answers() -> None:
    book = Book()
    requests = RequestMetrics(book.metrics, "10.0.0.1:6443")

    requests.answered("GET", f"{CLAIMS}/a", 200, 0.25)
    requests.answered("GET", f"{CLAIMS}/b", 404, 0.5)
    requests.answered("POST", CLAIMS, 0, 1.0)
    requests.answered("GET", "/version", 200, 2.0)

    counted = {"200 GET": 2.0, "404 GET": 1.0, "<error> POST": 1.0}
    duration = "client_go_request_duration_seconds_sum"
    assert book.told("client_go_request_total", "code", "method") == counted
    assert book.told("rest_client_requests_total", "code", "method") == counted
    assert book.labels("rest_client_requests_total")[0]["host"] == "10.0.0.1:6443"
    assert book.told(duration, "verb", "kind") == {"GET nodeclaims": 0.75, "CREATE nodeclaims": 1.0}
