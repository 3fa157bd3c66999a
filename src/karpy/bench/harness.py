"""
One decision against the clock, by the rules of karpbench/v1.

The clock starts with the file parsed into plain objects, one for each pod, and stops when every
decision is made, the instance types to launch with included. Nothing is kept from run to run.
"""

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import UNSET, Struct, UnsetType, structs

from karpy.bench.files import parse_workload, read_bytes
from karpy.bench.results import Result, Times, summarise
from karpy.bench.shapes import Json
from karpy.codec.karpbench import read_workload
from karpy.core.check.breaches import Breach
from karpy.core.check.plan import check_plan
from karpy.core.scheduling.decide import decide
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

CHECKED_PODS_MAX: Final = 5_000
_STATUS: Final = Path("/proc/self/status")
_KIB_PER_MB: Final = 1000 * 1000 / 1024


class Measured(Struct, frozen=True):
    """A run and what the checker found in it."""

    result: Result
    breaches: tuple[Breach, ...] = ()


def measure(
    path: Path, *, runs: int = 1, has_detail: bool = False, is_checked: bool | None = None
) -> Iterator[Measured]:
    """
    Run a workload file so many times, each on fresh objects.

    Plans of up to 5,000 pods are checked unless told otherwise; checking is off the clock.
    """
    data = read_bytes(path)
    for run in range(runs):
        yield _measure_once(path, data, run, has_detail=has_detail, is_checked=is_checked)


def _measure_once(
    path: Path, data: bytes, run: int, *, has_detail: bool, is_checked: bool | None
) -> Measured:
    workload = parse_workload(path, data)
    snapshot, verdict, times = _decide_on_the_clock(path, workload)
    result = summarise(workload, snapshot, verdict, times, run=run, has_detail=has_detail)
    if is_checked is None:
        is_checked = result.pods <= CHECKED_PODS_MAX
    if not is_checked:
        return Measured(result)
    breaches = check_plan(snapshot, verdict)
    return Measured(structs.replace(result, breaches=len(breaches)), breaches)


def _decide_on_the_clock(path: Path, workload: Json) -> tuple[Snapshot, Verdict, Times]:
    gc.collect()
    # What was there before the run is no garbage of the run, and a run makes no cycles of its own.
    gc.freeze()
    gc.disable()
    try:
        began = time.perf_counter()
        snapshot = read_workload(workload, str(path))
        read = time.perf_counter()
        verdict = decide(snapshot)
        decided = time.perf_counter()
    finally:
        gc.enable()
        gc.unfreeze()
    times = Times(setup_s=read - began, solve_s=decided - read, peak_rss_mb=_peak_rss_mb())
    return snapshot, verdict, times


def _peak_rss_mb() -> float | UnsetType:
    """Read the most memory this process ever held, in millions of bytes, where Linux tells it."""
    # getrusage would do on more systems, but a child starts there with its parent's mark.
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / _KIB_PER_MB, 1)
    return UNSET
