"""`karpy bench`: decide on workload files against the clock."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from karpy.bench.harness import Measured, measure
from karpy.cli.options import DONE, FAILED, Injected
from karpy.cli.tables import count_of
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.errors import ConfigError

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
    detail: Annotated[bool, Parameter(help="Add the pods of each node.", negative=())] = False,
    check: Annotated[
        bool | None, Parameter(help="Check every plan; by default those of up to 5,000 pods.")
    ] = None,
    converge: Annotated[
        bool,
        Parameter(
            help="Carry out one consolidation command after another until none is left.",
            negative=(),
        ),
    ] = False,
    terminal: Injected,
) -> int:
    """
    Decide on workload FILES against the clock; print one JSON line for each run.

    The clock starts with the file parsed into plain objects and stops when every decision is made.
    Time, number of nodes and price belong together: `wall_s`, `nodes`, `total_price`. A file of
    kind `consolidate` gets one decision by each method, `cost` and `cost_after`. Exits with 1 if a
    plan or a command breaks a rule or a file cannot be read; the other files are measured all the
    same. Make workloads with `karpy workload`.
    """
    sound = []
    for path in files:
        measured = measure(path, runs=runs, has_detail=detail, is_checked=check, converges=converge)
        sound.append(_bench(path, measured, terminal))
    return DONE if all(sound) else FAILED


def _bench(path: Path, runs: Iterator[Measured], terminal: Terminal) -> bool:
    """Measure one file; say whether it is readable and its plans break no rule."""
    is_sound = True
    try:
        for measured in runs:
            terminal.answer_text(msgspec.json.encode(measured.result).decode() + "\n")
            if measured.breaches:
                is_sound = False
                terminal.report(*breach_lines(path, measured.breaches))
    except ConfigError as error:
        terminal.report(
            line(Span("error: ", Style.BAD), f"{error.message} ({error.code})"),
            line(Span("  hint: ", Style.QUIET), error.hint),
        )
        return False
    return is_sound


def breach_lines(path: Path, breaches: Sequence[str]) -> list[Line]:
    """Write the first rules that a plan breaks, and the number of the others."""
    head = Span(f"{path}: the plan breaks {count_of(len(breaches), 'rule')}", Style.BAD)
    shown = [line("  ", breach) for breach in breaches[:_BREACHES_SHOWN]]
    hidden = len(breaches) - len(shown)
    return [line(head), *shown, *([line(f"  and {hidden:,} more")] if hidden else [])]
