"""The dashboards: overview, controllers, capacity, cost and disruption."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.tidy.monitoring.panels import (
    Dashboard,
    Query,
    Row,
    dashboard_text,
    graph,
    stack,
    stat,
)
from tests.tidy.repository import ROOT

FOLDER: Final = ROOT / "deploy" / "grafana"
_RATE: Final = "$__rate_interval"
_POOL: Final = 'nodepool=~"$nodepool"'
_HOURS_PER_MONTH: Final = 730


def _quantile(share: float, metric: str, by: str = "", where: str = "") -> str:
    """Return the query for a quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    selector = f"{{{where}}}" if where else ""
    return (
        f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{selector}[{_RATE}])))"
    )


def _rate(metric: str, by: str, where: str = "") -> str:
    """Return the query for a rate per second."""
    selector = f"{{{where}}}" if where else ""
    return f"sum by ({by}) (rate({metric}{selector}[{_RATE}]))"


def _nodes_by(label: str) -> Query:
    """Return the query for the number of nodes of the chosen NodePools."""
    nodes = f"karpenter_nodes_current_lifetime_seconds{{{_POOL}}}"
    return Query(f"count by ({label}) ({nodes})", f"{{{{{label}}}}}")


def _of_pools(function: str, metric: str, by: str) -> str:
    """Return the query that aggregates a metric over the chosen NodePools."""
    return f"{function} by ({by}) ({metric}{{{_POOL}}})"


def _both(metric: str, by: str = "", where: str = "") -> tuple[Query, Query]:
    """Return the queries for the median and the 99th percentile."""
    named = f" {{{{{by}}}}}" if by else ""
    return (
        Query(_quantile(0.5, metric, by, where), f"p50{named}"),
        Query(_quantile(0.99, metric, by, where), f"p99{named}"),
    )


_COST: Final = stat(
    "Cost per hour",
    "What the nodes of all NodePools cost in an hour, by the prices of the catalog.",
    "sum(karpenter_nodepools_cost_total)",
    "currencyUSD",
)
_REFUSED: Final = graph(
    "Pods refused, by reason",
    "Pods that the last decision found no place for. The names are those of docs/refusals.md.",
    Query("sum by (reason) (karpy_refused_pods) > 0", "{{reason}}"),
)
_CLOUD_ERRORS: Final = graph(
    "Errors of the cloud",
    "Calls to the cloud that failed, by what was asked and what went wrong.",
    Query(_rate("karpenter_cloudprovider_errors_total", "method, error"), "{{method}} {{error}}"),
    unit="reqps",
)

