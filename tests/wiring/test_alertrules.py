"""The alerts, judged by promtool: each fires for its cause alone."""

import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from msgspec import Struct

from tests.programs import tools
from tests.tidy.monitoring.alerts import ALERTS, rule_groups
from tests.tidy.monitoring.dashboards import DASHBOARDS

__all__ = ["tools"]


class Case(Struct, frozen=True):
    """Series under which an alert fires, and under which it does not."""

    alert: str
    firing: dict[str, str]
    """By series, its values as promtool writes them, a minute apart."""
    quiet: dict[str, str]
    after: str = "40m"
    count: int = 1
    """How many of it fire."""


DRIFTED: Final = (
    "operator_nodeclaim_status_condition_count"
    '{name="web-1", type="Drifted", status="True", karpenter_sh_nodepool="web"}'
)
ALLOWED: Final = 'karpenter_nodepools_allowed_disruptions{nodepool="web", reason="drifted"}'
BUCKET: Final = 'karpenter_interruption_message_queue_duration_seconds_bucket{le="%s"}'
CREATE: Final = 'karpenter_cloudprovider_errors_total{method="%s", nodepool="web", error="%s"}'
CLAIM: Final = '{name="web-1", karpenter_sh_nodepool="web", type="Registered", status="%s"}'
AGE: Final = "operator_nodeclaim_status_condition_current_status_seconds"
GOING: Final = (
    'operator_nodeclaim_termination_current_time_seconds{name="web-1", karpenter_sh_nodepool="web"}'
)
READY: Final = 'operator_nodepool_status_condition_count{name="web", type="Ready", status="%s"}'
CASES: Final = (
    Case("KarpyDown", {"up": "1x60"}, {"karpenter_build_info": "1x60"}),
    Case(
        "KarpyLeaderLost",
        {'leader_election_master_status{pod="a"}': "0x60"},
        {
            'leader_election_master_status{pod="a"}': "0x60",
            'leader_election_master_status{pod="b"}': "1x60",
        },
    ),
    Case(
        "KarpyOutOfSync",
        {"karpenter_cluster_state_unsynced_time_seconds": "0+60x60"},
        {"karpenter_cluster_state_unsynced_time_seconds": "30x60"},
    ),
    Case(
        "KarpyReconcileErrors",
        {'controller_runtime_reconcile_errors_total{controller="a"}': "0+60x60"},
        {'controller_runtime_reconcile_errors_total{controller="a"}': "0+1x60"},
    ),
    Case(
        "KarpyMistake",
        {'controller_runtime_reconcile_panics_total{controller="a"}': "0x35 1x25"},
        {'controller_runtime_reconcile_panics_total{controller="a"}': "7x60"},
    ),
    Case(
        "KarpyUnreadableObjects",
        {'karpy_unreadable_objects_total{kind="Pod"}': "0+1x60"},
        {'karpy_unreadable_objects_total{kind="Pod"}': "3x60"},
    ),
    Case(
        "KarpyPodsUndecided",
        {'karpenter_pods_provisioning_scheduling_undecided_time_seconds{name="a"}': "0+60x60"},
        {'karpenter_pods_provisioning_scheduling_undecided_time_seconds{name="a"}': "2x60"},
    ),
    Case(
        "KarpyPodsWithoutTheirNode",
        {'karpenter_pods_provisioning_unbound_time_seconds{name="a"}': "0+60x60"},
        {'karpenter_pods_provisioning_unbound_time_seconds{name="a"}': "0+60x10 _x50"},
    ),
    Case(
        "KarpyPodsWithoutAPlace",
        {'karpenter_scheduler_unschedulable_pods_count{controller="provisioner"}': "3x60"},
        {'karpenter_scheduler_unschedulable_pods_count{controller="provisioner"}': "3x20 0x40"},
    ),
    Case(
        "KarpyLaunchesInVain",
        {'karpy_launches_in_vain_total{why="a"}': "0x30 1x30"},
        {'karpy_launches_in_vain_total{why="a"}': "1x60"},
    ),
    Case(
        "KarpyLaunchErrors",
        {CREATE % ("Create", "LaunchFailed"): "0+1x60"},
        {
            CREATE % ("Create", "InsufficientCapacityError"): "0+1x60",
            CREATE % ("List", "LaunchFailed"): "0+1x60",
        },
    ),
    Case(
        "KarpySoldOut",
        {CREATE % ("Create", "InsufficientCapacityError"): "0+1x60"},
        {CREATE % ("Create", "LaunchFailed"): "0+1x60"},
    ),
    Case(
        "KarpyNodesDoNotRegister",
        {AGE + CLAIM % "Unknown": "0+60x60"},
        {AGE + CLAIM % "True": "0+60x60"},
    ),
    Case("KarpyNodeStuckTerminating", {GOING: "3000+60x60"}, {GOING: "0+60x60"}),
    Case("KarpyNodePoolNotReady", {READY % "False": "1x60"}, {READY % "True": "1x60"}),
    Case(
        "KarpyInterruptionsLate",
        {BUCKET % "64": "0x60", BUCKET % "128": "0+5x60", BUCKET % "+Inf": "0+5x60"},
        {BUCKET % "1": "0+5x60", BUCKET % "128": "0+5x60", BUCKET % "+Inf": "0+5x60"},
    ),
    Case(
        "KarpyBudgetExhausted", {ALLOWED: "0x1600", DRIFTED: "1x1600"}, {ALLOWED: "0x1600"}, "25h"
    ),
    Case(
        "KarpyNodesNotConsidered",
        {'karpy_nodes_unconsidered_time_seconds{nodepool="web", node_name="a"}': "3000+60x60"},
        {'karpy_nodes_unconsidered_time_seconds{nodepool="web", node_name="a"}': "10x60"},
    ),
    Case(
        "KarpyDisruptionFails",
        {'karpenter_voluntary_disruption_queue_failures_total{reason="drifted"}': "0+1x60"},
        {'karpenter_voluntary_disruption_queue_failures_total{reason="drifted"}': "9x60"},
    ),
    Case(
        "KarpyNodePoolNearLimit",
        {
            'karpenter_nodepools_usage{nodepool="web", resource_type="cpu"}': "95x60",
            'karpenter_nodepools_limit{nodepool="web", resource_type="cpu"}': "100x60",
        },
        {
            'karpenter_nodepools_usage{nodepool="web", resource_type="cpu"}': "9x60",
            'karpenter_nodepools_limit{nodepool="web", resource_type="cpu"}': "0x60",
        },
    ),
    Case(
        "KarpyManyNodes",
        {"karpenter_cluster_state_node_count": "501x60"},
        {"karpenter_cluster_state_node_count": "500x60"},
    ),
    Case(
        "KarpyExpensive",
        {'karpenter_nodepools_cost_total{nodepool="a"}': "60x60", "up": "1x60"}
        | {'karpenter_nodepools_cost_total{nodepool="b"}': "60x60"},
        {'karpenter_nodepools_cost_total{nodepool="a"}': "60x60"},
    ),
    Case(
        "KarpyCostJumps",
        {'karpenter_nodepools_cost_total{nodepool="a"}': "20x1440 40x200"},
        {'karpenter_nodepools_cost_total{nodepool="a"}': "2x1440 4x200"},
        "26h",
    ),
)


