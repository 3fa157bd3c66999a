"""All metrics: name, type, labels and buckets, as dashboards and alerts query them."""

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import accumulate, repeat
from operator import mul
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.labels import INITIALIZED, NODE_POOL, WELL_KNOWN


class MetricType(Enum):
    """The type of a metric; the value is its name in Prometheus' text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


class MetricSpec(Struct, frozen=True):
    """A metric: its full name, type, help and labels."""

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    is_age: bool = False
    """Whether the gauge is set to a moment, and reports its age at each scrape."""


_DURATIONS_TO_A_MINUTE: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0),
    *(20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
RECONCILE_BUCKETS: Final = _DURATIONS_TO_A_MINUTE
DURATION_BUCKETS: Final = (*_DURATIONS_TO_A_MINUTE, 120.0, 150.0, 300.0, 450.0, 600.0)
DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The default buckets of Prometheus' client libraries."""
_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
LIFETIME_BUCKETS: Final = (
    *(minutes * 60.0 for minutes in (15, 30, 45)),
    *(hours * _HOUR for hours in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
    *(days * _DAY for days in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
)
QUANTILES: Final = (0.0, 0.5, 0.9, 0.99, 1.0)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Make buckets, each `factor` times larger than the one before."""
    # Successive products, as in Go: the last digits of a bound are part of its label.
    return tuple(accumulate(repeat(factor, count - 1), mul, initial=float(start)))


def counter(name: str, labels: Sequence[str], meaning: str) -> MetricSpec:
    """Make the spec of a counter."""
    return MetricSpec(name, MetricType.COUNTER, meaning, tuple(labels))


def gauge(name: str, labels: Sequence[str], meaning: str) -> MetricSpec:
    """Make the spec of a gauge."""
    return MetricSpec(name, MetricType.GAUGE, meaning, tuple(labels))


def age(name: str, labels: Sequence[str], meaning: str) -> MetricSpec:
    """Make the spec of a gauge that is set to a moment and reports its age."""
    return MetricSpec(name, MetricType.GAUGE, meaning, tuple(labels), is_age=True)


def histogram(
    name: str, labels: Sequence[str], buckets: Sequence[float], meaning: str
) -> MetricSpec:
    """Make the spec of a histogram."""
    return MetricSpec(name, MetricType.HISTOGRAM, meaning, tuple(labels), tuple(buckets))


def summary(name: str, labels: Sequence[str], meaning: str) -> MetricSpec:
    """Make the spec of a summary."""
    return MetricSpec(name, MetricType.SUMMARY, meaning, tuple(labels))


PREFIX: Final = "karpenter_"

_POOL: Final = ("nodepool",)
_POD: Final = ("name", "namespace")
_DYNAMIC: Final = "dynamic_resources"
_DISRUPTED: Final = (
    "reason",
    "nodepool",
    "capacity_type",
    "consolidation_policy",
    "termination_mode",
)
_CALL: Final = ("controller", "method", "provider")
_POD_STATE: Final = (
    *("name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch"),
    *("capacity_type", "instance_type", "phase", "ready", "managed"),
)
_REBOOT_BUCKETS: Final = exponential(10, 2, 8)

_CLAIMS: Final = (
    counter(
        "nodeclaims_created_total",
        ("reason", "nodepool", "min_values_relaxed"),
        "NodeClaims that were created, and why.",
    ),
    counter(
        "nodeclaims_terminated_total",
        ("nodepool", "capacity_type", "zone"),
        "NodeClaims whose deletion is complete.",
    ),
    counter("nodeclaims_disrupted_total", _DISRUPTED, "NodeClaims that were disrupted, and why."),
    counter(
        "nodeclaims_unhealthy_disrupted_total",
        ("condition", "nodepool", "capacity_type", "image_id", "termination_mode"),
        "NodeClaims that were disrupted because their node is unhealthy.",
    ),
    histogram(
        "nodeclaims_instance_termination_duration_seconds",
        _POOL,
        exponential(1, 2, 11),
        "How long a cloud takes to terminate a machine.",
    ),
    histogram(
        "nodeclaims_termination_duration_seconds",
        _POOL,
        exponential(1, 2, 12),
        "How long the deletion of a NodeClaim takes.",
    ),
)

_NODES: Final = (
    counter("nodes_created_total", ("nodepool", "zone"), "Nodes that have registered."),
    counter("nodes_terminated_total", ("nodepool", "zone"), "Nodes whose deletion is complete."),
    counter("nodes_drained_total", _POOL, "Nodes that were drained."),
    summary(
        "nodes_termination_duration_seconds",
        _POOL,
        "How long the deletion of a node takes.",
    ),
    histogram(
        "nodes_lifetime_duration_seconds", _POOL, LIFETIME_BUCKETS, "The age of deleted nodes."
    ),
    counter("nodes_reboots_total", ("result",), "Reboots of nodes that have ended."),
    histogram(
        "nodes_reboot_duration_seconds",
        ("result",),
        _REBOOT_BUCKETS,
        "How long a reboot takes, from the request on.",
    ),
    histogram(
        "nodes_reboot_recovery_duration_seconds",
        (),
        _REBOOT_BUCKETS,
        "How long a node takes to be ready again after a reboot.",
    ),
)

_NODE_RESOURCES: Final = {
    "nodes_allocatable": "The allocatable resources of a node.",
    "nodes_total_pod_requests": "The requests of all pods on a node, those of DaemonSets included.",
    "nodes_total_pod_limits": "The limits of all pods on a node, those of DaemonSets included.",
    "nodes_total_daemon_requests": "The requests of DaemonSet pods on a node.",
    "nodes_total_daemon_limits": "The limits of DaemonSet pods on a node.",
    "nodes_system_overhead": "The capacity of a node minus its allocatable resources.",
}

_POOLS: Final = (
    gauge("nodepools_limit", ("resource_type", "nodepool"), "The limits of a NodePool."),
    gauge("nodepools_usage", ("resource_type", "nodepool"), "The resources of a NodePool's nodes."),
    gauge("nodepools_cost_total", _POOL, "The price of a NodePool's nodes in an hour."),
    counter(
        "nodepools_cost_tracker_errors_total",
        _POOL,
        "Nodes without a known price.",
    ),
    gauge(
        "nodepools_allowed_disruptions",
        ("nodepool", "reason"),
        "How many nodes of a NodePool may be disrupted now.",
    ),
    gauge(
        "nodepools_nodes_consuming_budgets",
        ("nodepool", "reason"),
        "How many nodes of a NodePool count against its disruption budgets now.",
    ),
    gauge("cluster_utilization_percent", ("resource_type",), "Requests in percent of allocatable."),
)

_PODS: Final = (
    gauge("pods_state", _POD_STATE, "1 for each pod; its labels describe the state of the pod."),
    summary("pods_startup_duration_seconds", (), "How long pods take from creation to ready."),
    age("pods_unstarted_time_seconds", _POD, "How long a pod has not been ready yet."),
    histogram(
        "pods_bound_duration_seconds",
        (_DYNAMIC,),
        DURATION_BUCKETS,
        "How long pods take from creation to a node.",
    ),
    age("pods_unbound_time_seconds", (*_POD, _DYNAMIC), "How long a pod has been without a node."),
    histogram(
        "pods_provisioning_bound_duration_seconds",
        (_DYNAMIC,),
        DURATION_BUCKETS,
        "How long pods take from Karpy's decision to a node.",
    ),
    histogram(
        "pods_provisioning_startup_duration_seconds",
        (),
        DURATION_BUCKETS,
        "How long pods take from Karpy's decision to ready.",
    ),
    age(
        "pods_provisioning_unbound_time_seconds",
        (*_POD, _DYNAMIC),
        "How long a pod has been without a node since Karpy's decision.",
    ),
    age(
        "pods_provisioning_unstarted_time_seconds",
        _POD,
        "How long a pod has not been ready since Karpy's decision.",
    ),
    age(
        "pods_provisioning_scheduling_undecided_time_seconds",
        _POD,
        "How long a pod has waited for a decision.",
    ),
    histogram(
        "pods_scheduling_decision_duration_seconds",
        (),
        DURATION_BUCKETS,
        "How long pods wait for their first decision.",
    ),
    counter("pods_eviction_requests_total", ("code",), "Requests for evictions, by HTTP status."),
    counter("pods_drained_total", ("reason",), "Pods that were evicted or deleted by a drain."),
    counter(
        "pods_disruption_initiated_total",
        _DISRUPTED,
        "Pods that have to move because their NodeClaim is disrupted.",
    ),
    gauge(
        "pod_deletion_cost_nodes_with_pending_annotation_writes",
        _POOL,
        "Nodes whose pods do not have their new deletion cost yet.",
    ),
    counter(
        "pod_deletion_cost_pod_annotation_writes_total",
        ("result",),
        "Deletion costs written on pods, by the outcome.",
    ),
)

_SCHEDULER: Final = (
    histogram(
        "scheduler_scheduling_duration_seconds",
        ("controller",),
        DURATION_BUCKETS,
        "How long decisions take.",
    ),
    gauge(
        "scheduler_queue_depth",
        ("controller", "scheduling_id"),
        "Pods that wait for their turn in a decision.",
    ),
    gauge(
        "scheduler_unfinished_work_seconds",
        ("controller", "scheduling_id"),
        "How long a decision has been going on, or how long the last one took.",
    ),
    gauge("scheduler_ignored_pods_count", (), "Pending pods that the last decision ignored."),
    gauge(
        "scheduler_unschedulable_pods_count",
        ("controller",),
        "Pods that the last decision found no place for.",
    ),
    gauge(
        "scheduler_pending_pods_by_effective_zone_count",
        ("controller", "zone"),
        "Pending pods by the zone they need; `flexible`: several zones, `none`: no zone.",
    ),
    gauge("cluster_state_node_count", (), "Nodes in the cache, registered or only launched."),
    gauge("cluster_state_synced", (), "1 if the cache is complete enough for decisions, else 0."),
    gauge("cluster_state_unsynced_time_seconds", (), "How long the cache has not been synced."),
)

_DISRUPTION: Final = (
    histogram(
        "voluntary_disruption_decision_evaluation_duration_seconds",
        ("reason", "consolidation_type"),
        DURATION_BUCKETS,
        "How long it takes to decide about disruptions.",
    ),
    counter(
        "voluntary_disruption_decisions_total",
        ("decision", "reason", "consolidation_type"),
        "Disruptions that were decided on.",
    ),
    counter(
        "voluntary_disruption_decisions_by_nodepool_total",
        ("nodepool", "decision", "reason", "consolidation_type"),
        "Disruptions that were decided on, by NodePool.",
    ),
    counter(
        "voluntary_disruption_terminate_first_decisions_total",
        ("nodepool", "reason", "terminate_first_reason"),
        "Nodes that are deleted before their replacement is launched.",
    ),
    gauge(
        "voluntary_disruption_eligible_nodes",
        ("reason",),
        "Nodes that could be disrupted, by the reason.",
    ),
    counter(
        "voluntary_disruption_consolidation_timeouts_total",
        ("consolidation_type",),
        "Consolidations that ran out of time.",
    ),
    counter(
        "voluntary_disruption_failed_validations_total",
        ("consolidation_type",),
        "Commands that failed their validation.",
    ),
    counter(
        "voluntary_disruption_queue_failures_total",
        ("decision", "reason", "consolidation_type"),
        "Commands that failed after their validation.",
    ),
    histogram(
        "consolidation_score",
        ("decision", "nodepool", "policy"),
        (0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0),
        "The score of consolidations under the policy Balanced.",
    ),
    counter(
        "consolidation_moves_total",
        ("decision", "nodepool", "policy"),
        "Consolidations that were scored under the policy Balanced.",
    ),
)

_CLOUD: Final = (
    histogram(
        "cloudprovider_duration_seconds", _CALL, DEFAULT_BUCKETS, "How long calls to a cloud take."
    ),
    counter(
        "cloudprovider_errors_total",
        (*_CALL, "error", "nodepool"),
        "Calls to a cloud that failed.",
    ),
    gauge(
        "build_info",
        ("version", "goversion", "goarch", "commit"),
        "1; its labels describe the build, `goversion` is Python's version.",
    ),
)


def karpenter_specs(well_known: Iterable[str] = WELL_KNOWN) -> list[MetricSpec]:
    """List Karpenter's metrics; those of nodes have the well-known labels of nodes as labels."""
    node = (*sorted({*map(label_name, well_known)}), "node_name", "phase", "managed")
    per_node = [
        *(gauge(name, (*node, "resource_type"), text) for name, text in _NODE_RESOURCES.items()),
        age("nodes_current_lifetime_seconds", node, "How old a node is."),
    ]
    families = (_CLAIMS, _NODES, per_node, _POOLS, _PODS, _SCHEDULER, _DISRUPTION, _CLOUD)
    return [replace(each, name=PREFIX + each.name) for family in families for each in family]


def label_name(key: str) -> str:
    """Return the label of metrics for a label of nodes: its key without the domain."""
    return key.rpartition("/")[2].replace("-", "_")


_STATUS_BUCKETS: Final = exponential(0.5, 2, 15)
_QUEUE_BUCKETS: Final = exponential(10e-9, 10, 12)
_REQUEST_BUCKETS: Final = exponential(0.001, 1.5, 20)
_BY_CONTROLLER: Final = ("controller",)
_BY_QUEUE: Final = ("name", "controller")
_OBJECT: Final = ("namespace", "name")

_CONTROLLERS: Final = (
    counter("controller_runtime_reconcile_total", ("controller", "result"), "Reconciles."),
    counter("controller_runtime_reconcile_errors_total", _BY_CONTROLLER, "Reconciles that failed."),
    counter(
        "controller_runtime_terminal_reconcile_errors_total",
        _BY_CONTROLLER,
        "Reconciles that failed and are not retried.",
    ),
    counter(
        "controller_runtime_reconcile_panics_total",
        _BY_CONTROLLER,
        "Reconciles that failed by a bug.",
    ),
    counter(
        "controller_runtime_reconcile_timeouts_total",
        _BY_CONTROLLER,
        "Reconciles that took too long.",
    ),
    histogram(
        "controller_runtime_reconcile_time_seconds",
        _BY_CONTROLLER,
        RECONCILE_BUCKETS,
        "How long reconciles take.",
    ),
    gauge(
        "controller_runtime_max_concurrent_reconciles",
        _BY_CONTROLLER,
        "The largest number of concurrent reconciles.",
    ),
    gauge("controller_runtime_active_workers", _BY_CONTROLLER, "Reconciles under way."),
)

_QUEUES: Final = (
    gauge("workqueue_depth", (*_BY_QUEUE, "priority"), "Objects that wait for a reconcile."),
    counter("workqueue_adds_total", _BY_QUEUE, "Objects that were put into the queue."),
    histogram(
        "workqueue_queue_duration_seconds",
        _BY_QUEUE,
        _QUEUE_BUCKETS,
        "How long objects wait for a reconcile.",
    ),
    histogram(
        "workqueue_work_duration_seconds",
        _BY_QUEUE,
        _QUEUE_BUCKETS,
        "How long a worker is busy with an object.",
    ),
    gauge(
        "workqueue_unfinished_work_seconds",
        _BY_QUEUE,
        "The sum of the durations of all reconciles under way.",
    ),
    gauge(
        "workqueue_longest_running_processor_seconds",
        _BY_QUEUE,
        "The duration of the longest reconcile under way.",
    ),
    counter("workqueue_retries_total", _BY_QUEUE, "Objects that were queued again for a retry."),
)

_REQUESTS: Final = (
    histogram(
        "client_go_request_duration_seconds",
        ("verb", "group", "version", "kind", "subresource"),
        _REQUEST_BUCKETS,
        "How long requests to the API server take.",
    ),
    counter("client_go_request_total", ("code", "method"), "Requests to the API server."),
    counter(
        "rest_client_requests_total",
        ("code", "method", "host"),
        "Requests to the API server, by host.",
    ),
    gauge("leader_election_master_status", ("name",), "1 if this process is leader, else 0."),
    counter("leader_election_slowpath_total", ("name",), "Renewals of the lease that took long."),
)

_OURS: Final = (
    gauge("karpy_refused_pods", ("reason",), "Pods that the last decision refused, by the reason."),
    counter(
        "karpy_launches_in_vain_total",
        ("why",),
        "Launches for the pods of one owner after which none of these pods was bound to the node.",
    ),
    age(
        "karpy_nodes_unconsidered_time_seconds",
        ("nodepool", "node_name"),
        "How long ago all disruption methods last considered a node.",
    ),
    counter("karpy_journal_records_total", ("result",), "Decisions recorded, or lost."),
    counter(
        "karpy_unreadable_objects_total",
        ("kind",),
        "Versions of objects that cannot be read and were skipped, by the kind.",
    ),
    counter(
        "karpy_events_dropped_total",
        (),
        "Events that were not written: too many, or refused by the API server.",
    ),
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
        *status_specs("operator_nodeclaim_", claim),
        *status_specs("operator_nodepool_"),
        *status_specs("operator_node_", (*claim, status_label(INITIALIZED))),
        *status_specs("operator_capacitybuffer_"),
        *status_specs("operator_", ("group", "kind"), DEFAULT_BUCKETS),
        *(*_CONTROLLERS, *_QUEUES, *_REQUESTS, *_OURS),
    ]


def status_label(key: str) -> str:
    """Return the label of condition metrics for a label of objects."""
    return key.translate(str.maketrans("/.-", "___"))


def status_specs(
    prefix: str, more: tuple[str, ...] = (), buckets: tuple[float, ...] = _STATUS_BUCKETS
) -> list[MetricSpec]:
    """List the metrics of the conditions of a kind, such as `operator_nodepool_`."""
    status = f"{prefix}status_condition_"
    each = (*_OBJECT, "type", "status", "reason", *more)
    return [
        histogram(
            f"{status}transition_seconds",
            ("type", "status", "to_status", *more),
            buckets,
            "How long a condition kept a status before it changed.",
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
            "How long ago the deletion of an object began.",
        ),
        histogram(
            f"{prefix}termination_duration_seconds",
            more,
            buckets,
            "How long the deletion of objects takes.",
        ),
    ]
