"""Metrics: counted here, and told to Prometheus when it asks."""

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from karpy.adapters.telemetry.karpentermetrics import PREFIX
from karpy.adapters.telemetry.runtimemetrics import metric_specs
from karpy.adapters.telemetry.series import Series, Values, make_series
from karpy.adapters.telemetry.specs import MetricSpec, MetricType
from karpy.core.lifecycle.outcomes import Count

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
_TOTAL: Final = "_total"
_TIMEOUTS: Final = "voluntary_disruption_consolidation_timeouts_total"


class Metrics:
    """
    Everything that is counted, set or measured.

    A metric goes by its full name, Karpenter's own also without `karpenter_`. A name or a set of
    labels that no spec has is a mistake of the caller. Only one thread writes; another may render.
    """

    def __init__(
        self,
        specs: Iterable[MetricSpec] | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        made = [make_series(spec, now) for spec in (metric_specs() if specs is None else specs)]
        self._series = {each.spec.name: each for each in made}
        self._series |= {each.spec.name.removeprefix(PREFIX): each for each in made}
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(made))
        ProcessCollector(registry=self._registry)

    def has(self, metric: str) -> bool:
        """Say whether there is such a metric."""
        return metric in self._series

    def count(self, count: Count) -> None:
        """Count what happened, or take down what was measured."""
        series = self._series[count.metric]
        assert series.spec.type is not MetricType.GAUGE, f"{count.metric} is set, not counted"
        series.add(_values(series.spec, count.labels), count.value)

    def set(self, metric: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Set a gauge."""
        series = self._gauge(metric)
        series.numbers[_values(series.spec, labels or {})] = value

    def replace(self, metric: str, values: Mapping[Values, float]) -> None:
        """Set all series of a gauge at once, by the values of its labels in their order."""
        series = self._gauge(metric)
        assert all(len(each) == len(series.spec.labels) for each in values), metric
        series.numbers = dict(values)

    def forget(self, metric: str, labels: Mapping[str, str]) -> None:
        """Drop every series of a gauge that has these labels, whatever its others are."""
        series = self._gauge(metric)
        wanted = {series.spec.labels.index(name): value for name, value in labels.items()}
        series.numbers = {
            values: number
            for values, number in series.numbers.items()
            if any(values[place] != value for place, value in wanted.items())
        }

    def announce(self, *, version: str, commit: str = "") -> None:
        """Say what runs here, and start those counters that people alert on at zero."""
        build = {
            "version": version,
            "goversion": f"python{platform.python_version()}",
            "goarch": platform.machine(),
            "commit": commit,
        }
        self.set("build_info", 1.0, build)
        for kind in ("multi", "single"):
            self.count(Count(_TIMEOUTS, {"consolidation_type": kind}, 0.0))

    def render(self) -> bytes:
        """Write everything as Prometheus reads it."""
        # Parity: always the plain text format; OpenMetrics would rename what dashboards know.
        return generate_latest(self._registry)

    def _gauge(self, metric: str) -> Series:
        series = self._series[metric]
        assert series.spec.type is MetricType.GAUGE, f"{metric} is counted, not set"
        return series


class _Collector(Collector):
    """Hands series over to prometheus_client; a metric without any is not told, as in Go."""

    def __init__(self, series: list[Series]) -> None:
        self._series = series

    def collect(self) -> Iterator[Metric]:
        for each in self._series:
            samples = each.samples()
            if samples:
                spec = each.spec
                is_counter = spec.type is MetricType.COUNTER
                # The client adds the ending to the name of a counter by itself.
                name = spec.name.removesuffix(_TOTAL) if is_counter else spec.name
                metric = Metric(name, spec.help, spec.type.value)
                metric.samples = samples
                yield metric


def _values(spec: MetricSpec, labels: Mapping[str, str]) -> Values:
    assert labels.keys() == set(spec.labels), f"{spec.name} has labels {spec.labels}, not {labels}"
    return tuple(labels[name] for name in spec.labels)
