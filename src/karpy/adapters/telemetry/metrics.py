"""Metrics: counted here, and told to Prometheus when it asks."""

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from karpy.adapters.telemetry.exposition import Values, head
from karpy.adapters.telemetry.karpentermetrics import PREFIX
from karpy.adapters.telemetry.runtimemetrics import metric_specs
from karpy.adapters.telemetry.series import Series, make_series
from karpy.adapters.telemetry.specs import MetricSpec, MetricType
from karpy.barriers import Barrier, OnError, fail_at_once
from karpy.core.lifecycle.changes import Count
from karpy.errors import KarpyError

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
Told: TypeAlias = Mapping[str, Mapping[Values, float]]
"""Series of gauges by metric, those of ages as moments."""
Source: TypeAlias = Callable[[], Callable[[], Told]]
"""
Tells gauges that nobody needs before they are asked for.

It is called by the one thread that writes, takes down what there is and returns at once; what it
returns works that out, in a thread of its own.
"""
_TIMEOUTS: Final = "voluntary_disruption_consolidation_timeouts_total"


class Metrics:
    """
    Everything that is counted, set or measured.

    A metric goes by its full name, Karpenter's own also without `karpenter_`. A name or a set of
    labels that no spec has is a mistake of the caller. Only one thread writes; another may render
    what that one has prepared.
    """

    def __init__(
        self,
        specs: Iterable[MetricSpec] | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
    ) -> None:
        listed = metric_specs() if specs is None else specs
        made = [make_series(spec, now, today) for spec in listed]
        self._series = {each.spec.name: each for each in made}
        self._series |= {each.spec.name.removeprefix(PREFIX): each for each in made}
        self._made = made
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        self._sources: list[Source] = []
        self.on_failure: OnError = fail_at_once
        """Is told why some gauges are missing; all others are told all the same."""
        self._missing: list[KarpyError] = []

    def has(self, metric: str) -> bool:
        """Say whether there is such a metric."""
        return metric in self._series

    def labels(self, metric: str) -> tuple[str, ...]:
        """Name the labels of a metric, in their order."""
        return self._series[metric].spec.labels

    def count(self, count: Count) -> None:
        """Count what happened, take down what was measured, or set a gauge."""
        series = self._series[count.metric]
        values = _values(series.spec, count.labels)
        if series.spec.type is MetricType.GAUGE:
            series.numbers[values] = count.value
        else:
            series.add(values, count.value)

    def meter(
        self, metric: str, labels: Mapping[str, str] | None = None
    ) -> Callable[[float], None]:
        """Return what counts one series, for those who do it often."""
        series = self._series[metric]
        assert series.spec.type is not MetricType.GAUGE, f"{metric} is set, not counted"
        return partial(series.add, _values(series.spec, labels or {}))

    def set(self, metric: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Set a gauge; one that tells an age is set to when that began, in seconds since 1970."""
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

    def ask(self, source: Source) -> None:
        """Have somebody asked for gauges each time they are told."""
        self._sources.append(source)

    def prepare(self) -> Callable[[], bytes]:
        """Take down what there is now; what is returned writes it as Prometheus reads it."""
        # Whoever renders is in a thread of its own; what fails there is told on the next occasion.
        while self._missing:
            self.on_failure(self._missing.pop())
        works: list[Callable[[], Told]] = []
        for source in self._sources:
            with Barrier(self.on_failure):
                works.append(source())
        return partial(self._render, works)

    def render(self) -> bytes:
        """Write everything as Prometheus reads it."""
        return self.prepare()()

    def _render(self, works: Iterable[Callable[[], Told]]) -> bytes:
        told: dict[str, Mapping[Values, float]] = {}
        is_heard = self.on_failure is not fail_at_once
        barrier = Barrier(self._missing.append if is_heard else fail_at_once)
        for work in works:
            with barrier:
                for metric, values in work().items():
                    name = self._gauge(metric).spec.name
                    told[name] = {**told[name], **values} if name in told else values
        # Parity: always the plain text format; OpenMetrics would rename what dashboards know.
        parts: list[str] = []
        for series in self._made:
            lines = series.lines(told.get(series.spec.name))
            # A metric without any series is not told, as in Go.
            if lines:
                parts += (head(series.spec), *lines)
        return "".join(parts).encode() + generate_latest(self._process)

    def _gauge(self, metric: str) -> Series:
        series = self._series[metric]
        assert series.spec.type is MetricType.GAUGE, f"{metric} is counted, not set"
        return series


def _values(spec: MetricSpec, labels: Mapping[str, str]) -> Values:
    assert labels.keys() == set(spec.labels), f"{spec.name} has labels {spec.labels}, not {labels}"
    return tuple(labels[name] for name in spec.labels)