OVERVIEW: Final = Dashboard(
    "karpy-overview",
    "Karpy / Overview",
    "Is the autoscaler well, and what does the cluster look like?",
    (
        Row(
            "Now",
            (
                stat(
                    "Nodes", "Nodes that Karpy knows of.", "max(karpenter_cluster_state_node_count)"
                ),
                _COST,
                stat(
                    "Pods without a place",
                    "Pods that the last decision refused.",
                    "sum(karpy_refused_pods) or vector(0)",
                    red_above=1,
                ),
                stat(
                    "Oldest undecided pod",
                    "How long a pod has waited for its first decision. Seconds are usual.",
                    "max(karpenter_pods_provisioning_scheduling_undecided_time_seconds) or"
                    " vector(0)",
                    "s",
                    red_above=300,
                ),
                stat(
                    "Leaders",
                    "Replicas that hold the lease. One is right.",
                    "sum(leader_election_master_status)",
                    red_above=2,
                ),
                stat(
                    "Out of sync for",
                    "For how long what is known could not be decided on. 0 is right.",
                    "max(karpenter_cluster_state_unsynced_time_seconds)",
                    "s",
                    red_above=120,
                ),
            ),
        ),
        Row(
            "Pods and nodes",
            (
                stack(
                    "Pods by phase",
                    "All pods of the cluster.",
                    Query("count by (phase) (karpenter_pods_state)", "{{phase}}"),
                ),
                stack(
                    "Nodes by NodePool",
                    "Nodes by the NodePool they are of; without one are those of node groups.",
                    Query(
                        "count by (nodepool) (karpenter_nodes_current_lifetime_seconds)",
                        "{{nodepool}}",
                    ),
                ),
                graph(
                    "How full nodes are",
                    "What pods request of what nodes have, in percent.",
                    Query(
                        "max by (resource_type) (karpenter_cluster_utilization_percent)",
                        "{{resource_type}}",
                    ),
                    unit="percent",
                ),
                graph(
                    "Nodes that came and went",
                    "NodeClaims created and gone.",
                    Query(
                        f"sum(rate(karpenter_nodeclaims_created_total[{_RATE}])) * 60", "created"
                    ),
                    Query(
                        f"sum(rate(karpenter_nodeclaims_terminated_total[{_RATE}])) * 60", "gone"
                    ),
                    unit="opm",
                ),
                graph(
                    "How long pods wait",
                    "From creation to ready, as the pods of the last minutes had it.",
                    Query(
                        "max by (quantile)"
                        ' (karpenter_pods_startup_duration_seconds{quantile=~"0.5|0.99"})',
                        "p{{quantile}}",
                    ),
                    unit="s",
                ),
                _REFUSED,
            ),
        ),
        Row(
            "Decisions",
            (
                graph(
                    "How long decisions take",
                    "Decisions about pending pods.",
                    *_both("karpenter_scheduler_scheduling_duration_seconds"),
                    unit="s",
                ),
                graph(
                    "Nodes disrupted on purpose",
                    "Decisions about nodes, by what is done and why.",
                    Query(
                        _rate("karpenter_voluntary_disruption_decisions_total", "decision, reason"),
                        "{{decision}} {{reason}}",
                    ),
                    unit="ops",
                ),
                _CLOUD_ERRORS,
            ),
        ),
    ),
)

