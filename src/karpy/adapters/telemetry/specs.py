"""What a metric is, and the parts that many share."""

from collections.abc import Sequence
from enum import Enum
from itertools import accumulate, repeat
from operator import mul
from typing import Final

from msgspec import Struct


class MetricType(Enum):
    """How a metric is to be read; the value is Prometheus' word for it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


class MetricSpec(Struct, frozen=True):
    """A metric by its full name."""

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    is_age: bool = False
    """A gauge that is set to a moment and tells how long ago that was, whenever it is asked."""


_DURATIONS_TO_A_MINUTE: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0),
    *(20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
RECONCILE_BUCKETS: Final = _DURATIONS_TO_A_MINUTE
DURATION_BUCKETS: Final = (*_DURATIONS_TO_A_MINUTE, 120.0, 150.0, 300.0, 450.0, 600.0)
DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Those of Prometheus' own clients."""
_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
LIFETIME_BUCKETS: Final = (
    *(minutes * 60.0 for minutes in (15, 30, 45)),
    *(hours * _HOUR for hours in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
    *(days * _DAY for days in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
)
QUANTILES: Final = (0.0, 0.5, 0.9, 0.99, 1.0)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Make buckets, each so many times larger than the one before."""
    # One after the other, as Go does it: the last digits of a bucket are part of its name.
    return tuple(accumulate(repeat(factor, count - 1), mul, initial=float(start)))


def counter(name: str, labels: Sequence[str], meaning: str) -> MetricSpec:
    """Describe something that is counted."""
    return MetricSpec(name, MetricType.COUNTER, meaning, tuple(labels))


def gauge(name: str, labels: Sequence[str], meaning: str) -> MetricSpec:
    """Describe something that goes up and down."""
    return MetricSpec(name, MetricType.GAUGE, meaning, tuple(labels))


def age(name: str, labels: Sequence[str], meaning: str) -> MetricSpec:
    """Describe how long something has been so; it is set to when that began."""
    return MetricSpec(name, MetricType.GAUGE, meaning, tuple(labels), is_age=True)


def histogram(
    name: str, labels: Sequence[str], buckets: Sequence[float], meaning: str
) -> MetricSpec:
    """Describe something that is measured, and counted by size."""
    return MetricSpec(name, MetricType.HISTOGRAM, meaning, tuple(labels), tuple(buckets))


def summary(name: str, labels: Sequence[str], meaning: str) -> MetricSpec:
    """Describe something that is measured, and told by its quantiles."""
    return MetricSpec(name, MetricType.SUMMARY, meaning, tuple(labels))
