"""
Measure one decision by the rules of karpbench/v1.

The clock starts when the file is parsed into plain objects, one per pod, and stops when the
decision is complete, including the instance types of each launch. Runs share no caches.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import UNSET, Struct, UnsetType, structs

from karpy.bench.consolidation import Consolidated, ConsolidationRun
from karpy.bench.files import parse_workload, read_bytes
from karpy.bench.objects import Json
from karpy.bench.results import Result, Times, summarise
from karpy.bench.workloads import CONSOLIDATE
from karpy.codec.karpbench import read_workload
from karpy.core.check.plan import check_plan
from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.overlays import with_overlays
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

CHECKED_PODS_MAX: Final = 5_000
_STATUS: Final = Path("/proc/self/status")
_KIB_PER_MB: Final = 1000 * 1000 / 1024


class Measured(Struct, frozen=True):
    """A run, and the broken rules that the checker found, a sentence each."""

    result: Result | Consolidated
    breaches: tuple[str, ...] = ()


def measure(
    path: Path,
    *,
    runs: int = 1,
    has_detail: bool = False,
    is_checked: bool | None = None,
    converges: bool = False,
) -> Iterator[Measured]:
    """
    Run a workload file several times, each time on fresh objects.

    Plans of up to 5,000 pods are checked unless `is_checked` says otherwise; the check is not
    timed. For consolidation every command is checked; with `converges`, commands are carried out
    until no method has one.
    """
    data = read_bytes(path)
    for run in range(runs):
        workload = parse_workload(path, data)
        if workload.get("kind") == CONSOLIDATE:
            yield _consolidate(path, workload, run, converges=converges)
        else:
            yield _provision(path, workload, run, has_detail=has_detail, is_checked=is_checked)


def _consolidate(path: Path, workload: Json, run: int, *, converges: bool) -> Measured:
    with _without_collector():
        began = time.perf_counter()
        snapshot = with_overlays(read_workload(workload, str(path)))
        setup_s = time.perf_counter() - began
        made = ConsolidationRun(snapshot)
        (made.converge if converges else made.decide_once)()
    result = Consolidated(
        harness="karpy",
        workload=str(workload.get("name", "")),
        run=run,
        instance_types=len(snapshot.catalog.types),
        nodes=len(snapshot.nodes),
        pods=len(snapshot.pods),
        cost=made.cost(snapshot),
        converge=converges,
        wall_s=setup_s + made.seconds,
        setup_s=setup_s,
        nodes_after=len(made.snapshot.nodes),
        cost_after=made.cost(made.snapshot),
        decisions=tuple(made.decisions),
        peak_rss_mb=_peak_rss_mb(),
        breaches=len(made.problems),
    )
    return Measured(result, tuple(made.problems))


def _provision(
    path: Path, workload: Json, run: int, *, has_detail: bool, is_checked: bool | None
) -> Measured:
    snapshot, verdict, times = _decide_on_the_clock(path, workload)
    result = summarise(workload, snapshot, verdict, times, run=run, has_detail=has_detail)
    if is_checked is None:
        is_checked = result.pods <= CHECKED_PODS_MAX
    if not is_checked:
        return Measured(result)
    breaches = tuple(str(each) for each in check_plan(snapshot, verdict))
    return Measured(structs.replace(result, breaches=len(breaches)), breaches)


def _decide_on_the_clock(path: Path, workload: Json) -> tuple[Snapshot, Verdict, Times]:
    with _without_collector():
        began = time.perf_counter()
        snapshot = read_workload(workload, str(path))
        read = time.perf_counter()
        verdict = decide(with_overlays(snapshot))
        decided = time.perf_counter()
    times = Times(setup_s=read - began, solve_s=decided - read, peak_rss_mb=_peak_rss_mb())
    return snapshot, verdict, times


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switch the garbage collector off during a run."""
    gc.collect()
    # Objects from before the run are no garbage of the run, and a run makes no cycles.
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def _peak_rss_mb() -> float | UnsetType:
    """Return the peak memory of this process in millions of bytes, if Linux reports it."""
    # getrusage exists on more systems, but there a child starts with the peak of its parent.
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / _KIB_PER_MB, 1)
    return UNSET
