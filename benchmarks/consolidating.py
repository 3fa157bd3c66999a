"""
Measure consolidation decisions, and write their section of docs/benchmarks.md.

    python -m benchmarks.consolidating                           a minute
    python -m benchmarks.consolidating --dir DIR --figures FILE  also beside recorded figures
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.machine import describe_machine
from benchmarks.measuring import tell
from benchmarks.processes import KARPY, make_file, output
from benchmarks.report import table
from benchmarks.sections import with_section
from karpy.bench.consolidation import Consolidated, Decision
from karpy.bench.files import parse_workload, read_bytes
from karpy.codec.karpbench import read_workload
from karpy.core.disruption.decide import Pass
from karpy.core.scheduling.problem import Problem
from karpy.core.scheduling.whatif import WhatIf
from karpy.model.snapshot import DisruptionQuestion, Snapshot

TITLE: Final = "## Consolidation"
NAMES: Final = ("full-500", "full-1000", "full-2000", "idle-100", "idle-500", "idle-1000")
CONVERGED: Final = "idle-30"
_ASKED: Final = "full-1000"
ROUNDS: Final = 5
_PAGE: Final = Path("docs/benchmarks.md")
_FILES: Final = Path(".bench")
_SECONDS_MAX: Final = 900
_MULTI, _SINGLE = "multi", "single"
_METHODS: Final = {_MULTI: "several nodes", _SINGLE: "one node"}
_ABOUT: Final = """\
`full` are nodes without room, of which none can go and none be smaller: every one is tried. `idle`
are nodes at about 40 %. Times are from the objects to the decision, the best of the runs made; each
method decides on the cluster of the file, none has a limit of time or of nodes. The checker then
looks whether every pod that moves has a legal place, and whether the price falls by what was
claimed."""
_NOTE: Final = """\
The same files, decided by Karpenter (Go) in runs recorded earlier, on another machine or at another
time: read times as orders of magnitude. Karpenter considers 100 nodes at most in one command."""


class Figure(Struct, frozen=True):
    """The medians of Karpenter's recorded runs of a method on one file."""

    seconds: float
    removed: int
    savings: float


class _Recorded(Struct, frozen=True):
    """The fields read from a recorded result line."""

    workload: str
    decisions: tuple[Mapping[str, object], ...]
    converge: bool = False


def measure(path: Path, *, converges: bool = False, rounds: int = ROUNDS) -> list[Consolidated]:
    """Run a file several times; every command is checked."""
    command = [*KARPY, "bench", str(path), "--runs", str(rounds)]
    if converges:
        command.append("--converge")
    # `karpy bench` exits with 1 if a command breaks a rule, and still prints its result.
    text = output(command, seconds_max=_SECONDS_MAX, codes=(0, 1))
    runs = [msgspec.json.decode(line, type=Consolidated) for line in text.splitlines()]
    tell(f"{path.stem:24} {min(each.wall_s for each in runs):8.3f} s")
    return runs


class Questions(Struct, frozen=True):
    """CPU seconds of questions about all nodes of an indexed snapshot."""

    workload: str
    nodes: int
    at_any_price: float
    """To find places for the pods of each node, one node after the other."""
    for_less: float
    """The same, with new nodes that cost less than the node in question."""
    next_pass: float
    """To run all methods on a snapshot that differs from the last one in one pod."""


def ask(path: Path, *, rounds: int = ROUNDS) -> Questions:
    """Time the questions about every node of a file; the best of some rounds counts."""
    snapshot = read_workload(parse_workload(path, read_bytes(path)), str(path))
    made = _pass(snapshot, None)
    prices, problem = made.evaluation.prices, Problem.of(snapshot)
    next_pass, at_any_price, for_less = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        snapshot = replace(snapshot, pods=tuple(snapshot.pods[1:]))
        began = time.process_time()
        made = _pass(snapshot, made)
        next_pass.append(time.process_time() - began)
        what_if, began = WhatIf(problem), time.process_time()
        for each in snapshot.nodes:
            what_if.ask({each.name})
        at_any_price.append(time.process_time() - began)
        what_if, began = WhatIf(problem), time.process_time()
        for each in snapshot.nodes:
            what_if.ask({each.name}, price_below=prices.of(each), new_nodes_max=1)
        for_less.append(time.process_time() - began)
    count = len(snapshot.nodes)
    tell(f"{path.stem:24} {min(next_pass):8.3f} s a pass")
    return Questions(path.stem, count, min(at_any_price), min(for_less), min(next_pass))


def _pass(snapshot: Snapshot, before: Pass | None) -> Pass:
    made = Pass(DisruptionQuestion(snapshot), before)
    for method in made.methods():
        made.propose(method)
    return made


def read_figures(path: Path) -> dict[tuple[str, str], Figure]:
    """Read recorded result lines: medians by workload and method."""
    lines = path.read_text().splitlines()
    found: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for each in (msgspec.json.decode(line, type=_Recorded) for line in lines):
        for decision in () if each.converge else each.decisions:
            if not decision["hit_timeout"]:
                key = each.workload, str(decision["method"])
                found.setdefault(key, []).append(decision)
    return {key: _figure(decisions) for key, decisions in found.items()}


def section_text(
    runs: Mapping[str, Sequence[Consolidated]],
    converged: Sequence[Consolidated],
    asked: Questions,
    beside: Mapping[str, Sequence[Consolidated]],
    figures: Mapping[tuple[str, str], Figure],
    command: str,
) -> str:
    """Return the section."""
    parts = [
        TITLE,
        f"{_ABOUT}\n{describe_machine()}.",
        f"```console\n$ {command}\n```",
        _own_table(runs),
        _convergence(converged),
        _questions(asked),
    ]
    if beside:
        parts += [_NOTE, _table_beside(beside, figures)]
    return "\n\n".join(parts)


