"""
Compare Karpy with Karpenter on a real control plane, and write the section of docs/benchmarks.md.

    python -m benchmarks.peer                        the usual scenarios: an hour or so
    python -m benchmarks.peer basic-200              one; prints its section
    python -m benchmarks.peer --rounds 3             by turns; medians count
    python -m benchmarks.peer --only Karpenter       measure one of them, write no page

Exits with 3 if Karpy needs more than its share.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.measuring import tell
from benchmarks.peer.measuring import (
    KARPENTER,
    KARPY,
    OperatorEnded,
    Run,
    command_of,
    measure,
    read_runs,
)
from benchmarks.peer.scenarios import SCENARIOS, USUAL
from benchmarks.peer.section import pairs, section_text
from benchmarks.sections import with_section
from karpy.adapters.controlplane.building import ensure_programs
from karpy.adapters.controlplane.bundles import PEER
from karpy.errors import KarpyError

PAGE: Final = Path("docs/benchmarks.md")
RUNS: Final = Path(".bench/peer.jsonl")
_MISSED: Final = 3


def main(words: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for."""
    asked = _parse(words)
    try:
        runs = read_runs(asked.runs) if asked.runs else _measure(asked)
    except (KarpyError, OperatorEnded) as error:
        tell(f"error: {error}")
        return 1
    found = pairs(runs)
    if not found:
        return 0
    section = section_text(found)
    print(section)
    if asked.ours:
        tell(f"this is not Karpy: `{asked.ours}` ran in its place")
    elif asked.page:
        asked.page.write_text(with_section(asked.page.read_text(), section))
        tell(f"wrote {asked.page}")
    missed = [f"{pair.ours.scenario}: {', '.join(pair.missed)}" for pair in found if pair.missed]
    for each in missed:
        tell(f"missed: {each}")
    return _MISSED if missed else 0


def _measure(asked: argparse.Namespace) -> list[Run]:
    programs = ensure_programs(os.environ, tell)
    ensure_programs(os.environ, tell, PEER)
    operators = [asked.only] if asked.only else [KARPENTER, KARPY]
    runs: list[Run] = []
    for name in asked.names:
        for operator in operators * asked.rounds:
            tell(f"{name} by {operator} ...")
            run = measure(
                SCENARIOS[name],
                operator,
                command_of(operator, os.environ, asked.ours),
                programs,
                seconds_max=asked.limit,
                home=_home(asked.keep, name, operator),
            )
            tell(f"  {msgspec.json.encode(run).decode()}")
            runs.append(run)
            if not asked.ours:
                _write_down(run)
    return runs


def _home(folder: Path | None, scenario: str, operator: str) -> Path | None:
    if folder is None:
        return None
    name, number = f"{scenario}-{operator.lower()}", len(list(folder.glob("*"))) + 1
    return folder / f"{number}-{name}"


def _write_down(run: Run) -> None:
    RUNS.parent.mkdir(exist_ok=True)
    with RUNS.open("ab") as file:
        file.write(msgspec.json.encode(run) + b"\n")


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--rounds", type=int, default=1, help="runs of each")
    parser.add_argument(
        "--limit",
        type=float,
        default=600,
        help="seconds a scale-out may take; twice that for a scale-in",
    )
    parser.add_argument("--only", choices=[KARPENTER, KARPY], help="measure one of them")
    parser.add_argument("--ours", default="", help="a command to run in the place of Karpy")
    parser.add_argument("--keep", type=Path, help="keep the logs of all programs in this folder")
    parser.add_argument("--runs", type=Path, help="do not measure, take runs written down earlier")
    parser.add_argument("--page", type=Path, help=f"where to write; {PAGE} if all are measured")
    asked = parser.parse_args(words)
    unknown = [name for name in asked.names if name not in SCENARIOS]
    if unknown:
        parser.error(f"no such scenario: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    # Only the default scenarios go to the page.
    if not (asked.names or asked.only or asked.ours or asked.page):
        asked.page = PAGE
    asked.names = asked.names or USUAL
    return asked


if __name__ == "__main__":
    sys.exit(main())