CONTROLLERS: Final = Dashboard(
    "karpy-controllers",
    "Karpy / Controllers",
    "Does the autoscaler keep up, and what does it need for that?",
    (
        Row(
            "Work",
            (
                graph(
                    "Reconciles",
                    "How often each controller works on an object.",
                    Query(
                        _rate("controller_runtime_reconcile_total", "controller"), "{{controller}}"
                    ),
                    unit="ops",
                ),
                graph(
                    "Reconciles that failed",
                    "They are repeated, later each time.",
                    Query(
                        _rate("controller_runtime_reconcile_errors_total", "controller"),
                        "{{controller}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "How long reconciles take",
                    "The slowest hundredth.",
                    Query(
                        _quantile(0.99, "controller_runtime_reconcile_time_seconds", "controller"),
                        "{{controller}}",
                    ),
                    unit="s",
                ),
                graph(
                    "Objects in queues",
                    "Objects that wait to be worked on.",
                    Query("sum by (name) (workqueue_depth) > 0", "{{name}}"),
                ),
                graph(
                    "How long objects wait in queues",
                    "The slowest hundredth.",
                    Query(_quantile(0.99, "workqueue_queue_duration_seconds", "name"), "{{name}}"),
                    unit="s",
                ),
                graph(
                    "The longest work going on",
                    "Something that never ends shows here.",
                    Query(
                        "max by (name) (workqueue_longest_running_processor_seconds) > 0",
                        "{{name}}",
                    ),
                    unit="s",
                ),
            ),
        ),
        Row(
            "API server",
            (
                graph(
                    "Requests, by answer",
                    "429 is a server that asks for patience, 409 a conflict that is tried again.",
                    Query(
                        _rate("rest_client_requests_total", "code, method"), "{{method}} {{code}}"
                    ),
                    unit="reqps",
                ),
                graph(
                    "How long requests take",
                    "The slowest hundredth, by verb.",
                    Query(
                        _quantile(0.99, "client_go_request_duration_seconds", "verb"), "{{verb}}"
                    ),
                    unit="s",
                ),
                graph(
                    "Leader",
                    "Which replica holds the lease, and renewals that took long.",
                    Query(
                        "max by (pod, instance) (leader_election_master_status)",
                        "{{pod}} {{instance}}",
                    ),
                    Query(
                        f"sum(increase(leader_election_slowpath_total[{_RATE}]))", "slow renewals"
                    ),
                ),
            ),
        ),
        Row(
            "Process",
            (
                graph(
                    "Memory",
                    "What the process has in memory.",
                    Query(
                        "process_resident_memory_bytes and on (instance) karpenter_build_info",
                        "{{instance}}",
                    ),
                    unit="bytes",
                ),
                graph(
                    "CPU",
                    "Cores in use.",
                    Query(
                        f"rate(process_cpu_seconds_total[{_RATE}]) and on (instance)"
                        " karpenter_build_info",
                        "{{instance}}",
                    ),
                ),
                graph(
                    "What was put aside",
                    "Objects that cannot be read, events that were dropped, decisions that"
                    " were not recorded.",
                    Query(_rate("karpy_unreadable_objects_total", "kind"), "unreadable {{kind}}"),
                    Query(f"sum(rate(karpy_events_dropped_total[{_RATE}]))", "events dropped"),
                    Query(
                        f"sum by (result) (rate(karpy_journal_records_total[{_RATE}]))",
                        "journal {{result}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "Calls to the cloud",
                    "How often each is made.",
                    Query(
                        _rate("karpenter_cloudprovider_duration_seconds_count", "method"),
                        "{{method}}",
                    ),
                    unit="reqps",
                ),
                graph(
                    "How long calls to the cloud take",
                    "The slowest hundredth.",
                    Query(
                        _quantile(0.99, "karpenter_cloudprovider_duration_seconds", "method"),
                        "{{method}}",
                    ),
                    unit="s",
                ),
                _CLOUD_ERRORS,
            ),
        ),
    ),
)


def _share(resource: str) -> Query:
    where = f'{{resource_type="{resource}", {_POOL}}}'
    requests = f"sum by (nodepool) (karpenter_nodes_total_pod_requests{where})"
    return Query(
        f"{requests} / sum by (nodepool) (karpenter_nodes_allocatable{where})", "{{nodepool}}"
    )


CAPACITY: Final = Dashboard(
    "karpy-capacity",
    "Karpy / Capacity",
    "Which nodes are there, how full are they, and how fast do pods get theirs?",
    (
        Row(
            "Nodes",
            (
                stack(
                    "By instance type",
                    "Nodes of the chosen NodePools.",
                    _nodes_by("instance_type"),
                ),
                stack(
                    "By zone",
                    "Nodes of the chosen NodePools.",
                    _nodes_by("zone"),
                ),
                stack(
                    "By capacity type",
                    "Nodes of the chosen NodePools.",
                    _nodes_by("capacity_type"),
                ),
                graph(
                    "NodePools and their limits",
                    "What a NodePool has of what it may grow to. At 100% nothing more is launched.",
                    Query(
                        f"karpenter_nodepools_usage{{{_POOL}}} / on (nodepool, resource_type)"
                        f" (karpenter_nodepools_limit{{{_POOL}}} > 0)",
                        "{{nodepool}} {{resource_type}}",
                    ),
                    unit="percentunit",
                ),
                graph(
                    "CPU requested",
                    "Requests against what pods may use.",
                    _share("cpu"),
                    unit="percentunit",
                ),
                graph(
                    "Memory requested",
                    "Requests against what pods may use.",
                    _share("memory"),
                    unit="percentunit",
                ),
            ),
        ),
        Row(
            "Pods",
            (
                graph(
                    "From creation to a node",
                    "How long pods wait for a node.",
                    *_both("karpenter_pods_bound_duration_seconds"),
                    unit="s",
                ),
                graph(
                    "From our decision to ready",
                    "How long pods wait after their node was decided on.",
                    *_both("karpenter_pods_provisioning_startup_duration_seconds"),
                    unit="s",
                ),
                graph(
                    "Pending pods by zone",
                    "Where they must go; `flexible` may go anywhere, `none` nowhere.",
                    Query(
                        "sum by (zone)"
                        " (karpenter_scheduler_pending_pods_by_effective_zone_count) > 0",
                        "{{zone}}",
                    ),
                ),
                _REFUSED,
                graph(
                    "Pods left aside",
                    "Pending pods that the last decision left aside, and those without a place.",
                    Query("max(karpenter_scheduler_ignored_pods_count)", "left aside"),
                    Query("sum(karpenter_scheduler_unschedulable_pods_count)", "without a place"),
                ),
                graph(
                    "Launches in vain",
                    "Nodes that were launched for pods that did not get there, by why.",
                    Query(_rate("karpy_launches_in_vain_total", "why"), "{{why}}"),
                    unit="ops",
                ),
            ),
        ),
        Row(
            "Launches",
            (
                graph(
                    "NodeClaims created, by reason",
                    "What they were created for.",
                    Query(
                        _rate("karpenter_nodeclaims_created_total", "reason", _POOL), "{{reason}}"
                    ),
                    unit="ops",
                ),
                graph(
                    "From NodeClaim to node",
                    "How long a NodeClaim takes to be launched, registered and initialized.",
                    Query(
                        _quantile(
                            0.99,
                            "operator_nodeclaim_status_condition_transition_seconds",
                            "type",
                            'to_status="True", type=~"Launched|Registered|Initialized"',
                        ),
                        "{{type}}",
                    ),
                    unit="s",
                ),
                graph(
                    "Offerings that were sold out or refused (AWS)",
                    "What CreateFleet could not launch, by zone and reason.",
                    Query(
                        _rate(
                            "karpenter_cloudprovider_instance_launch_failures_total",
                            "zone, capacity_type, reason",
                        ),
                        "{{zone}} {{capacity_type}} {{reason}}",
                    ),
                    unit="ops",
                ),
            ),
        ),
    ),
)

COST: Final = Dashboard(
    "karpy-cost",
    "Karpy / Cost",
    "What do nodes cost, and how much of that is used?",
    (
        Row(
            "Now",
            (
                _COST,
                stat(
                    "Cost per month",
                    "The same, for 730 hours.",
                    f"sum(karpenter_nodepools_cost_total) * {_HOURS_PER_MONTH}",
                    "currencyUSD",
                ),
                stat(
                    "Per requested core and month",
                    "What a core costs that pods ask for. Falls as nodes fill up, and with the"
                    " price.",
                    f"sum(karpenter_nodepools_cost_total) * {_HOURS_PER_MONTH} / sum("
                    'karpenter_nodes_total_pod_requests{resource_type="cpu", managed="true"})',
                    "currencyUSD",
                ),
                stat(
                    "Unused, per month",
                    "The cost of the cores that no pod asks for.",
                    f"sum(karpenter_nodepools_cost_total) * {_HOURS_PER_MONTH} * (1 - sum("
                    'karpenter_nodes_total_pod_requests{resource_type="cpu", managed="true"})'
                    " / sum("
                    'karpenter_nodes_allocatable{resource_type="cpu", managed="true"}))',
                    "currencyUSD",
                ),
                stat(
                    "Spot",
                    "The share of nodes that are spot.",
                    'count(karpenter_nodes_current_lifetime_seconds{capacity_type="spot"}) / count('
                    'karpenter_nodes_current_lifetime_seconds{managed="true"})',
                    "percentunit",
                ),
                stat(
                    "Nodes without a price, 1 h",
                    "Nodes whose price could not be told: the cost leaves them out.",
                    "sum(increase(karpenter_nodepools_cost_tracker_errors_total[1h])) or vector(0)",
                    red_above=1,
                ),
            ),
        ),
        Row(
            "Over time",
            (
                stack(
                    "Cost per hour, by NodePool",
                    "By the prices of the catalog.",
                    Query(
                        _of_pools("sum", "karpenter_nodepools_cost_total", "nodepool"),
                        "{{nodepool}}",
                    ),
                    unit="currencyUSD",
                    width=12,
                ),
                graph(
                    "Cost per hour against a day and a week ago",
                    "What changed?",
                    Query("sum(karpenter_nodepools_cost_total)", "now"),
                    Query("sum(karpenter_nodepools_cost_total offset 1d)", "a day ago"),
                    Query("sum(karpenter_nodepools_cost_total offset 1w)", "a week ago"),
                    unit="currencyUSD",
                    width=12,
                ),
                graph(
                    "How full nodes are",
                    "What pods request of what nodes have, in percent.",
                    Query(
                        "max by (resource_type) (karpenter_cluster_utilization_percent)",
                        "{{resource_type}}",
                    ),
                    unit="percent",
                ),
                graph(
                    "Consolidations weighed",
                    "By NodePools with the policy Balanced: what is approved, and what saves"
                    " too little.",
                    Query(
                        _rate("karpenter_consolidation_moves_total", "decision, policy", _POOL),
                        "{{decision}} {{policy}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "Their score",
                    "What they would save for what they disturb; from 0.5 on it is approved.",
                    Query(
                        _quantile(0.5, "karpenter_consolidation_score", "decision", _POOL),
                        "p50 {{decision}}",
                    ),
                ),
            ),
        ),
    ),
)

DISRUPTION: Final = Dashboard(
    "karpy-disruption",
    "Karpy / Disruption",
    "Which nodes go, why, how long that takes, and what stands in the way?",
    (
        Row(
            "Decisions",
            (
                graph(
                    "Decided, by NodePool",
                    "Nodes to be deleted or replaced.",
                    Query(
                        _rate(
                            "karpenter_voluntary_disruption_decisions_by_nodepool_total",
                            "nodepool, decision, reason",
                            _POOL,
                        ),
                        "{{nodepool}} {{decision}} {{reason}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "Nodes that could be disrupted",
                    "By why they would be.",
                    Query(
                        "sum by (reason) (karpenter_voluntary_disruption_eligible_nodes)",
                        "{{reason}}",
                    ),
                ),
                graph(
                    "NodeClaims given up, by reason",
                    "Expired, interrupted and deleted ones, too.",
                    Query(
                        _rate("karpenter_nodeclaims_disrupted_total", "reason", _POOL), "{{reason}}"
                    ),
                    unit="ops",
                ),
                graph(
                    "How long deciding takes",
                    "The slowest hundredth, by method.",
                    Query(
                        _quantile(
                            0.99,
                            "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
                            "reason, consolidation_type",
                        ),
                        "{{reason}} {{consolidation_type}}",
                    ),
                    unit="s",
                ),
                graph(
                    "What came to nothing",
                    "Decisions that did not hold after the wait, failed, or ran out of time.",
                    Query(
                        _rate(
                            "karpenter_voluntary_disruption_failed_validations_total",
                            "consolidation_type",
                        ),
                        "not valid any more {{consolidation_type}}",
                    ),
                    Query(
                        _rate("karpenter_voluntary_disruption_queue_failures_total", "reason"),
                        "failed {{reason}}",
                    ),
                    Query(
                        _rate(
                            "karpenter_voluntary_disruption_consolidation_timeouts_total",
                            "consolidation_type",
                        ),
                        "out of time {{consolidation_type}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "The node considered longest ago",
                    "How long ago all methods last had their say about it.",
                    Query(
                        _of_pools("max", "karpy_nodes_unconsidered_time_seconds", "nodepool"),
                        "{{nodepool}}",
                    ),
                    unit="s",
                ),
            ),
        ),
        Row(
            "What stands in the way",
            (
                graph(
                    "Nodes that budgets allow now",
                    "0 lets no node go for this reason.",
                    Query(
                        _of_pools(
                            "min", "karpenter_nodepools_allowed_disruptions", "nodepool, reason"
                        ),
                        "{{nodepool}} {{reason}}",
                    ),
                ),
                graph(
                    "Nodes that use budgets up",
                    "Nodes on their way out, and those that are not ready.",
                    Query(
                        _of_pools(
                            "max", "karpenter_nodepools_nodes_consuming_budgets", "nodepool, reason"
                        )
                        + " > 0",
                        "{{nodepool}} {{reason}}",
                    ),
                ),
                graph(
                    "Nodes that have drifted",
                    "They wait for budgets, for pods and for their turn.",
                    Query(
                        "count by (karpenter_sh_nodepool)"
                        " (operator_nodeclaim_status_condition_count"
                        '{type="Drifted", status="True"} == 1)',
                        "{{karpenter_sh_nodepool}}",
                    ),
                ),
                graph(
                    "Evictions, by answer",
                    "429 is a PodDisruptionBudget that says no.",
                    Query(_rate("karpenter_pods_eviction_requests_total", "code"), "{{code}}"),
                    unit="reqps",
                ),
                graph(
                    "Pods that have to move",
                    "By why their NodeClaim was given up.",
                    Query(
                        _rate("karpenter_pods_disruption_initiated_total", "reason", _POOL),
                        "{{reason}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "NodeClaims on their way out",
                    "How long the slowest has been going.",
                    Query(
                        "max by (karpenter_sh_nodepool)"
                        " (operator_nodeclaim_termination_current_time_seconds)",
                        "{{karpenter_sh_nodepool}}",
                    ),
                    unit="s",
                ),
            ),
        ),
        Row(
            "Ends",
            (
                graph(
                    "How long nodes take to go",
                    "From their deletion on.",
                    Query(
                        "max by (nodepool) (karpenter_nodes_termination_duration_seconds"
                        f'{{quantile="0.99", {_POOL}}})',
                        "p99 {{nodepool}}",
                    ),
                    unit="s",
                ),
                graph(
                    "How long machines take to end",
                    "From the request to the cloud on.",
                    *_both("karpenter_nodeclaims_instance_termination_duration_seconds", "", _POOL),
                    unit="s",
                ),
                graph(
                    "How old nodes become",
                    "Half of them become older.",
                    Query(
                        _quantile(
                            0.5, "karpenter_nodes_lifetime_duration_seconds", "nodepool", _POOL
                        ),
                        "{{nodepool}}",
                    ),
                    unit="s",
                ),
                graph(
                    "Interruptions (AWS)",
                    "Messages of the queue, by type.",
                    Query(
                        _rate("karpenter_interruption_received_messages_total", "message_type"),
                        "{{message_type}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "How long interruptions wait in the queue (AWS)",
                    "Spot gives two minutes.",
                    *_both("karpenter_interruption_message_queue_duration_seconds"),
                    unit="s",
                ),
                graph(
                    "Unhealthy nodes given up, and reboots",
                    "By the condition that was broken.",
                    Query(
                        _rate("karpenter_nodeclaims_unhealthy_disrupted_total", "condition", _POOL),
                        "{{condition}}",
                    ),
                    Query(_rate("karpenter_nodes_reboots_total", "result"), "reboot {{result}}"),
                    unit="ops",
                ),
            ),
        ),
    ),
)

DASHBOARDS: Final = (OVERVIEW, CONTROLLERS, CAPACITY, COST, DISRUPTION)
FILES: Final[dict[Path, Callable[[], str]]] = {
    FOLDER / f"{each.uid}.json": partial(dashboard_text, each, DASHBOARDS) for each in DASHBOARDS
}
