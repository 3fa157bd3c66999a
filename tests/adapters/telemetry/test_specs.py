"""Names, types, labels and buckets are what dashboards and alerts ask for."""

import re

import pytest

from karpy.adapters.telemetry.metrics import Metrics, bound_text
from karpy.adapters.telemetry.specs import (
    DURATION_BUCKETS,
    LIFETIME_BUCKETS,
    MetricSpec,
    MetricType,
    exponential,
    karpenter_specs,
    metric_specs,
)
from karpy.core.lifecycle.changes import Count
from karpy.model.labels import WELL_KNOWN
from tests.tidy.repository import product_files

SPECS = {
    each.name: each for each in metric_specs(node_class_labels=["karpenter.kwok.sh/kwoknodeclass"])
}


def test_every_name_is_there_once() -> None:
    assert len(SPECS) == len(metric_specs())


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_metric_is_well_formed(spec: MetricSpec) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*[a-z]", spec.name)
    assert len(set(spec.labels)) == len(spec.labels)
    assert spec.help.endswith(".")
    assert (spec.type is MetricType.HISTOGRAM) == bool(spec.buckets)
    assert list(spec.buckets) == sorted(set(spec.buckets))


def test_counters_are_totals() -> None:
    """Prometheus' client adds the ending to whatever is a counter."""
    counters = [each for each in SPECS.values() if each.type is MetricType.COUNTER]

    assert [each.name for each in counters if not each.name.endswith("_total")] == []


def test_buckets_are_karpenters() -> None:
    assert (len(DURATION_BUCKETS), DURATION_BUCKETS[0], DURATION_BUCKETS[-1]) == (45, 0.005, 600)
    assert (len(LIFETIME_BUCKETS), LIFETIME_BUCKETS[0], LIFETIME_BUCKETS[-1]) == (21, 900, 2592000)
    assert exponential(1, 2, 4) == (1, 2, 4, 8)
    assert SPECS["operator_node_status_condition_transition_seconds"].buckets[-1] == 8192
    assert SPECS["karpenter_nodes_reboot_duration_seconds"].buckets[-1] == 1280
    assert SPECS["karpenter_nodeclaims_termination_duration_seconds"].buckets[-1] == 2048


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("karpenter_nodepools_limit", "resource_type nodepool"),
        (
            "karpenter_nodes_allocatable",
            (
                "arch capacity_type instance_type nodepool os region windows_build zone "
                "node_name phase managed resource_type"
            ),
        ),
        (
            "karpenter_nodes_current_lifetime_seconds",
            (
                "arch capacity_type instance_type nodepool os region windows_build zone "
                "node_name phase managed"
            ),
        ),
        ("karpenter_cloudprovider_errors_total", "controller method provider error nodepool"),
        (
            "operator_nodeclaim_status_condition_count",
            (
                "namespace name type status reason karpenter_kwok_sh_kwoknodeclass "
                "karpenter_sh_nodepool"
            ),
        ),
        (
            "operator_node_status_condition_transitions_total",
            (
                "type status reason karpenter_kwok_sh_kwoknodeclass karpenter_sh_nodepool "
                "karpenter_sh_initialized"
            ),
        ),
        ("operator_status_condition_transition_seconds", "type status to_status group kind"),
        ("operator_termination_current_time_seconds", "namespace name group kind"),
        ("operator_nodepool_termination_duration_seconds", ""),
        ("controller_runtime_reconcile_total", "controller result"),
    ],
)
def test_labels_are_karpenters(name: str, labels: str) -> None:
    assert " ".join(SPECS[name].labels) == labels


def test_a_cloud_adds_its_labels_to_those_of_nodes() -> None:
    known = {*WELL_KNOWN, "karpenter.kwok.sh/instance-cpu", "example.org/zone"}

    specs = {each.name: each for each in karpenter_specs(known)}

    assert specs["karpenter_nodes_allocatable"].labels[:4] == (
        "arch",
        "capacity_type",
        "instance_cpu",
        "instance_type",
    )


def test_everything_that_is_counted_has_a_spec() -> None:
    """A typo would only show once it happens."""
    metrics = Metrics()
    named = {
        name
        for path in product_files()
        for name in re.findall(r'\bCount\(\s*"(\w+)"', path.read_text(encoding="utf-8"))
    }

    unknown = sorted(name for name in named if not metrics.has(name))

    assert named
    assert unknown == [], "add the metric to karpentermetrics.py or runtimemetrics.py"


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_every_metric_can_be_exported(spec: MetricSpec) -> None:
    metrics = Metrics([spec])
    tell = {
        True: lambda: metrics.set(spec.name, 1, dict.fromkeys(spec.labels, "x")),
        False: lambda: metrics.count(Count(spec.name, dict.fromkeys(spec.labels, "x"))),
    }

    tell[spec.type is MetricType.GAUGE]()

    assert f"# TYPE {spec.name} {spec.type.value}\n" in metrics.render().decode()


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (1.0, "1"),
        (0.005, "0.005"),
        (0.0, "0"),
        (10e-9, "1e-08"),
        (86400.0, "86400"),
        (2592000.0, "2.592e+06"),
        (1280.0, "1280"),
        (float("inf"), "+Inf"),
    ],
)
def test_bounds_are_written_as_go_does(bound: float, expected: str) -> None:
    assert bound_text(bound) == expected
