"""Metrics that every controller of Kubernetes has: of conditions, queues and requests; our own."""

from collections.abc import Iterable
from typing import Final

from karpy.adapters.telemetry.karpentermetrics import karpenter_specs
from karpy.adapters.telemetry.specs import (
    DEFAULT_BUCKETS,
    RECONCILE_BUCKETS,
    MetricSpec,
    age,
    counter,
    exponential,
    gauge,
    histogram,
)
from karpy.model.labels import INITIALIZED, NODE_POOL, WELL_KNOWN

_STATUS_BUCKETS: Final = exponential(0.5, 2, 15)
_QUEUE_BUCKETS: Final = exponential(10e-9, 10, 12)
_REQUEST_BUCKETS: Final = exponential(0.001, 1.5, 20)
_BY_CONTROLLER: Final = ("controller",)
_BY_QUEUE: Final = ("name", "controller")
_OBJECT: Final = ("namespace", "name")

_CONTROLLERS: Final = (
    counter("controller_runtime_reconcile_total", ("controller", "result"), "Looks at objects."),
    counter("controller_runtime_reconcile_errors_total", _BY_CONTROLLER, "Looks that failed."),
    counter(
        "controller_runtime_terminal_reconcile_errors_total",
        _BY_CONTROLLER,
        "Looks that failed and are not repeated.",
    ),
    counter(
        "controller_runtime_reconcile_panics_total", _BY_CONTROLLER, "Looks that failed by a bug."
    ),
    counter(
        "controller_runtime_reconcile_timeouts_total", _BY_CONTROLLER, "Looks that took too long."
    ),
    histogram(
        "controller_runtime_reconcile_time_seconds",
        _BY_CONTROLLER,
        RECONCILE_BUCKETS,
        "How long looks at objects take.",
    ),
    gauge(
        "controller_runtime_max_concurrent_reconciles",
        _BY_CONTROLLER,
        "How many objects are looked at side by side at most.",
    ),
    gauge("controller_runtime_active_workers", _BY_CONTROLLER, "How many are looked at now."),
)

_QUEUES: Final = (
    gauge("workqueue_depth", (*_BY_QUEUE, "priority"), "Objects that wait to be looked at."),
    counter("workqueue_adds_total", _BY_QUEUE, "Objects that were put into the queue."),
    histogram(
        "workqueue_queue_duration_seconds", _BY_QUEUE, _QUEUE_BUCKETS, "How long objects wait."
    ),
    histogram(
        "workqueue_work_duration_seconds",
        _BY_QUEUE,
        _QUEUE_BUCKETS,
        "How long it takes until the next object can be taken.",
    ),
    gauge("workqueue_unfinished_work_seconds", _BY_QUEUE, "How long all looks have been going on."),
    gauge(
        "workqueue_longest_running_processor_seconds",
        _BY_QUEUE,
        "How long the longest look has been going on.",
    ),
    counter("workqueue_retries_total", _BY_QUEUE, "Objects that were put back to be tried again."),
)

_REQUESTS: Final = (
    histogram(
        "client_go_request_duration_seconds",
        ("verb", "group", "version", "kind", "subresource"),
        _REQUEST_BUCKETS,
        "How long requests to the API server take.",
    ),
    counter("client_go_request_total", ("code", "method"), "Requests to the API server."),
    counter("rest_client_requests_total", ("code", "method", "host"), "The same, by host."),
    gauge("leader_election_master_status", ("name",), "1 if we hold the lease, else 0."),
    counter("leader_election_slowpath_total", ("name",), "Renewals of the lease that took long."),
)

_OURS: Final = (
    gauge("karpy_refused_pods", ("reason",), "Pods that the last decision refused, by the reason."),
    counter(
        "karpy_launches_in_vain_total",
        ("why",),
        "Times that nodes were launched for the pods of one owner, and none of them got there.",
    ),
    counter("karpy_journal_records_total", ("result",), "Decisions recorded, or lost."),
    counter(
        "karpy_unreadable_objects_total",
        ("kind",),
        "Versions of objects that cannot be read and were left aside, by the kind.",
    ),
    counter("karpy_events_dropped_total", (), "Events that were too many or were not taken."),
)


def metric_specs(
    well_known: Iterable[str] = WELL_KNOWN, node_class_labels: Iterable[str] = ()
) -> list[MetricSpec]:
    """
    List every metric.

    `node_class_labels` are the keys by which nodes and claims carry the name of their node class,
    such as `karpenter.kwok.sh/kwoknodeclass`.
    """
    by_class = tuple(sorted(map(status_label, node_class_labels)))
    claim = (*by_class, status_label(NODE_POOL))
    return [
        *karpenter_specs(well_known),
        *_status_specs("operator_nodeclaim_", claim),
        *_status_specs("operator_nodepool_"),
        *_status_specs("operator_node_", (*claim, status_label(INITIALIZED))),
        *_status_specs("operator_capacitybuffer_"),
        *_status_specs("operator_", ("group", "kind"), DEFAULT_BUCKETS),
        *(*_CONTROLLERS, *_QUEUES, *_REQUESTS, *_OURS),
    ]


def status_label(key: str) -> str:
    """Write the key of an object's label as that of a metric about its conditions."""
    return key.translate(str.maketrans("/.-", "___"))


def _status_specs(
    prefix: str, more: tuple[str, ...] = (), buckets: tuple[float, ...] = _STATUS_BUCKETS
) -> list[MetricSpec]:
    status = f"{prefix}status_condition_"
    each = (*_OBJECT, "type", "status", "reason", *more)
    return [
        histogram(
            f"{status}transition_seconds",
            ("type", "status", "to_status", *more),
            buckets,
            "How long a condition had a status before it got the next.",
        ),
        gauge(f"{status}count", each, "1 for each condition of each object."),
        age(f"{status}current_status_seconds", each, "How long a condition has had its status."),
        counter(
            f"{status}transitions_total",
            ("type", "status", "reason", *more),
            "Changes of conditions.",
        ),
        age(
            f"{prefix}termination_current_time_seconds",
            (*_OBJECT, *more),
            "How long an object has been going.",
        ),
        histogram(
            f"{prefix}termination_duration_seconds",
            more,
            buckets,
            "How long objects take to go.",
        ),
    ]
