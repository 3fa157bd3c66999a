"""Run Karpy and other programs, each time in a process of its own."""

import subprocess
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

KARPY = (sys.executable, "-m", "karpy")


class Outcome(Struct, frozen=True):
    """The fields read from a karpbench/v1 result line."""

    workload: str
    pods: int
    scheduled: int
    failed: int
    nodes: int
    total_price: float
    wall_s: float
    pods_per_s: float
    instance_types: int = 0
    scheduled_on_existing: int = 0
    peak_rss_mb: float | None = None
    breaches: int | None = None
    timed_out: bool = False


class RunFailed(Exception):
    """A process failed; the message has the end of its output."""


def make_file(name: str, folder: Path) -> Path:
    """Generate a workload with `karpy workload`."""
    output([*KARPY, "workload", name, "--out", str(folder)], seconds_max=600)
    return folder / f"{name}.json"


def run_karpy(
    path: Path, *, is_checked: bool = False, detail_to: Path | None = None, seconds_max: int = 900
) -> Outcome:
    """Run one decision; optionally check the plan, or write the detailed result to a file."""
    command = [*KARPY, "bench", str(path), "--check" if is_checked else "--no-check"]
    if detail_to is not None:
        command.append("--detail")
    # `karpy bench` exits with 1 if the plan breaks a rule, and still prints its result.
    line = output(command, seconds_max=seconds_max, codes=(0, 1))
    if detail_to is not None:
        detail_to.write_text(line)
    return _decoded(line, path)


def run_prototype(script: Path, path: Path, *, seconds_max: int = 900) -> Outcome:
    """Run one decision of another program that prints a result line."""
    command = [sys.executable, str(script), str(path), "--runs", "1"]
    return _decoded(output(command, seconds_max=seconds_max), path)


def run_checker(script: Path, workload: Path, result: Path) -> str:
    """Run an independent checker; return the end of its output if it found a fault, else empty."""
    command = [sys.executable, str(script), str(workload), str(result)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A checker that found nothing to check also exits with 0, but prints nothing.
    if done.returncode == 0 and done.stdout.strip():
        return ""
    return (done.stdout + done.stderr)[-500:].strip() or "it said nothing"


def _decoded(text: str, path: Path) -> Outcome:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        msg = f"{path}: no result line"
        raise RunFailed(msg)
    return msgspec.json.decode(lines[-1], type=Outcome)


def output(command: list[str], *, seconds_max: int, codes: tuple[int, ...] = (0,)) -> str:
    """Return what a command prints; raise RunFailed if it ends with another code."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds_max)
    if done.returncode not in codes or (done.returncode and not done.stdout):
        msg = f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stderr[-800:]}"
        raise RunFailed(msg)
    return done.stdout
