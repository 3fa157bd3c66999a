"""`karpy bench`: decide on workload files against the clock."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from karpy.bench.harness import measure
from karpy.cli.options import DONE, FAILED, Injected
from karpy.cli.tables import count_of
from karpy.cli.terminal import Line, Span, Style, line
from karpy.core.check.breaches import Breach

_BREACHES_SHOWN: Final = 10


def bench(
    files: Annotated[
        tuple[Path, ...], Parameter(help="karpbench/v1 workloads, plain or gzipped.", negative=())
    ],
    /,
    *,
    runs: Annotated[
        int, Parameter(help="How often, each on fresh objects.", validator=Number(gte=1))
    ] = 1,
    detail: Annotated[
        bool, Parameter(help="Add node by node who goes where.", negative=())
    ] = False,
    check: Annotated[
        bool | None, Parameter(help="Check every plan; by default those of up to 5,000 pods.")
    ] = None,
    terminal: Injected,
) -> int:
    """
    Decide on workload FILES against the clock; print one JSON line for each run.

    The clock starts with the file parsed into plain objects and stops when every decision is made.
    Time, number of nodes and price belong together: `wall_s`, `nodes`, `total_price`. Exits with 1
    if a plan breaks a rule. Make workloads with `karpy workload`.
    """
    is_sound = True
    for path in files:
        for measured in measure(path, runs=runs, has_detail=detail, is_checked=check):
            terminal.out.stream.write(msgspec.json.encode(measured.result).decode() + "\n")
            terminal.out.stream.flush()
            if measured.breaches:
                is_sound = False
                terminal.tell(*breach_lines(path, measured.breaches))
    return DONE if is_sound else FAILED


def breach_lines(path: Path, breaches: Sequence[Breach]) -> list[Line]:
    """Write the first rules that a plan breaks, and how many more."""
    head = Span(f"{path}: the plan breaks {count_of(len(breaches), 'rule')}", Style.BAD)
    shown = [line("  ", str(breach)) for breach in breaches[:_BREACHES_SHOWN]]
    hidden = len(breaches) - len(shown)
    return [line(head), *shown, *([line(f"  and {hidden:,} more")] if hidden else [])]
