import asyncio

from karpy.adapters.telemetry.controllermetrics import ControllerMetrics
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


async def work(key: str) -> float | None:
    """Take a second, and end in the way that the key says."""
    await asyncio.sleep(1)
    if key == "fails":
        raise Conflict("somebody was faster")
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


def test_what_goes_on_is_told() -> None:
    _, gauges = work_for(0.5, "well", "again", "fails")

    assert gauges == [1.0, 1.0, 0.5, 2.0, 2.0]


def test_what_has_not_happened_is_told_as_nothing() -> None:
    book, gauges = work_for(1)

    errors = "controller_runtime_reconcile_errors_total"
    assert gauges == [0.0, 0.0, 0.0, 0.0, 2.0]
    assert book.told(errors, "controller") == {"pods": 0.0}
    assert book.told("workqueue_adds_total", "name") == {"pods": 0.0}
