"""What has been counted, set or measured so far, one kind of series for each type of metric."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from itertools import accumulate
from math import ceil, inf, isinf, nan
from typing import Final

from karpy.adapters.telemetry.exposition import LineWriter, Values
from karpy.adapters.telemetry.specs import QUANTILES, MetricSpec, MetricType

_WINDOW_SECONDS: Final = 600.0
_WINDOW_MAX: Final = 10_000
_PLAIN_EXPONENTS: Final = range(-4, 6)
"""Numbers of this size Go writes without an exponent."""


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
    """Moments, told by how long ago they were."""

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
