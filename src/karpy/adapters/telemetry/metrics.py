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
"""Numbers of this size Go writes without an exponent."""
CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
GaugeValues: TypeAlias = Mapping[str, Mapping[Values, float]]
"""Series of gauges by metric, those of ages as moments."""
Source: TypeAlias = Callable[[], Callable[[], GaugeValues]]
"""
Collects gauges when metrics are scraped.

The event loop calls it; it copies the present state and returns at once. The function that it
returns computes the gauges in another thread.
"""
_TIMEOUTS: Final = "voluntary_disruption_consolidation_timeouts_total"


class LineWriter:
    """Writes the lines of one name; made once, since there may be a hundred thousand of them."""

    def __init__(self, name: str, labels: Sequence[str] = ()) -> None:
        places = sorted(range(len(labels)), key=lambda place: labels[place])
        self._sorted = None if places == list(range(len(labels))) else itemgetter(*places)
        pairs = ",".join(f'{labels[place]}="%s"' for place in places)
        self._form = f"{name}{{{pairs}}} %s\n" if labels else f"{name} %s\n"

    def write(self, values: Values, number: float) -> str:
        """Write one number; labels come in the order of their names."""
        text = "".join(values)
        # Most values are plain; checking each of them would take longer than all the rest.
        if any(special in text for special in _SPECIAL):
            values = tuple(value.translate(_IN_LABELS) for value in values)
        if self._sorted is not None:
            try:
                values = self._sorted(values)
            except IndexError as error:
                raise ValueError(f"{self._form!r} has other labels than {values}") from error
        return self._form % (*values, number_text(number))


def head(spec: MetricSpec) -> str:
    """Write what a metric is."""
    said = spec.help.translate(_IN_HELP)
    return f"# HELP {spec.name} {said}\n# TYPE {spec.name} {spec.type.value}\n"


def number_text(number: float) -> str:
    """Write a number so that Go can read it."""
    if isfinite(number):
        return repr(float(number))
    return "NaN" if isnan(number) else "+Inf" if number > 0 else "-Inf"


class Series:
    """All series of one metric; counters and gauges are a number each."""

    def __init__(self, spec: MetricSpec) -> None:
        self.spec = spec
        self.numbers: dict[Values, float] = {}
        self._line = LineWriter(spec.name, spec.labels)

    def add(self, values: Values, amount: float) -> None:
        """Count, or take down what was measured."""
        self.numbers[values] = self.numbers.get(values, 0.0) + amount

    def lines(self, more: Mapping[Values, float] | None = None) -> list[str]:
        """Write what there is now; the copy is made at once, since others go on counting."""
        return self._written({**self.numbers, **(more or {})})

    def _written(self, numbers: Mapping[Values, float]) -> list[str]:
        write = self._line.write
        return [write(values, number) for values, number in numbers.items()]


class Ages(Series):
    """Moments, reported as their age."""

    def __init__(self, spec: MetricSpec, today: Callable[[], float]) -> None:
        super().__init__(spec)
        self._today = today

    def _written(self, numbers: Mapping[Values, float]) -> list[str]:
        write, now = self._line.write, self._today()
        return [write(values, max(0.0, now - since)) for values, since in numbers.items()]


class Histograms(Series):
    """What was measured, by size."""

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
    """What was measured, and the quantiles of the last ten minutes."""

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
    """Make what a metric needs; `now` is for spans, `today` for moments that others wrote down."""
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
    """Write a bound as Go does: it is a label, and queries compare labels by their text."""
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
        """Called with the error of a source whose gauges are missing; the others are reported."""
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
        """Return what counts one series, for frequent use."""
        series = self._series[metric]
        assert series.spec.type is not MetricType.GAUGE, f"{metric} is set, not counted"
        return partial(series.add, _values(series.spec, labels or {}))

    def set(self, metric: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Set a gauge; one that reports an age is set to its start, in seconds since 1970."""
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

    def add_source(self, source: Source) -> None:
        """Add a source that is collected at each scrape."""
        self._sources.append(source)

    def prepare(self) -> Callable[[], bytes]:
        """Take down what there is now; what is returned writes it as Prometheus reads it."""
        # Rendering runs in another thread; its errors are reported at the next scrape.
        while self._missing:
            self.on_failure(self._missing.pop())
        works: list[Callable[[], GaugeValues]] = []
        for source in self._sources:
            with Barrier(self.on_failure):
                works.append(source())
        return partial(self._render, works)

    def render(self) -> bytes:
        """Write everything as Prometheus reads it."""
        return self.prepare()()

    def _render(self, works: Iterable[Callable[[], GaugeValues]]) -> bytes:
        told: dict[str, Mapping[Values, float]] = {}
        is_heard = self.on_failure is not fail_at_once
        barrier = Barrier(self._missing.append if is_heard else fail_at_once)
        for work in works:
            with barrier:
                for metric, values in work().items():
                    name = self._gauge(metric).spec.name
                    told[name] = {**told[name], **values} if name in told else values
        # Parity: the format of metrics: as Karpenter, Karpy writes the plain text format, because
        # OpenMetrics would rename series that dashboards use.
        parts: list[str] = []
        for series in self._made:
            # One metric that cannot be written takes none of the others along.
            with barrier:
                lines = series.lines(told.get(series.spec.name))
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