def _own_table(runs: Mapping[str, Sequence[Consolidated]]) -> str:
    titles = ["workload", "nodes", "pods", "$/h", "several nodes", "nodes that go", "saves $/h"]
    titles += ["one node", "checker"]
    rows = []
    for name, some in runs.items():
        first, several = some[0], _decision(some[0], _MULTI)
        rows.append(
            [
                f"`{name}`",
                f"{first.nodes:,}",
                f"{first.pods:,}",
                f"{first.cost:,.2f}",
                f"{_seconds(some, _MULTI):.2f} s",
                f"{len(several.removed):,}",
                f"{several.savings:,.2f}",
                f"{_seconds(some, _SINGLE):.2f} s",
                _verdict(some),
            ]
        )
    return table(titles, rows)


def _convergence(runs: Sequence[Consolidated]) -> str:
    first, seconds = runs[0], min(each.wall_s for each in runs)
    commands = sum(each.decision != "no-op" for each in first.decisions)
    return (
        f"With `--converge`, `{first.workload}` comes to rest after {commands} commands and"
        f" {seconds:.2f} s of decisions:\nfrom {first.nodes} nodes for {first.cost:.2f} $/h to"
        f" {first.nodes_after} for {first.cost_after:.2f} $/h; checker: {_verdict(runs)}."
    )


def _questions(asked: Questions) -> str:
    return (
        f"Once `{asked.workload}` is read and made ready for the solver, {asked.nodes:,} questions,"
        f" each where the pods of one node\nwould go, take {asked.at_any_price:.2f} s of CPU time,"
        f" and {asked.for_less:.2f} s if a new node must cost less. All methods on the next"
        f" snapshot,\nwhich one pod has left, take {asked.next_pass:.2f} s."
    )


def _table_beside(
    runs: Mapping[str, Sequence[Consolidated]], figures: Mapping[tuple[str, str], Figure]
) -> str:
    titles = ["workload", "method", "Karpy", "Karpenter, median", "times faster", "nodes that go"]
    titles += ["Karpenter's", "saves $/h", "Karpenter's", "checker"]
    rows = [
        row
        for name, some in runs.items()
        for method in _METHODS
        for row in _rows_beside(name, some, method, figures.get((name, method)))
    ]
    return table(titles, rows)


def _rows_beside(
    name: str, runs: Sequence[Consolidated], method: str, figure: Figure | None
) -> Iterator[list[str]]:
    if figure is None:
        return
    seconds, own = _seconds(runs, method), _decision(runs[0], method)
    row = [f"`{name}`", _METHODS[method], f"{seconds:.2f} s", f"{figure.seconds:.1f} s"]
    row += [f"{figure.seconds / seconds:,.0f}", f"{len(own.removed):,}", f"{figure.removed:,}"]
    yield [*row, f"{own.savings:,.2f}", f"{figure.savings:,.2f}", _verdict(runs)]


def _decision(run: Consolidated, method: str) -> Decision:
    return next(each for each in run.decisions if each.method == method)


def _seconds(runs: Sequence[Consolidated], method: str) -> float:
    return min(each.setup_s + _decision(each, method).decision_s for each in runs)


def _verdict(runs: Sequence[Consolidated]) -> str:
    breaches = runs[0].breaches
    return "sound" if breaches == 0 else f"{breaches} breaches"


def _figure(decisions: Sequence[Mapping[str, object]]) -> Figure:
    def middle(name: str) -> float:
        return median(float(str(each.get(name, 0))) for each in decisions)

    # Karpy's times include the search for candidates; Karpenter's were recorded separately.
    seconds = middle("candidate_s") + middle("decision_s")
    removed = (each["removed"] for each in decisions)
    counts = [len(each) if isinstance(each, list) else 0 for each in removed]
    return Figure(seconds, round(median(counts)), middle("savings"))


def main() -> int:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.consolidating",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dir", type=Path, help="folder of files that figures are recorded for")
    parser.add_argument("--figures", type=Path, help="result lines of Karpenter")
    parser.add_argument("--page", type=Path, default=_PAGE, help=f"where to write: {_PAGE}")
    asked = parser.parse_args()
    _FILES.mkdir(exist_ok=True)
    runs = {name: measure(make_file(name, _FILES)) for name in NAMES}
    converged = measure(make_file(CONVERGED, _FILES), converges=True)
    questions = ask(_FILES / f"{_ASKED}.json")
    beside: dict[str, list[Consolidated]] = {}
    figures: dict[tuple[str, str], Figure] = {}
    if asked.dir is not None and asked.figures is not None:
        figures = read_figures(asked.figures)
        for name in sorted({workload for workload, _ in figures}):
            found = sorted(asked.dir.glob(f"{name}.json*"))
            if found:
                beside[name] = measure(found[0])
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    command = " ".join(["python -m benchmarks.consolidating", *words])
    text = section_text(runs, converged, questions, beside, figures, command)
    page = asked.page.read_text() if asked.page.exists() else ""
    asked.page.write_text(with_section(page, text))
    tell(f"wrote {asked.page}")
    everything = [*runs.values(), converged, *beside.values()]
    return int(any(run.breaches for some in everything for run in some))


if __name__ == "__main__":
    sys.exit(main())
