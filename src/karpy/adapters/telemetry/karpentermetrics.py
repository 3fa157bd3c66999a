"""Karpenter's own metrics: names, types, labels and buckets are what dashboards ask for."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from karpy.adapters.telemetry.specs import (
    DEFAULT_BUCKETS,
    DURATION_BUCKETS,
    LIFETIME_BUCKETS,
    MetricSpec,
    age,
    counter,
    exponential,
    gauge,
    histogram,
    summary,
)
from karpy.model.labels import WELL_KNOWN

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
        "NodeClaims that are gone for good.",
    ),
    counter("nodeclaims_disrupted_total", _DISRUPTED, "NodeClaims that were given up, and why."),
    counter(
        "nodeclaims_unhealthy_disrupted_total",
        ("condition", "nodepool", "capacity_type", "image_id", "termination_mode"),
        "NodeClaims that were given up because their node is unhealthy.",
    ),
    histogram(
        "nodeclaims_instance_termination_duration_seconds",
        _POOL,
        exponential(1, 2, 11),
        "How long a cloud takes to end a machine.",
    ),
    histogram(
        "nodeclaims_termination_duration_seconds",
        _POOL,
        exponential(1, 2, 12),
        "How long a NodeClaim takes to go, from its deletion on.",
    ),
)

_NODES: Final = (
    counter("nodes_created_total", ("nodepool", "zone"), "Nodes that have registered."),
    counter("nodes_terminated_total", ("nodepool", "zone"), "Nodes that are gone for good."),
    counter("nodes_drained_total", _POOL, "Nodes that were drained."),
    summary(
        "nodes_termination_duration_seconds",
        _POOL,
        "How long a node takes to go, from its deletion on.",
    ),
    histogram(
        "nodes_lifetime_duration_seconds", _POOL, LIFETIME_BUCKETS, "How old nodes have become."
    ),
    counter("nodes_reboots_total", ("result",), "Reboots of nodes that came to an end."),
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
    "nodes_allocatable": "What pods may use of a node.",
    "nodes_total_pod_requests": "What pods on a node request, those of DaemonSets included.",
    "nodes_total_pod_limits": "What pods on a node are limited to, those of DaemonSets included.",
    "nodes_total_daemon_requests": "What pods of DaemonSets on a node request.",
    "nodes_total_daemon_limits": "What pods of DaemonSets on a node are limited to.",
    "nodes_system_overhead": "What the system keeps of a node's capacity.",
}

_POOLS: Final = (
    gauge("nodepools_limit", ("resource_type", "nodepool"), "What a NodePool may grow to."),
    gauge("nodepools_usage", ("resource_type", "nodepool"), "What a NodePool has grown to."),
    gauge("nodepools_cost_total", _POOL, "What the nodes of a NodePool cost in an hour."),
    counter(
        "nodepools_cost_tracker_errors_total",
        _POOL,
        "Nodes whose price could not be told.",
    ),
    gauge(
        "nodepools_allowed_disruptions",
        ("nodepool", "reason"),
        "How many nodes of a NodePool may be disrupted now.",
    ),
    gauge(
        "nodepools_nodes_consuming_budgets",
        ("nodepool", "reason"),
        "How many nodes of a NodePool use up its disruption budgets now.",
    ),
    gauge("cluster_utilization_percent", ("resource_type",), "How full the nodes are by requests."),
)

_PODS: Final = (
    gauge("pods_state", _POD_STATE, "1 for each pod; its labels tell how the pod is."),
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
        "How long pods take from our decision to a node.",
    ),
    histogram(
        "pods_provisioning_startup_duration_seconds",
        (),
        DURATION_BUCKETS,
        "How long pods take from our decision to ready.",
    ),
    age(
        "pods_provisioning_unbound_time_seconds",
        (*_POD, _DYNAMIC),
        "How long after our decision a pod has been without a node.",
    ),
    age(
        "pods_provisioning_unstarted_time_seconds",
        _POD,
        "How long after our decision a pod has not been ready yet.",
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
    counter("pods_eviction_requests_total", ("code",), "Evictions asked for, by the answer."),
    counter("pods_drained_total", ("reason",), "Pods that were made to leave their node."),
    counter(
        "pods_disruption_initiated_total",
        _DISRUPTED,
        "Pods that have to move because their NodeClaim was given up.",
    ),
    gauge(
        "pod_deletion_cost_nodes_with_pending_annotation_writes",
        _POOL,
        "Nodes whose pods are still to be marked with their deletion cost.",
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
    gauge("scheduler_ignored_pods_count", (), "Pending pods that the last decision left aside."),
    gauge(
        "scheduler_unschedulable_pods_count",
        ("controller",),
        "Pods that the last decision found no place for.",
    ),
    gauge(
        "scheduler_pending_pods_by_effective_zone_count",
        ("controller", "zone"),
        "Pending pods by the zone they must go to; `flexible` and `none` are the others.",
    ),
    gauge("cluster_state_node_count", (), "Nodes we know of."),
    gauge("cluster_state_synced", (), "1 if what we know can be decided on, else 0."),
    gauge("cluster_state_unsynced_time_seconds", (), "For how long it could not."),
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
        "Nodes that go before their replacement comes.",
    ),
    gauge(
        "voluntary_disruption_eligible_nodes",
        ("reason",),
        "Nodes that could be disrupted, by why they would be.",
    ),
    counter(
        "voluntary_disruption_consolidation_timeouts_total",
        ("consolidation_type",),
        "Consolidations that ran out of time.",
    ),
    counter(
        "voluntary_disruption_failed_validations_total",
        ("consolidation_type",),
        "Disruptions that were no longer right after the wait.",
    ),
    counter(
        "voluntary_disruption_queue_failures_total",
        ("decision", "reason", "consolidation_type"),
        "Disruptions that could not be carried out.",
    ),
    histogram(
        "consolidation_score",
        ("decision", "nodepool", "policy"),
        (0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0),
        "What balanced consolidations would save for what they disturb.",
    ),
    counter(
        "consolidation_moves_total",
        ("decision", "nodepool", "policy"),
        "Consolidations that were weighed.",
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
        "1; its labels tell what runs here, `goversion` being Python's.",
    ),
)


def karpenter_specs(well_known: Iterable[str] = WELL_KNOWN) -> list[MetricSpec]:
    """List Karpenter's metrics; those of nodes are labelled by all that a node is known by."""
    node = (*sorted({*map(label_name, well_known)}), "node_name", "phase", "managed")
    per_node = [
        *(gauge(name, (*node, "resource_type"), said) for name, said in _NODE_RESOURCES.items()),
        age("nodes_current_lifetime_seconds", node, "How old a node is."),
    ]
    families = (_CLAIMS, _NODES, per_node, _POOLS, _PODS, _SCHEDULER, _DISRUPTION, _CLOUD)
    return [replace(each, name=PREFIX + each.name) for family in families for each in family]


def label_name(key: str) -> str:
    """Write the key of a node's label as that of a metric: without its domain."""
    return key.rpartition("/")[2].replace("-", "_")