def test_every_alert_has_a_case() -> None:
    assert [each.alert for each in CASES] == [each.name for each in ALERTS]


def test_the_rules_are_rules(tools: Path, tmp_path: Path) -> None:
    promtool(tools, "check", "rules", "--lint=all", "--lint-fatal", str(rules_in(tmp_path)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_fires_for_what_it_is_about_alone(tools: Path, tmp_path: Path, case: Case) -> None:
    rules_in(tmp_path)
    tests = [_fires(case, case.firing, case.count), _fires(case, case.quiet, 0)]
    path = tmp_path / "tests.yaml"
    path.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": tests}))

    promtool(tools, "test", "rules", str(path))


def test_an_annotation_says_what_is_wrong(tools: Path, tmp_path: Path) -> None:
    rules_in(tmp_path)
    (case,) = (each for each in CASES if each.alert == "KarpyNodePoolNearLimit")
    (alert,) = (each for each in ALERTS if each.name == case.alert)
    expected = {
        "exp_labels": {"severity": "warning", "nodepool": "web", "resource_type": "cpu"},
        "exp_annotations": {
            "summary": "NodePool web has 95% of its limit of cpu",
            "description": alert.do.replace("`", "'"),
            "runbook": "docs/guides/alerts.md#karpynodepoolnearlimit",
        },
    }
    test = {
        **_series(case.firing),
        "alert_rule_test": [
            {"eval_time": case.after, "alertname": case.alert, "exp_alerts": [expected]}
        ],
    }
    path = tmp_path / "tests.yaml"
    path.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))

    promtool(tools, "test", "rules", str(path))


def test_prometheus_can_read_the_queries_of_dashboards(tools: Path, tmp_path: Path) -> None:
    exprs = [query.expr for dashboard in DASHBOARDS for query in dashboard.queries]
    plain = [each.replace("$__rate_interval", "5m").replace("$nodepool", ".*") for each in exprs]
    rules = [{"record": f"query:{place}", "expr": each} for place, each in enumerate(plain)]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))

    promtool(tools, "check", "rules", "--lint=none", str(path))


def _fires(case: Case, series: dict[str, str], count: int) -> dict[str, Any]:
    expr = f'count(ALERTS{{alertname="{case.alert}", alertstate="firing"}})'
    samples = [{"labels": "{}", "value": count}] if count else []
    test = {"expr": expr, "eval_time": case.after, "exp_samples": samples}
    return {**_series(series), "promql_expr_test": [test]}


def _series(series: dict[str, str]) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given}


def rules_in(folder: Path) -> Path:
    """Write the rules as a file without Kubernetes around it."""
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": rule_groups()}, sort_keys=False))
    return path


def promtool(tools: Path, *words: str) -> None:
    """Have promtool judge; what it says against it fails the test."""
    done = subprocess.run([tools / "promtool", *words], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
