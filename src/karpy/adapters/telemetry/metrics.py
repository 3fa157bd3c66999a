"""The registry of metrics: counters, gauges and histograms, rendered for Prometheus."""

import platform
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache, partial
from itertools import accumulate
from math import ceil, inf, isfinite, isinf, isnan, nan
from operator import itemgetter
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from karpy.adapters.telemetry.specs import PREFIX, QUANTILES, MetricSpec, MetricType, metric_specs
from karpy.barriers import Barrier, OnError, fail_at_once
from karpy.core.lifecycle.changes import Count
from karpy.errors import KarpyError

Values: TypeAlias = tuple[str, ...]
"""The values of a metric's labels, in the order of its labels."""
_ESCAPES: Final = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_SPECIAL: Final = tuple(_ESCAPES)
_IN_LABELS: Final = str.maketrans(_ESCAPES)
_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_WINDOW_SECONDS: Final = 600.0
_WINDOW_MAX: Final = 10_000
_PLAIN_EXPONENTS: Final = range(-4, 6)
"""The exponents of numbers that Go writes without an exponent."""
CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
GaugeValues: TypeAlias = Mapping[str, Mapping[Values, float]]
"""Series of gauges by metric; the value of an age is the moment at which it began."""
Source: TypeAlias = Callable[[], Callable[[], GaugeValues]]
"""
Collects gauges at a scrape.

The event loop calls the source, which copies the present state and returns at once. The returned
function computes the gauges in another thread.
"""
_TIMEOUTS: Final = "voluntary_disruption_consolidation_timeouts_total"


class LineWriter:
    """Writes the lines of one name; prepared once for up to a hundred thousand lines."""

    def __init__(self, name: str, labels: Sequence[str] = ()) -> None:
        places = sorted(range(len(labels)), key=lambda place: labels[place])
        self._sorted = None if places == list(range(len(labels))) else itemgetter(*places)
        pairs = ",".join(f'{labels[place]}="%s"' for place in places)
        self._form = f"{name}{{{pairs}}} %s\n" if labels else f"{name} %s\n"

    def write(self, values: Values, number: float) -> str:
        """Write the line of one series, with labels in alphabetical order."""
        text = "".join(values)
        # Most values need no escapes; a check of each value would dominate the run time.
        if any(special in text for special in _SPECIAL):
            values = tuple(value.translate(_IN_LABELS) for value in values)
        if self._sorted is not None:
            try:
                values = self._sorted(values)
            except IndexError as error:
                raise ValueError(f"{self._form!r} has other labels than {values}") from error
        return self._form % (*values, number_text(number))


def head(spec: MetricSpec) -> str:
    """Write the HELP and TYPE lines of a metric."""
    text = spec.help.translate(_IN_HELP)
    return f"# HELP {spec.name} {text}\n# TYPE {spec.name} {spec.type.value}\n"


def number_text(number: float) -> str:
    """Write a number in the format of Go."""
    if isfinite(number):
        return repr(float(number))
    return "NaN" if isnan(number) else "+Inf" if number > 0 else "-Inf"


class Series:
    """All series of one metric: one number per series, for counters and gauges."""

    def __init__(self, spec: MetricSpec) -> None:
        self.spec = spec
        self.numbers: dict[Values, float] = {}
        self._line = LineWriter(spec.name, spec.labels)

    def add(self, values: Values, amount: float) -> None:
        """Add an amount to a series; subclasses record it as a measurement."""
        self.numbers[values] = self.numbers.get(values, 0.0) + amount

    def lines(self, more: Mapping[Values, float] | None = None) -> list[str]:
        """Write the present series; works on a copy, because the event loop goes on counting."""
        return self._written({**self.numbers, **(more or {})})

    def _written(self, numbers: Mapping[Values, float]) -> list[str]:
        write = self._line.write
        return [write(values, number) for values, number in numbers.items()]


