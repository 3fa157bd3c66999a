"""Metrics of controllers, their queues and API requests, by the names of controller-runtime."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from karpy.adapters.telemetry.metrics import GaugeValues, Metrics
from karpy.core.lifecycle.changes import Count
from karpy.ports.observers import ReconcileResult

_RUNTIME: Final = "controller_runtime_"
_FAILURES: Final = (
    f"{_RUNTIME}reconcile_errors_total",
    f"{_RUNTIME}terminal_reconcile_errors_total",
    f"{_RUNTIME}reconcile_panics_total",
    f"{_RUNTIME}reconcile_timeouts_total",
)
_RESULTS: Final = ("success", "requeue_after", "requeue", "error")
_ENDS: Final = {
    **{each: each.value for each in ReconcileResult},
    ReconcileResult.BUG: ReconcileResult.ERROR.value,
}
_PRIORITY: Final = "0"
"""All objects of a queue have the same priority."""
_VERBS: Final = {"POST": "CREATE", "PUT": "UPDATE"}
_NO_ANSWER: Final = "<error>"
_API, _APIS, _NAMESPACES = "api", "apis", "namespaces"


class ControllerMetrics:
    """Metrics of all controllers; each controller has its own observer."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._now = now
        self._observers: dict[str, ControllerObserver] = {}

    def of(self, controller: str) -> "ControllerObserver":
        """Return the observer of a controller, whose counters start at zero."""
        observer = self._observers.get(controller)
        if observer is None:
            observer = ControllerObserver(self._metrics, controller, self._now)
            self._observers[controller] = observer
        return observer


class ControllerObserver:
    """The port Observer: counts reconciles, and collects the gauges of its queue at a scrape."""

    def __init__(self, metrics: Metrics, controller: str, now: Callable[[], float]) -> None:
        self._now = now
        self._metrics = metrics
        self._controller = controller
        self._waiting: dict[str, float] = {}
        """When each waiting key was queued."""
        self._running: dict[str, float] = {}
        by = {"controller": controller}
        queue = {"name": controller, "controller": controller}
        self._added = metrics.meter("workqueue_adds_total", queue)
        self._retried = metrics.meter("workqueue_retries_total", queue)
        self._waited = metrics.meter("workqueue_queue_duration_seconds", queue)
        self._worked = metrics.meter("workqueue_work_duration_seconds", queue)
        self._reconciled = metrics.meter(f"{_RUNTIME}reconcile_time_seconds", by)
        self._ended = {
            result: metrics.meter(f"{_RUNTIME}reconcile_total", {**by, "result": result})
            for result in _RESULTS
        }
        self._panicked = metrics.meter(f"{_RUNTIME}reconcile_panics_total", by)
        for count in (self._added, self._retried, *self._ended.values()):
            count(0.0)
        for metric in _FAILURES:
            metrics.count(Count(metric, by, 0.0))
        metrics.add_source(self._collect)

    def set_workers(self, workers: int) -> None:
        """Set the greatest number of concurrent reconciles."""
        labels = {"controller": self._controller}
        self._metrics.set(f"{_RUNTIME}max_concurrent_reconciles", float(workers), labels)

    def add(self, key: str) -> None:
        """Count a key that is queued."""
        self._added(1.0)
        self._waiting.setdefault(key, self._now())

    def take(self, key: str) -> None:
        """Measure how long a key has waited; its reconcile begins."""
        now = self._now()
        since = self._waiting.pop(key, None)
        if since is not None:
            self._waited(now - since)
        self._running[key] = now

    def finish(self, key: str, result: ReconcileResult) -> None:
        """Count the result of a reconcile, and measure how long it took."""
        began = self._running.pop(key, None)
        if began is not None:
            took = self._now() - began
            self._worked(took)
            self._reconciled(took)
        if result is ReconcileResult.BUG:
            self._panicked(1.0)
        self._ended[_ENDS[result]](1.0)

    def put_off(self, key: str) -> None:
        """Count a key that is delayed."""
        del key
        self._retried(1.0)

    def _collect(self) -> Callable[[], GaugeValues]:
        now = self._now()
        durations = [now - began for began in self._running.values()]
        return partial(
            _queue_gauges,
            self._controller,
            {
                "workqueue_depth": float(len(self._waiting)),
                "workqueue_unfinished_work_seconds": sum(durations),
                "workqueue_longest_running_processor_seconds": max(durations, default=0.0),
                f"{_RUNTIME}active_workers": float(len(durations)),
            },
        )


def _queue_gauges(controller: str, values: Mapping[str, float]) -> GaugeValues:
    labels = {
        "workqueue_depth": (controller, controller, _PRIORITY),
        f"{_RUNTIME}active_workers": (controller,),
    }
    return {
        metric: {labels.get(metric, (controller, controller)): value}
        for metric, value in values.items()
    }


class RequestMetrics:
    """Counts requests to one server and measures how long its answers take."""

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        self._counted: dict[tuple[str, int], tuple[Callable[[float], None], ...]] = {}
        self._measured: dict[tuple[str, ...], Callable[[float], None]] = {}

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Record a request: method, path, status (0 without an answer) and duration."""
        for count in self._counts(method, status):
            count(1.0)
        labels = request_labels(method, path)
        if labels is None:
            return
        measure = self._measured.get(labels)
        if measure is None:
            names = ("verb", "group", "version", "kind", "subresource")
            measure = self._measured[labels] = self._metrics.meter(
                "client_go_request_duration_seconds", dict(zip(names, labels, strict=True))
            )
        measure(seconds)

    def _counts(self, method: str, status: int) -> tuple[Callable[[float], None], ...]:
        known = self._counted.get((method, status))
        if known is None:
            labels = {"code": str(status) if status else _NO_ANSWER, "method": method}
            known = self._counted[method, status] = (
                self._metrics.meter("client_go_request_total", labels),
                self._metrics.meter("rest_client_requests_total", {**labels, "host": self._host}),
            )
        return known


def request_labels(method: str, path: str) -> tuple[str, str, str, str, str] | None:
    """Return verb, group, version, resource and subresource of a request; None for other paths."""
    root, *parts = path.strip("/").split("/")
    group = ""
    if root == _APIS and parts:
        group, *parts = parts
    elif root != _API:
        return None
    if not parts:
        return None
    version, *parts = parts
    if parts[:1] == [_NAMESPACES] and parts[2:]:
        parts = parts[2:]
    if not parts:
        return None
    kind, *rest = parts
    verb = _VERBS.get(method, method)
    if method == "GET" and not rest:
        verb = "LIST"
    return verb, group, version, kind, rest[1] if len(rest) > 1 else ""
