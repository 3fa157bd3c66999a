"""Measure workload files in rounds, alternating with another solver, so that noise hits both."""

import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Final

from msgspec import Struct

from benchmarks.processes import Outcome, run_karpy, run_prototype

SECONDS_TO_CHECK: Final = 120
BIG_BYTES: Final = 10_000_000
ROUNDS_OF_BIG: Final = 3
SOUND: Final = "sound"
HAS_NODES: Final = "mixed"
"""The prefix of the names of workloads with running nodes."""


class Measurement(Struct, frozen=True):
    """All runs on one file."""

    name: str
    ours: tuple[Outcome, ...]
    theirs: tuple[Outcome, ...] = ()
    """As many runs of the other solver, or of Karpy on another file."""
    verdict: str = SOUND
    """The verdict of the checker: `sound`, `3 breaches`, or that it ran out of time."""

    @property
    def best(self) -> Outcome:
        return min(self.ours, key=_by_time)

    @property
    def their_best(self) -> Outcome | None:
        return min(self.theirs, key=_by_time, default=None)

    @property
    def ratio(self) -> float | None:
        """
        Our time divided by theirs: of the best runs, or the median over the turns if larger.

        The speed of a shared machine changes every few seconds. The best runs may have had
        different speeds; the two runs of a turn have about the same speed, but are single runs.
        """
        other = self.their_best
        if other is None:
            return None
        turns = zip(self.ours, self.theirs, strict=False)
        middle = median(ours.wall_s / theirs.wall_s for ours, theirs in turns)
        return max(middle, self.best.wall_s / other.wall_s)

    @property
    def peak_rss_mb(self) -> float:
        return max((each.peak_rss_mb or 0.0 for each in self.ours), default=0.0)


def measure_file(
    path: Path,
    *,
    rounds: int,
    against: Path | None = None,
    beside: Path | None = None,
    detail_to: Path | None = None,
    seconds_to_check: int = SECONDS_TO_CHECK,
) -> Measurement:
    """
    Measure one file, alternating with the solver `against` or with Karpy on the file `beside`.

    One more run, which is not timed, is for the checker.
    """
    if beside is None and path.stat().st_size > BIG_BYTES:
        rounds = min(rounds, ROUNDS_OF_BIG)
    ours, theirs = [], []
    for _ in range(max(1, rounds)):
        if against is not None:
            theirs.append(run_prototype(against, path))
        elif beside is not None:
            theirs.append(run_karpy(beside))
        ours.append(run_karpy(path, detail_to=detail_to))
    verdict = _check(path, seconds_to_check)
    measurement = Measurement(path.stem, tuple(ours), tuple(theirs), verdict)
    tell(progress(measurement))
    return measurement


def progress(measurement: Measurement) -> str:
    """Return one line about a measurement."""
    best = measurement.best
    text = f"{measurement.name:24} {best.wall_s:8.3f} s {best.pods_per_s:10,.0f} pods/s"
    text += f" {best.nodes:6,} nodes {best.total_price:12,.2f} $/h"
    text += f" {measurement.peak_rss_mb:7,.0f} MB  {measurement.verdict}"
    if measurement.ratio is not None:
        text += f"  ratio {measurement.ratio:.2f}"
    return text


def tell(text: str) -> None:
    """Print progress on stderr at once."""
    print(text, file=sys.stderr, flush=True)


def _check(path: Path, seconds_max: int) -> str:
    try:
        outcome = run_karpy(path, is_checked=True, seconds_max=seconds_max)
    except subprocess.TimeoutExpired:
        return f"not checked within {seconds_max} s"
    return SOUND if outcome.breaches == 0 else f"{outcome.breaches} breaches"


def _by_time(outcome: Outcome) -> float:
    return outcome.wall_s