class Ages(Series):
    """Gauges that hold moments and report their age."""

    def __init__(self, spec: MetricSpec, today: Callable[[], float]) -> None:
        super().__init__(spec)
        self._today = today

    def _written(self, numbers: Mapping[Values, float]) -> list[str]:
        write, now = self._line.write, self._today()
        return [write(values, max(0.0, now - since)) for values, since in numbers.items()]


class Histograms(Series):
    """Histograms: measurements counted by bucket."""

    def __init__(self, spec: MetricSpec) -> None:
        super().__init__(spec)
        self._counts: dict[Values, list[int]] = {}
        self._bounds = [bound_text(bound) for bound in (*spec.buckets, inf)]
        self._bucket = LineWriter(f"{spec.name}_bucket", (*spec.labels, "le"))
        self._sum = LineWriter(f"{spec.name}_sum", spec.labels)
        self._count = LineWriter(f"{spec.name}_count", spec.labels)

    def add(self, values: Values, amount: float) -> None:
        counts = self._counts.get(values)
        if counts is None:
            counts = self._counts[values] = [0] * len(self._bounds)
        counts[bisect_left(self.spec.buckets, amount)] += 1
        super().add(values, amount)

    def lines(self, more: Mapping[Values, float] | None = None) -> list[str]:
        del more
        return [
            line
            for values, counts in list(self._counts.items())
            for line in self._of(values, tuple(accumulate(counts)))
        ]

    def _of(self, values: Values, counts: tuple[int, ...]) -> list[str]:
        return [
            *(
                self._bucket.write((*values, bound), count)
                for bound, count in zip(self._bounds, counts, strict=True)
            ),
            self._sum.write(values, self.numbers.get(values, 0.0)),
            self._count.write(values, counts[-1]),
        ]


class Summaries(Series):
    """Summaries: sums, and quantiles over the last ten minutes."""

    def __init__(self, spec: MetricSpec, now: Callable[[], float]) -> None:
        super().__init__(spec)
        self._now = now
        self._counts: dict[Values, int] = {}
        self._latest: dict[Values, deque[tuple[float, float]]] = {}
        self._part = LineWriter(spec.name, (*spec.labels, "quantile"))
        self._sum = LineWriter(f"{spec.name}_sum", spec.labels)
        self._count = LineWriter(f"{spec.name}_count", spec.labels)

    def add(self, values: Values, amount: float) -> None:
        super().add(values, amount)
        self._counts[values] = self._counts.get(values, 0) + 1
        latest = self._latest.setdefault(values, deque(maxlen=_WINDOW_MAX))
        latest.append((self._now(), amount))

    def lines(self, more: Mapping[Values, float] | None = None) -> list[str]:
        del more
        return [line for values in list(self._counts) for line in self._of(values)]

    def _of(self, values: Values) -> list[str]:
        since = self._now() - _WINDOW_SECONDS
        latest = sorted(amount for at, amount in tuple(self._latest[values]) if at >= since)
        return [
            *(
                self._part.write((*values, bound_text(each)), _quantile(latest, each))
                for each in QUANTILES
            ),
            self._sum.write(values, self.numbers[values]),
            self._count.write(values, self._counts[values]),
        ]


def make_series(spec: MetricSpec, now: Callable[[], float], today: Callable[[], float]) -> Series:
    """Make the series of a metric; `now` is a monotonic clock, `today` seconds since 1970."""
    if spec.is_age:
        return Ages(spec, today)
    match spec.type:
        case MetricType.HISTOGRAM:
            return Histograms(spec)
        case MetricType.SUMMARY:
            return Summaries(spec, now)
    return Series(spec)


@cache
def bound_text(bound: float) -> str:
    """Write a bound in Go's format: it is a label, which queries compare as text."""
    if isinf(bound):
        return "+Inf"
    number = Decimal(repr(bound)).normalize()
    mantissa, _, exponent = f"{number:e}".partition("e")
    if int(exponent) in _PLAIN_EXPONENTS:
        return f"{number:f}"
    return f"{mantissa}e{int(exponent):+03d}"


def _quantile(ordered: list[float], share: float) -> float:
    if not ordered:
        return nan
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


