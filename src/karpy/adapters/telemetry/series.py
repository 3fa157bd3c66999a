"""What has been counted, set or measured so far, one kind of series for each type of metric."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from itertools import accumulate
from math import ceil, inf, isinf, nan
from typing import Final, TypeAlias

from prometheus_client.samples import Sample

from karpy.adapters.telemetry.specs import QUANTILES, MetricSpec, MetricType

Values: TypeAlias = tuple[str, ...]
"""The values of a metric's labels, in the order of its labels."""
_WINDOW_SECONDS: Final = 600.0
_WINDOW_MAX: Final = 10_000
_PLAIN_EXPONENTS: Final = range(-4, 6)
"""Numbers of this size Go writes without an exponent."""


class Series:
    """All series of one metric; counters and gauges are a number each."""

    def __init__(self, spec: MetricSpec) -> None:
        self.spec = spec
        self.numbers: dict[Values, float] = {}

    def add(self, values: Values, amount: float) -> None:
        """Count, or take down what was measured."""
        self.numbers[values] = self.numbers.get(values, 0.0) + amount

    def samples(self, more: Mapping[Values, float] | None = None) -> list[Sample]:
        """List what there is now; the copy is made at once, since others go on counting."""
        numbers = {**self.numbers, **(more or {})}
        return self._listed(numbers)

    def _listed(self, numbers: Mapping[Values, float]) -> list[Sample]:
        name = self.spec.name
        return [Sample(name, self._labels(values), number) for values, number in numbers.items()]

    def _labels(self, values: Values) -> dict[str, str]:
        return dict(zip(self.spec.labels, values, strict=True))


class Ages(Series):
    """Moments, told by how long ago they were."""

    def __init__(self, spec: MetricSpec, today: Callable[[], float]) -> None:
        super().__init__(spec)
        self._today = today

    def _listed(self, numbers: Mapping[Values, float]) -> list[Sample]:
        now = self._today()
        ages = {values: max(0.0, now - since) for values, since in numbers.items()}
        return super()._listed(ages)


class Histograms(Series):
    """What was measured, by size."""

    def __init__(self, spec: MetricSpec) -> None:
        super().__init__(spec)
        self._counts: dict[Values, list[int]] = {}
        self._bounds = [bound_text(bound) for bound in (*spec.buckets, inf)]

    def add(self, values: Values, amount: float) -> None:
        counts = self._counts.get(values)
        if counts is None:
            counts = self._counts[values] = [0] * len(self._bounds)
        counts[bisect_left(self.spec.buckets, amount)] += 1
        super().add(values, amount)

    def samples(self, more: Mapping[Values, float] | None = None) -> list[Sample]:
        del more
        return [
            sample
            for values, counts in list(self._counts.items())
            for sample in self._of(values, tuple(accumulate(counts)))
        ]

    def _of(self, values: Values, counts: tuple[int, ...]) -> list[Sample]:
        name, labels = self.spec.name, self._labels(values)
        return [
            *(
                Sample(f"{name}_bucket", {**labels, "le": bound}, count)
                for bound, count in zip(self._bounds, counts, strict=True)
            ),
            Sample(f"{name}_sum", labels, self.numbers.get(values, 0.0)),
            Sample(f"{name}_count", labels, counts[-1]),
        ]


class Summaries(Series):
    """What was measured, and the quantiles of the last ten minutes."""

    def __init__(self, spec: MetricSpec, now: Callable[[], float]) -> None:
        super().__init__(spec)
        self._now = now
        self._counts: dict[Values, int] = {}
        self._latest: dict[Values, deque[tuple[float, float]]] = {}

    def add(self, values: Values, amount: float) -> None:
        super().add(values, amount)
        self._counts[values] = self._counts.get(values, 0) + 1
        latest = self._latest.setdefault(values, deque(maxlen=_WINDOW_MAX))
        latest.append((self._now(), amount))

    def samples(self, more: Mapping[Values, float] | None = None) -> list[Sample]:
        del more
        return [sample for values in list(self._counts) for sample in self._of(values)]

    def _of(self, values: Values) -> list[Sample]:
        name, labels, since = self.spec.name, self._labels(values), self._now() - _WINDOW_SECONDS
        latest = sorted(amount for at, amount in tuple(self._latest[values]) if at >= since)
        return [
            *(
                Sample(name, {**labels, "quantile": bound_text(each)}, _quantile(latest, each))
                for each in QUANTILES
            ),
            Sample(f"{name}_sum", labels, self.numbers[values]),
            Sample(f"{name}_count", labels, self._counts[values]),
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
