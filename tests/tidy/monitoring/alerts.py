"""The alerts, and the file and the page that are generated from them."""

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from tests.tidy.repository import ROOT
from tests.tidy.tables import NOTE

RULES: Final = ROOT / "deploy" / "prometheus" / "karpy-rules.yaml"
PAGE: Final = ROOT / "docs" / "guides" / "alerts.md"
_NOTE: Final = "# Written by `make fix`; change tests/tidy/monitoring/alerts.py instead.\n"


class Severity(Enum):
    """How soon an alert needs attention."""

    CRITICAL = "critical"
    """Now: pods do not run."""
    WARNING = "warning"
    """Today."""


class Alert(Struct, frozen=True):
    """A condition that needs attention, and what to do."""

    name: str
    severity: Severity
    expr: str
    wait: str
    """The time for which the condition must hold."""
    summary: str
    do: str
    """The first things to check."""


class Group(Struct, frozen=True):
    """Alerts about one thing."""

    name: str
    alerts: tuple[Alert, ...]


_HEALTH: Final = Group(
    "karpy-health",
    (
        Alert(
            "KarpyDown",
            Severity.CRITICAL,
            "absent(karpenter_build_info)",
            "5m",
            "No replica of Karpy answers Prometheus: pending pods get no nodes",
            "`kubectl get pods -A -l app.kubernetes.io/name=karpenter`, then the log of"
            " the last container. If pods run, the ServiceMonitor does not find them.",
        ),
        Alert(
            "KarpyLeaderLost",
            Severity.CRITICAL,
            "max(leader_election_master_status) < 1",
            "2m",
            "No replica of Karpy holds the lease: nothing is launched and nothing removed",
            "`kubectl get lease -n karpenter karpenter-leader-election -o yaml` names the holder."
            " A holder that is neither of the replicas is another autoscaler, such as Karpenter.",
        ),
        Alert(
            "KarpyOutOfSync",
            Severity.CRITICAL,
            "max(karpenter_cluster_state_unsynced_time_seconds) > 300",
            "1m",
            "Karpy has not known the whole cluster for {{ $value | humanizeDuration }}: it decides"
            " nothing meanwhile",
            "The log says which kind cannot be listed; a missing permission is the usual reason.",
        ),
        Alert(
            "KarpyReconcileErrors",
            Severity.WARNING,
            "sum by (controller) (rate(controller_runtime_reconcile_errors_total[10m])) > 0.1",
            "15m",
            "Controller {{ $labels.controller }} fails {{ $value | humanize }} times a second",
            "The log of the controller has the error with its code and a hint.",
        ),
        Alert(
            "KarpyMistake",
            Severity.WARNING,
            "sum by (controller) (increase(controller_runtime_reconcile_panics_total[15m])) > 0",
            "0m",
            "Controller {{ $labels.controller }} met a mistake of Karpy (KP9000)",
            "The log has a traceback; please report it with the recording of the decision.",
        ),
        Alert(
            "KarpyUnreadableObjects",
            Severity.WARNING,
            "sum by (kind) (increase(karpy_unreadable_objects_total[15m])) > 0",
            "15m",
            "Objects of kind {{ $labels.kind }} cannot be read and are left aside",
            "The log names each object and the field. A newer version may know the value.",
        ),
    ),
)
_PODS: Final = Group(
    "karpy-pods",
    (
        Alert(
            "KarpyPodsUndecided",
            Severity.CRITICAL,
            "max(karpenter_pods_provisioning_scheduling_undecided_time_seconds) > 300",
            "1m",
            "A pod has waited {{ $value | humanizeDuration }} for a decision",
            "The dashboard Controllers shows whether decisions take long or none is made;"
            " `karpy explain POD` makes the same decision on your machine.",
        ),
        Alert(
            "KarpyPodsWithoutTheirNode",
            Severity.CRITICAL,
            "count(karpenter_pods_provisioning_unbound_time_seconds > 900) > 0",
            "5m",
            "{{ $value }} pods have no node 15 minutes after one was decided on for them",
            "`kubectl get nodeclaims` shows whether nodes were launched and have registered, and"
            " `kubectl describe nodeclaim` why not.",
        ),
        Alert(
            "KarpyPodsWithoutAPlace",
            Severity.WARNING,
            "sum(karpenter_scheduler_unschedulable_pods_count) > 0",
            "30m",
            "{{ $value }} pods find no place on any node that could be made",
            "`karpy top` lists them, `karpy explain POD` says which constraint decides and what"
            " would be enough.",
        ),
        Alert(
            "KarpyLaunchesInVain",
            Severity.WARNING,
            "sum by (why) (increase(karpy_launches_in_vain_total[1h])) > 0",
            "0m",
            "Nodes were launched for pods that did not get there ({{ $labels.why }})",
            "`kubectl describe pod` says what kube-scheduler objects to: a plugin, a quota, or a"
            " taint that Karpy does not know of.",
        ),
    ),
)
_NODES: Final = Group(
    "karpy-nodes",
    (
        Alert(
            "KarpyLaunchErrors",
            Severity.CRITICAL,
            "sum by (nodepool, error)"
            ' (rate(karpenter_cloudprovider_errors_total{method="Create",'
            ' error!="InsufficientCapacityError"}[10m])) > 0',
            "15m",
            "NodePool {{ $labels.nodepool }} has had launches fail for 15 minutes:"
            " {{ $labels.error }}",
            "`kubectl describe nodeclaim` has the message of the cloud: a quota, a missing"
            " permission, a node class that is wrong.",
        ),
        Alert(
            "KarpySoldOut",
            Severity.WARNING,
            "sum by (nodepool) (rate(karpenter_cloudprovider_errors_total"
            '{method="Create", error="InsufficientCapacityError"}[10m])) > 0',
            "30m",
            "The cloud has been sold out of what NodePool {{ $labels.nodepool }} may buy for half"
            " an hour",
            "Pods that other types suit have got them: only this NodePool is too narrow. Allow more"
            " types, zones or on-demand; `karpy instances --pool NODEPOOL` lists what it may buy.",
        ),
        Alert(
            "KarpyNodesDoNotRegister",
            Severity.CRITICAL,
            "max by (name, karpenter_sh_nodepool)"
            " (operator_nodeclaim_status_condition_current_status_seconds"
            '{type="Registered", status!="True"}) > 600',
            "1m",
            "NodeClaim {{ $labels.name }} of NodePool {{ $labels.karpenter_sh_nodepool }} has not"
            " become a node for {{ $value | humanizeDuration }}",
            "Its machine runs and its kubelet does not join: user data, the role of the node in"
            " the access entries, security groups and the endpoint are the usual reasons.",
        ),
        Alert(
            "KarpyNodeStuckTerminating",
            Severity.WARNING,
            "max by (name, karpenter_sh_nodepool)"
            " (operator_nodeclaim_termination_current_time_seconds) > 3600",
            "5m",
            "NodeClaim {{ $labels.name }} has been going for {{ $value | humanizeDuration }}, and"
            " costs as before",
            "`karpy explain node` names the pod or PodDisruptionBudget that its drain waits for."
            " A terminationGracePeriod in the NodePool ends such waits.",
        ),
        Alert(
            "KarpyNodePoolNotReady",
            Severity.WARNING,
            "max by (name)"
            ' (operator_nodepool_status_condition_count{type="Ready", status="False"}) > 0',
            "15m",
            "NodePool {{ $labels.name }} is not ready: it launches nothing",
            "`kubectl describe nodepool` says why; mostly its node class is not ready.",
        ),
        Alert(
            "KarpyInterruptionsLate",
            Severity.CRITICAL,
            "histogram_quantile(0.99, sum by (le)"
            " (rate(karpenter_interruption_message_queue_duration_seconds_bucket[10m]))) > 60",
            "5m",
            "Interruptions wait {{ $value | humanizeDuration }} in the queue, and spot gives two"
            " minutes",
            "Whether another program reads the same queue, and whether the log says that the queue"
            " cannot be read.",
        ),
    ),
)
_DISRUPTION: Final = Group(
    "karpy-disruption",
    (
        Alert(
            "KarpyBudgetExhausted",
            Severity.WARNING,
            "max by (nodepool)"
            ' (karpenter_nodepools_allowed_disruptions{reason=~"(?i)drifted"}) == 0'
            " and on (nodepool) count by (nodepool) (label_replace("
            'operator_nodeclaim_status_condition_count{type="Drifted", status="True"} == 1,'
            ' "nodepool", "$1", "karpenter_sh_nodepool", "(.*)")) > 0',
            "24h",
            "NodePool {{ $labels.nodepool }} has drifted nodes, and its budgets have let none go"
            " for a day",
            "`karpy budgets NODEPOOL` shows when how many may go in the next week.",
        ),
        Alert(
            "KarpyNodesNotConsidered",
            Severity.WARNING,
            "max by (nodepool) (karpy_nodes_unconsidered_time_seconds) > 3600",
            "10m",
            "The methods of disruption have not looked at a node of NodePool"
            " {{ $labels.nodepool }} for {{ $value | humanizeDuration }}",
            "The dashboard Disruption shows whether decisions take long or fail; give Karpy more"
            " CPU if they take long.",
        ),
        Alert(
            "KarpyDisruptionFails",
            Severity.WARNING,
            "sum by (reason) (increase(karpenter_voluntary_disruption_queue_failures_total[1h]))"
            " > 5",
            "0m",
            "{{ $value | humanize }} disruptions for {{ $labels.reason }} have failed in an hour",
            "Mostly replacements that do not become ready: see KarpyNodesDoNotRegister and"
            " KarpyLaunchErrors.",
        ),
    ),
)
_LIMITS: Final = Group(
    "karpy-limits",
    (
        Alert(
            "KarpyNodePoolNearLimit",
            Severity.WARNING,
            "max by (nodepool, resource_type) (karpenter_nodepools_usage)"
            " / max by (nodepool, resource_type) (karpenter_nodepools_limit > 0) > 0.9",
            "15m",
            "NodePool {{ $labels.nodepool }} has {{ $value | humanizePercentage }} of its limit of"
            " {{ $labels.resource_type }}",
            "Raise `spec.limits`, or find what grows: `karpy top --nodepool NODEPOOL`.",
        ),
        Alert(
            "KarpyManyNodes",
            Severity.WARNING,
            "max(karpenter_cluster_state_node_count) > 500",
            "10m",
            "The cluster has {{ $value }} nodes",
            "Set the number to what your cluster should never have.",
        ),
        Alert(
            "KarpyExpensive",
            Severity.WARNING,
            "sum(karpenter_nodepools_cost_total) > 100",
            "10m",
            "Nodes cost {{ $value | humanize }} dollars an hour",
            "Set the number to what your cluster should never cost. `karpy top --sort price` shows"
            " where the money goes.",
        ),
        Alert(
            "KarpyCostJumps",
            Severity.WARNING,
            "sum(karpenter_nodepools_cost_total)"
            " > 1.5 * sum(karpenter_nodepools_cost_total offset 1d)"
            " and sum(karpenter_nodepools_cost_total) > 10",
            "1h",
            "Nodes cost half as much again as at this time yesterday: {{ $value | humanize }}"
            " dollars an hour",
            "The dashboard Cost shows which NodePool has grown.",
        ),
    ),
)
GROUPS: Final = (_HEALTH, _PODS, _NODES, _DISRUPTION, _LIMITS)
ALERTS: Final = tuple(alert for group in GROUPS for alert in group.alerts)
_PAGE: Final = """\
Karpy comes with alerts for Prometheus in
[deploy/prometheus/karpy-rules.yaml](../../deploy/prometheus/karpy-rules.yaml) and with five
dashboards for Grafana in [deploy/grafana](../../deploy/grafana). Both use Karpenter's metrics where
possible, so that most alerts and panels work with Karpenter, too.

With the Prometheus operator, enable the ServiceMonitor of the chart (`serviceMonitor.enabled=true`)
and apply the alerts. If your Prometheus selects rules by label, add that label.

```console
$ kubectl apply -n monitoring -f deploy/prometheus/karpy-rules.yaml
```

Without the Prometheus operator, use the content of `spec` as a rule file.

Import the dashboards in Grafana (Dashboards, New, Import), or let its sidecar read a ConfigMap:

```console
$ kubectl create configmap karpy-dashboards -n monitoring --from-file=deploy/grafana
$ kubectl label configmap karpy-dashboards -n monitoring grafana_dashboard=1
```

A `critical` alert needs action at once, because pods do not run. A `warning` needs action within a
day. Set your own thresholds for the number of nodes (KarpyManyNodes) and for dollars
(KarpyExpensive).
"""