class Metrics:
    """
    The registry of all metrics.

    A metric is found by its full name; the prefix `karpenter_` may be left out. A name or a set of
    labels without a spec is a bug of the caller. Only one thread writes; another thread may render
    a prepared state.
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
        """Called with the error of a source; the gauges of all other sources are reported."""
        self._missing: list[KarpyError] = []

    def has(self, metric: str) -> bool:
        """Say whether a metric exists."""
        return metric in self._series

    def labels(self, metric: str) -> tuple[str, ...]:
        """Name the labels of a metric, in their order."""
        return self._series[metric].spec.labels

    def count(self, count: Count) -> None:
        """Add to a counter, record a measurement, or set a gauge."""
        series = self._series[count.metric]
        values = _values(series.spec, count.labels)
        if series.spec.type is MetricType.GAUGE:
            series.numbers[values] = count.value
        else:
            series.add(values, count.value)

    def meter(
        self, metric: str, labels: Mapping[str, str] | None = None
    ) -> Callable[[float], None]:
        """Return a function that adds to one series, for frequent use."""
        series = self._series[metric]
        assert series.spec.type is not MetricType.GAUGE, f"{metric} is set, not counted"
        return partial(series.add, _values(series.spec, labels or {}))

    def set(self, metric: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Set a gauge; an age is set to its start, in seconds since 1970."""
        series = self._gauge(metric)
        series.numbers[_values(series.spec, labels or {})] = value

    def replace(self, metric: str, values: Mapping[Values, float]) -> None:
        """Set all series of a gauge at once, by the values of its labels in their order."""
        series = self._gauge(metric)
        assert all(len(each) == len(series.spec.labels) for each in values), metric
        series.numbers = dict(values)

    def forget(self, metric: str, labels: Mapping[str, str]) -> None:
        """Drop every series of a gauge with these labels; other labels may have any value."""
        series = self._gauge(metric)
        wanted = {series.spec.labels.index(name): value for name, value in labels.items()}
        series.numbers = {
            values: number
            for values, number in series.numbers.items()
            if any(values[place] != value for place, value in wanted.items())
        }

    def announce(self, *, version: str, commit: str = "") -> None:
        """Set `build_info`, and start the counters that alerts read at zero."""
        build = {
            "version": version,
            "goversion": f"python{platform.python_version()}",
            "goarch": platform.machine(),
            "commit": commit,
        }
        self.set("build_info", 1.0, build)
        for kind in ("multi", "single"):
            self.count(Count(_TIMEOUTS, {"consolidation_type": kind}, 0.0))

    def add_source(self, source: Source) -> None:
        """Add a source that is collected at each scrape."""
        self._sources.append(source)

    def prepare(self) -> Callable[[], bytes]:
        """Copy the present state; return a function that renders it for Prometheus."""
        # Rendering runs in another thread; its errors are reported at the next scrape.
        while self._missing:
            self.on_failure(self._missing.pop())
        works: list[Callable[[], GaugeValues]] = []
        for source in self._sources:
            with Barrier(self.on_failure):
                works.append(source())
        return partial(self._render, works)

    def render(self) -> bytes:
        """Write all metrics in Prometheus' text format."""
        return self.prepare()()

    def _render(self, works: Iterable[Callable[[], GaugeValues]]) -> bytes:
        gauges: dict[str, Mapping[Values, float]] = {}
        is_reported = self.on_failure is not fail_at_once
        barrier = Barrier(self._missing.append if is_reported else fail_at_once)
        for work in works:
            with barrier:
                for metric, values in work().items():
                    name = self._gauge(metric).spec.name
                    gauges[name] = {**gauges[name], **values} if name in gauges else values
        # Parity: the format of metrics: as Karpenter, Karpy writes the plain text format, because
        # OpenMetrics would rename series that dashboards use.
        parts: list[str] = []
        for series in self._made:
            # A metric that cannot be written is left out; the other metrics are written.
            with barrier:
                lines = series.lines(gauges.get(series.spec.name))
                # A metric without any series is left out, as in Go.
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
