from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from karpy.adapters.telemetry.metrics import Metrics
from karpy.adapters.telemetry.specs import age, counter, gauge, histogram, summary
from karpy.core.lifecycle.changes import Count
from karpy.errors import KarpyError

SPECS = [
    counter("karpenter_nodes_created_total", ("nodepool", "zone"), 'Nodes that "came".\nAll.'),
    gauge("karpenter_pods_state", ("name", "namespace"), "Pods."),
    gauge("karpenter_cluster_state_synced", (), "Whether."),
    histogram("karpenter_pods_bound_duration_seconds", ("kind",), (0.5, 1, 2.5), "Waits."),
    summary("karpenter_nodes_termination_duration_seconds", ("nodepool",), "Ends."),
]


def _scrape(metrics: Metrics) -> dict[str, Metric]:
    return {each.name: each for each in text_string_to_metric_families(metrics.render().decode())}


def _lines(metrics: Metrics) -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if "karpenter_" in line]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(SPECS)


def test_a_fresh_registry_exports_nothing(metrics: Metrics) -> None:
    assert _lines(metrics) == []


def test_a_counter_is_exported_in_the_format_of_prometheus(metrics: Metrics) -> None:
    metrics.count(Count("nodes_created_total", {"nodepool": "a", "zone": 'z"\\\n'}))
    metrics.count(Count("nodes_created_total", {"zone": 'z"\\\n', "nodepool": "a"}, 2))

    assert _lines(metrics) == [
        r'# HELP karpenter_nodes_created_total Nodes that "came".\nAll.',
        "# TYPE karpenter_nodes_created_total counter",
        r'karpenter_nodes_created_total{nodepool="a",zone="z\"\\\n"} 3.0',
    ]


def test_what_is_written_can_be_read(metrics: Metrics) -> None:
    metrics.count(Count("karpenter_nodes_created_total", {"nodepool": "a", "zone": "z"}))

    family = _scrape(metrics)["karpenter_nodes_created"]

    assert (family.type, [tuple(each)[:3] for each in family.samples]) == (
        "counter",
        [("karpenter_nodes_created_total", {"nodepool": "a", "zone": "z"}, 1.0)],
    )


def test_a_histogram_counts_up_to_each_bound(metrics: Metrics) -> None:
    name = "pods_bound_duration_seconds"
    metrics.count(Count(name, {"kind": "a"}, 0.5))
    metrics.count(Count(name, {"kind": "a"}, 0.6))
    metrics.count(Count(name, {"kind": "a"}, 99))

    assert _lines(metrics)[2:] == [
        f'karpenter_{name}_bucket{{kind="a",le="0.5"}} 1.0',
        f'karpenter_{name}_bucket{{kind="a",le="1"}} 2.0',
        f'karpenter_{name}_bucket{{kind="a",le="2.5"}} 2.0',
        f'karpenter_{name}_bucket{{kind="a",le="+Inf"}} 3.0',
        f'karpenter_{name}_sum{{kind="a"}} 100.1',
        f'karpenter_{name}_count{{kind="a"}} 3.0',
    ]


def test_a_summary_tells_quantiles_of_what_was_measured_lately() -> None:
    seconds: Iterator[float] = iter([0.0, 300.0, 600.0, 650.0, 2000.0])
    metrics = Metrics(SPECS, now=lambda: next(seconds))
    name = "nodes_termination_duration_seconds"
    metrics.count(Count(name, {"nodepool": "a"}, 100))
    metrics.count(Count(name, {"nodepool": "a"}, 20))
    metrics.count(Count(name, {"nodepool": "a"}, 10))

    lately, later = _lines(metrics), _lines(metrics)

    assert lately[2:] == [
        f'karpenter_{name}{{nodepool="a",quantile="0"}} 10.0',
        f'karpenter_{name}{{nodepool="a",quantile="0.5"}} 10.0',
        f'karpenter_{name}{{nodepool="a",quantile="0.9"}} 20.0',
        f'karpenter_{name}{{nodepool="a",quantile="0.99"}} 20.0',
        f'karpenter_{name}{{nodepool="a",quantile="1"}} 20.0',
        f'karpenter_{name}_sum{{nodepool="a"}} 130.0',
        f'karpenter_{name}_count{{nodepool="a"}} 3.0',
    ]
    assert later[2] == f'karpenter_{name}{{nodepool="a",quantile="0"}} NaN'


