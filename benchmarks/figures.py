"""Figures of Karpenter itself, recorded as karpbench/v1 result lines."""

from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from benchmarks.processes import Outcome


class Figure(Struct, frozen=True):
    """The summary of all recorded runs of one workload."""

    runs: int
    best_s: float
    median_price: float
    lowest_price: float
    failed: tuple[int, ...]
    """The distinct numbers of unschedulable pods."""


def read_figures(place: Path) -> dict[str, Figure]:
    """Read a file of result lines, or all `provision*.jsonl` of a folder; skip timed-out runs."""
    files = sorted(place.glob("provision*.jsonl")) if place.is_dir() else [place]
    by_name: dict[str, list[Outcome]] = {}
    for path in files:
        for line in path.read_text().splitlines():
            outcome = msgspec.json.decode(line, type=Outcome)
            if not outcome.timed_out:
                by_name.setdefault(outcome.workload, []).append(outcome)
    return {name: _figure(outcomes) for name, outcomes in by_name.items()}


def _figure(outcomes: list[Outcome]) -> Figure:
    prices = [outcome.total_price for outcome in outcomes]
    return Figure(
        runs=len(outcomes),
        best_s=min(outcome.wall_s for outcome in outcomes),
        median_price=median(prices),
        lowest_price=min(prices),
        failed=tuple(sorted({outcome.failed for outcome in outcomes})),
    )
