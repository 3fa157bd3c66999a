"""The summary of the demo: nodes, waiting times and prices."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import Any, Final

from msgspec import Struct

from karpy.cli.show.chronicle import Chronicle
from karpy.cli.tables import count_of, dollars, heading
from karpy.cli.terminal import Line, Span, Style, line
from karpy.model.instances import MICROS_PER_DOLLAR

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_LABEL: Final = 9
_SPARKS: Final = 60
_NEXT: Final = (
    ("karpy cluster --operator --examples", "the same cluster, kept running for kubectl"),
    ("karpy demo --plan", "a larger shop: every node and every no explained"),
    ("karpy run", "the same autoscaler, for the cluster of your kubeconfig"),
)

Prices = Sequence[tuple[float, int]]
"""The price of the cluster from a second on, in micro-dollars per hour."""


class Summary(Struct, frozen=True):
    """The numbers of a demo; seconds are seconds of the cluster unless stated."""

    seconds: float
    speed: float
    """Seconds of the cluster per second of real time."""
    is_complete: bool
    """Whether the story was played to its end."""
    launched: int
    removed: int
    waits: tuple[float, ...]
    """Waiting times of pods, shortest first."""
    prices: tuple[tuple[float, int], ...]
    decided: tuple[float, ...]
    """Durations of decisions in seconds of real time, shortest first."""
    refused: int
    troubles: int
    saved: int = 0
    """Savings by disruption commands, in micro-dollars per hour."""

    @property
    def peak(self) -> int:
        return max(price for _, price in self.prices)

    @property
    def average(self) -> int:
        """The average price in micro-dollars per hour."""
        times = [*self.prices, (self.seconds, 0)]
        total = sum(price * (end - start) for (start, price), (end, _) in pairwise(times))
        return round(total / self.seconds) if self.seconds else 0


def summarize(chronicle: Chronicle, speed: float, *, is_complete: bool) -> Summary:
    """Return the summary of a chronicle."""
    return Summary(
        seconds=chronicle.board.seconds,
        speed=speed,
        is_complete=is_complete,
        launched=chronicle.launched,
        removed=chronicle.removed,
        waits=tuple(sorted(chronicle.waits)),
        prices=tuple(chronicle.prices),
        decided=tuple(sorted(each / speed for each in chronicle.decided)),
        refused=len(chronicle.refused),
        troubles=chronicle.troubles,
        saved=chronicle.saved,
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return a percentile of sorted values; 0 if there are none."""
    return ordered[ceil(len(ordered) * percent / 100) - 1] if ordered else 0.0


def price_at(prices: Prices, seconds: float) -> int:
    """Return the price of the cluster at a moment."""
    return next((price for start, price in reversed(prices) if start <= seconds), 0)


def sparkline(values: Sequence[int]) -> str:
    """Draw numbers as columns; the largest has full height."""
    most = max(values, default=0) or 1
    return "".join(_LEVELS[min(len(_LEVELS) - 1, each * len(_LEVELS) // most)] for each in values)


def summary_lines(summary: Summary) -> list[Line]:
    """Write a summary as text, with the next commands to try."""
    left = summary.launched - summary.removed
    p50, p99 = (percentile(summary.waits, each) for each in (50, 99))
    slowest = f"{max(summary.decided, default=0.0) * 1000:,.0f} ms"
    width = max(len(command) for command, _ in _NEXT) + 2
    return [
        line(),
        heading("What it comes to"),
        _labelled("Nodes", f"{summary.launched} launched, {summary.removed} removed, {left} left"),
        _labelled(
            "Pods",
            f"{len(summary.waits)} ran; from creation to running p50 {p50:.1f} s, p99 {p99:.1f} s",
        ),
        _labelled(
            "Decided",
            f"{count_of(len(summary.decided), 'time')} about pods, in {slowest} at most;"
            f" {count_of(summary.refused, 'pod')} refused, with the reason",
        ),
        *_cost_lines(summary),
        _labelled("Time", _time_text(summary)),
        line(),
        heading("How to go on"),
        *(line(f"  {command:{width}}", Span(why, Style.QUIET)) for command, why in _NEXT),
    ]


def _cost_lines(summary: Summary) -> list[Line]:
    step = summary.seconds / _SPARKS
    values = [price_at(summary.prices, step * (place + 0.5)) for place in range(_SPARKS)]
    last = summary.prices[-1][1]
    more = round(100 * (summary.peak - summary.average) / summary.average) if summary.average else 0
    return [
        (
            Span("Cost".ljust(_LABEL), Style.STRONG),
            Span(sparkline(values), Style.GOOD),
            Span(f"  up to {dollars(summary.peak)}/h", Style.QUIET),
        ),
        _labelled("", f"{dollars(summary.average)}/h on average, {dollars(last)}/h in the end"),
        _labelled("", f"{dollars(summary.saved)}/h saved: empty nodes went, and others shared"),
        _labelled("", f"as many nodes as at the peak, all the time: {more}% more"),
    ]


def _time_text(summary: Summary) -> str:
    wall = summary.seconds / summary.speed
    if summary.speed == 1:
        return f"{wall:.0f} s"
    return f"{wall:.0f} s on the wall, {summary.seconds:.0f} s in the cluster"


def _labelled(label: str, text: str) -> Line:
    return (Span(label.ljust(_LABEL), Style.STRONG), Span(text))


def summary_answer(summary: Summary) -> dict[str, Any]:
    """Write a summary as JSON."""
    return {
        "isComplete": summary.is_complete,
        "seconds": round(summary.seconds, 3),
        "speed": summary.speed,
        "nodes": {
            "launched": summary.launched,
            "removed": summary.removed,
            "left": summary.launched - summary.removed,
        },
        "pods": {
            "ran": len(summary.waits),
            "refused": summary.refused,
            "waitSeconds": {
                "p50": round(percentile(summary.waits, 50), 3),
                "p99": round(percentile(summary.waits, 99), 3),
            },
        },
        "decisions": {
            "made": len(summary.decided),
            "secondsMax": round(max(summary.decided, default=0.0), 6),
        },
        "dollarsPerHour": {
            "peak": summary.peak / MICROS_PER_DOLLAR,
            "average": summary.average / MICROS_PER_DOLLAR,
            "saved": summary.saved / MICROS_PER_DOLLAR,
            "end": summary.prices[-1][1] / MICROS_PER_DOLLAR,
            "overTime": [
                {"seconds": round(start, 3), "dollarsPerHour": price / MICROS_PER_DOLLAR}
                for start, price in summary.prices
            ],
        },
        "troubles": summary.troubles,
    }