def test_gauges_are_set_replaced_and_forgotten(metrics: Metrics) -> None:
    metrics.set("cluster_state_synced", 1)
    metrics.set("pods_state", 1, {"name": "gone", "namespace": "shop"})
    metrics.replace("pods_state", {("a", "shop"): 1, ("a", "bank"): 2, ("b", "shop"): 3})

    metrics.forget("pods_state", {"name": "a", "namespace": "bank"})
    first = _lines(metrics)
    metrics.forget("pods_state", {"namespace": "shop"})

    assert first == [
        "# HELP karpenter_pods_state Pods.",
        "# TYPE karpenter_pods_state gauge",
        'karpenter_pods_state{name="a",namespace="shop"} 1.0',
        'karpenter_pods_state{name="b",namespace="shop"} 3.0',
        "# HELP karpenter_cluster_state_synced Whether.",
        "# TYPE karpenter_cluster_state_synced gauge",
        "karpenter_cluster_state_synced 1.0",
    ]
    assert _lines(metrics) == first[4:]


def test_an_unknown_metric_is_a_mistake(metrics: Metrics) -> None:
    with pytest.raises(KeyError):
        metrics.count(Count("nodes_made_total"))


@pytest.mark.parametrize("labels", [{}, {"nodepool": "a"}, {"nodepool": "a", "zone": "z", "x": ""}])
def test_other_labels_are_a_mistake(metrics: Metrics, labels: dict[str, str]) -> None:
    with pytest.raises(AssertionError, match="karpenter_nodes_created_total has labels"):
        metrics.count(Count("nodes_created_total", labels))


def test_a_gauge_that_is_counted_takes_on_the_value(metrics: Metrics) -> None:
    metrics.count(Count("cluster_state_synced", {}, 5.0))
    metrics.count(Count("cluster_state_synced", {}, 3.0))

    assert _lines(metrics)[2:] == ["karpenter_cluster_state_synced 3.0"]


def test_what_is_asked_for_joins_what_was_set(metrics: Metrics) -> None:
    metrics.replace("pods_state", {("a", "shop"): 1, ("b", "shop"): 1})
    metrics.add_source(lambda: lambda: {"pods_state": {("b", "shop"): 2, ("c", "shop"): 3}})

    told = _lines(metrics)

    assert told[2:] == [
        'karpenter_pods_state{name="a",namespace="shop"} 1.0',
        'karpenter_pods_state{name="b",namespace="shop"} 2.0',
        'karpenter_pods_state{name="c",namespace="shop"} 3.0',
    ]


def test_a_metric_that_cannot_be_written_takes_no_other_along() -> None:
    metrics = Metrics([*SPECS, gauge("karpenter_cluster_unsorted", ("z", "a"), "Cannot be.")])
    failures: list[KarpyError] = []
    metrics.on_failure = failures.append
    metrics.replace("pods_state", {("a", "shop"): 1})
    metrics.add_source(lambda: lambda: {"cluster_unsorted": {("one",): 1}})

    told = _lines(metrics)
    metrics.render()

    assert told[2:] == ['karpenter_pods_state{name="a",namespace="shop"} 1.0']
    assert "karpenter_cluster_unsorted" in str(failures[0])


def test_only_gauges_can_be_asked_for(metrics: Metrics) -> None:
    metrics.add_source(lambda: lambda: {"nodes_created_total": {("a", "z"): 1}})

    with pytest.raises(AssertionError, match="is counted, not set"):
        metrics.render()


def test_an_age_is_computed_at_the_scrape() -> None:
    moments: Iterator[float] = iter([1010.0, 1070.5, 990.0])
    spec = age("karpenter_pods_unbound_time_seconds", ("name",), "Waits.")
    metrics = Metrics([spec], today=lambda: next(moments))
    metrics.set("pods_unbound_time_seconds", 1000.0, {"name": "a"})

    told = [_lines(metrics)[-1], _lines(metrics)[-1], _lines(metrics)[-1]]

    name = 'karpenter_pods_unbound_time_seconds{name="a"}'
    assert told == [f"{name} 10.0", f"{name} 70.5", f"{name} 0.0"]


def test_a_counter_is_not_set(metrics: Metrics) -> None:
    with pytest.raises(AssertionError, match="is counted, not set"):
        metrics.set("nodes_created_total", 1, {"nodepool": "a", "zone": "z"})


def test_the_process_tells_of_itself(metrics: Metrics) -> None:
    assert "process_resident_memory_bytes" in _scrape(metrics)


def test_what_runs_here_is_announced() -> None:
    metrics = Metrics()

    metrics.announce(version="1.2.3", commit="abc")

    families = _scrape(metrics)
    build = families["karpenter_build_info"].samples[0]
    timeouts = families["karpenter_voluntary_disruption_consolidation_timeouts"].samples
    assert (build.labels["version"], build.labels["commit"], build.value) == ("1.2.3", "abc", 1.0)
    assert {each.labels["consolidation_type"]: each.value for each in timeouts} == {
        "multi": 0.0,
        "single": 0.0,
    }
