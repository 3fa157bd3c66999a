"""
Compare Karpy with a prototype and with recorded figures on shared workload files.

    python -m benchmarks.shared --dir DIR --proto PROTO.py --figures DIR --checker CHECK.py

Both programs run alternately, each time in a fresh process; the requirements must hold for the best
runs and for the median ratio. Where the prototype cannot run a file, Karpy's own time on another
file is the reference. Exits with 3 if a requirement is missed. Detailed result lines are kept in
.bench/shared.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks.figures import Figure, read_figures
from benchmarks.measuring import HAS_NODES, SOUND, Measurement, measure_file, tell
from benchmarks.processes import RunFailed, run_checker
from benchmarks.report import growth

RATIO_MAX: Final = {
    "diverse-1000": 1.5,
    "diverse-10000": 1.5,
    "diverse-50000": 1.5,
    "real-2000": 1.5,
    "real-10000": 1.5,
    "real-50000": 1.5,
    "preference-4000": 1.5,
    "adv-selectors-2000": 0.6,
    "adv-distinct-2000": 1.0,
    "adv-hostanti-2000": 1.5,
    "adv-zonespread-2000": 1.5,
    "adv-prefs-2000": 1.5,
    "adv-unschedulable-2000": 1.5,
}
MIXED: Final = ("mixed-1000",)
RECORDED: Final = ("mixed-2000",)
"""Files whose figures were recorded without a time limit."""
MIXED_YARDSTICK: Final = "real-10000"
MIXED_MAX: Final = 1.5
PEAK_MB_MAX: Final = {"real-50000": 600.0}
GROWTH_MAX: Final = 6.0
PRICE_TOLERANCE: Final = 1e-9
WORK: Final = Path(".bench/shared")


class Judgement(Struct, frozen=True):
    """One requirement with its limit and the measured value."""

    name: str
    what: str
    had: str
    wanted: str
    is_met: bool

    def __str__(self) -> str:
        """Return the requirement as one line."""
        mark = "ok    " if self.is_met else "MISSED"
        return f"{mark} {self.name:24} {self.what:24} {self.had:>14}  wanted {self.wanted}"


def main() -> int:
    """Measure, check the requirements, and print."""
    asked = _parse()
    names = asked.names or [*RATIO_MAX, *MIXED, *RECORDED]
    WORK.mkdir(parents=True, exist_ok=True)
    figures = read_figures(asked.figures) if asked.figures else {}
    measurements: list[Measurement] = []
    judgements: list[Judgement] = []
    try:
        for name in names:
            path, detail = asked.dir / f"{name}.json", WORK / f"{name}.jsonl"
            # The prototype does not support running nodes.
            has_nodes = name.startswith(HAS_NODES)
            measurements.append(
                measure_file(
                    path,
                    rounds=asked.rounds,
                    against=None if has_nodes else asked.proto,
                    beside=asked.dir / f"{MIXED_YARDSTICK}.json" if name in MIXED else None,
                    detail_to=detail,
                    seconds_to_check=asked.seconds_to_check,
                )
            )
            if asked.checker is not None:
                judgements.append(_judge_by_checker(asked.checker, path, detail))
    except (RunFailed, OSError) as error:
        tell(f"error: {error}")
        return 1
    for each in measurements:
        judgements += judge_alone(each, figures.get(each.name))
    judgements += judge_together(measurements)
    _print_table(measurements, figures)
    print()
    for judgement in judgements:
        print(judgement)
    missed = sum(not judgement.is_met for judgement in judgements)
    print(f"\n{len(judgements) - missed} of {len(judgements)} requirements met")
    return 3 if missed else 0


def _judge_by_checker(checker: Path, path: Path, detail: Path) -> Judgement:
    said = run_checker(checker, path, detail)
    if said:
        tell(f"  {checker.name}: {said}")
    return Judgement(path.stem, checker.name, "objects" if said else "agrees", "agrees", not said)


def judge_alone(each: Measurement, figure: Figure | None) -> Iterator[Judgement]:
    """Check the requirements of one workload."""
    best, name = each.best, each.name
    if each.ratio is not None and name in MIXED:
        what, is_met = f"time : {MIXED_YARDSTICK}", each.ratio <= MIXED_MAX
        yield Judgement(name, what, f"{each.ratio:.3f}", f"<= {MIXED_MAX}", is_met)
    if each.ratio is not None and name in RATIO_MAX:
        most = RATIO_MAX[name]
        yield Judgement(
            name, "time : prototype", f"{each.ratio:.3f}", f"<= {most}", each.ratio <= most
        )
    if figure is not None:
        most_price = figure.median_price * (1 + PRICE_TOLERANCE)
        wanted = f"<= {figure.median_price:,.4f}"
        is_met = best.total_price <= most_price
        yield Judgement(name, "price", f"{best.total_price:,.4f}", wanted, is_met)
    theirs = [other for other in each.theirs if other.workload == name]
    failed = figure.failed if figure else tuple({other.failed for other in theirs})
    if failed:
        wanted = " or ".join(str(count) for count in failed)
        yield Judgement(
            name, "pods without a place", str(best.failed), wanted, best.failed in failed
        )
    if name in PEAK_MB_MAX:
        most = PEAK_MB_MAX[name]
        peak = each.peak_rss_mb
        yield Judgement(name, "peak memory", f"{peak:,.0f} MB", f"< {most:,.0f} MB", peak < most)
    is_one = len({(outcome.total_price, outcome.nodes) for outcome in each.ours}) == 1
    yield Judgement(name, "same plan in each run", "same" if is_one else "differs", "same", is_one)
    yield Judgement(name, "our checker", each.verdict, SOUND, each.verdict == SOUND)


def judge_together(measurements: Sequence[Measurement]) -> Iterator[Judgement]:
    """Check the requirements between workloads."""
    for family, small, large, ratio in growth(measurements):
        if large == 5 * small:
            what = f"growth {small} to {large}"
            yield Judgement(family, what, f"{ratio:.2f}", f"<= {GROWTH_MAX}", ratio <= GROWTH_MAX)


def _print_table(measurements: Sequence[Measurement], figures: Mapping[str, Figure]) -> None:
    print(
        f"{'workload':24} {'karpy s':>9} {'other s':>9} {'ratio':>6} {'karpy $/h':>12}"
        f" {'proto $/h':>12} {'median $/h':>12} {'lowest':>12} {'n':>3} {'go s':>8} {'MB':>6}"
    )
    for each in measurements:
        best, other, figure = each.best, each.their_best, figures.get(each.name)
        row = f"{each.name:24} {best.wall_s:9.3f}"
        row += f" {other.wall_s:9.3f} {each.ratio:6.2f}" if other else " " * 17
        row += f" {best.total_price:12,.2f}"
        is_same = other is not None and other.workload == each.name
        row += f" {other.total_price:12,.2f}" if other and is_same else " " * 13
        if figure is None:
            row += " " * 39
        else:
            row += f" {figure.median_price:12,.2f} {figure.lowest_price:12,.2f} {figure.runs:3}"
            row += f" {figure.best_s:8.2f}"
        print(f"{row} {each.peak_rss_mb:6,.0f}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shared",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="workloads; by default all with requirements")
    parser.add_argument("--dir", type=Path, required=True, help="folder of workload files")
    parser.add_argument("--proto", type=Path, help="the prototype's script")
    parser.add_argument("--figures", type=Path, help="result lines of Karpenter, file or folder")
    parser.add_argument("--checker", type=Path, help="independent checker of result lines")
    parser.add_argument("--rounds", type=int, default=5, help="turns; at most 3 on big files")
    parser.add_argument(
        "--seconds-to-check", type=int, default=900, help="how long our own checker may take"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