def rules_file() -> str:
    """Write the PrometheusRule."""
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "karpy", "labels": {"app.kubernetes.io/name": "karpenter"}},
        "spec": {"groups": rule_groups()},
    }
    return _NOTE + yaml.safe_dump(rule, sort_keys=False, width=1000, allow_unicode=True)


def rule_groups() -> list[dict[str, Any]]:
    """Return the groups as Prometheus reads them."""
    return [
        {"name": group.name, "rules": [_rule(each) for each in group.alerts]} for group in GROUPS
    ]


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.wait,
        "labels": {"severity": alert.severity.value},
        "annotations": {
            "summary": alert.summary,
            "description": alert.do.replace("`", "'"),
            "runbook": f"docs/guides/alerts.md#{alert.name.lower()}",
        },
    }


def alerts_page() -> str:
    """Write the page with the meaning of each alert and what to do."""
    parts = [NOTE, "# Alerts and dashboards\n", _PAGE]
    for alert in ALERTS:
        summary = alert.summary.replace("{{ $value", "{{ value").replace("{{ $labels.", "{{ ")
        parts += [
            f"## {alert.name}\n",
            f"{alert.severity.value.capitalize()}, after {alert.wait}: {summary}.\n",
            f"```promql\n{alert.expr}\n```\n",
            f"{alert.do}\n",
        ]
    return "\n".join(parts)


FILES: Final[dict[Path, Callable[[], str]]] = {RULES: rules_file, PAGE: alerts_page}
