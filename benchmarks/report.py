"""The benchmark page as Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks.figures import Figure
from benchmarks.machine import describe_machine, reference_seconds
from benchmarks.measuring import Measurement
from benchmarks.worlds import Line
from karpy import __version__

RULES: Final = Path(__file__).with_name("rules.md")
GROWTH_STEPS: Final = ((10_000, 50_000), (100, 1_000))
_WORLDS: Final = """\
The embedded store, the mirror of a cluster, lists from a real API server beside kubernetes_asyncio,
and a day of a cluster on virtual time; CPU time of one core, by `python -m benchmarks.worlds`."""
_BEST_OF_NOTE: Final = "Times are the best of the runs made, each in a fresh process."


class Page(Struct, frozen=True):
    """The content of the benchmark page."""

    command: str
    own: Sequence[Measurement] = ()
    opponent: str = ""
    """The name of the solver compared with, empty if none."""
    compared: Sequence[Measurement] = ()
    """Measurements of files with recorded figures of Karpenter."""
    figures: Mapping[str, Figure] = {}
    worlds: Sequence[Line] = ()
    """The lines of `benchmarks.worlds`."""


def page_text(page: Page) -> str:
    """Return the whole page."""
    parts = [
        "# Benchmarks",
        "<!-- Written by `make bench`; edit benchmarks/rules.md or benchmarks/report.py. -->",
        _introduction(page),
    ]
    if page.own:
        parts += ["## Generated workloads", _own_table(page), _growth_text(page.own)]
    if page.compared:
        parts += ["## Beside Karpenter", _karpenter_text(page)]
    if page.worlds:
        parts += ["## The worlds", _WORLDS, "\n".join(map(str, page.worlds))]
    parts.append(RULES.read_text().strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns, except the first, are numbers."""
    ruler = ["---", *["---:"] * (len(titles) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (titles, ruler, *rows))


def _introduction(page: Page) -> str:
    return "\n".join(
        [
            f"Karpy {__version__} on {describe_machine()}. A fixed piece of pure Python",
            f"(`sum(i * i for i in range(5_000_000))`) takes {reference_seconds():.2f} s here.",
            _BEST_OF_NOTE,
            "",
            "```console",
            f"$ {page.command}",
            "```",
        ]
    )


def _own_table(page: Page) -> str:
    titles = ["workload", "pods", "types", "time", "pods/s", "new nodes", "$/h", "no place"]
    titles += ["peak memory", "checker"]
    if page.opponent:
        titles += [f"{page.opponent}: time", "$/h", "ratio"]
    return table(titles, [_own_row(each, has_opponent=bool(page.opponent)) for each in page.own])


def _own_row(each: Measurement, *, has_opponent: bool) -> list[str]:
    best = each.best
    row = [
        f"`{each.name}`",
        f"{best.pods:,}",
        f"{best.instance_types:,}",
        f"{best.wall_s:.3f} s",
        f"{best.pods_per_s:,.0f}",
        f"{best.nodes:,}",
        f"{best.total_price:,.2f}",
        f"{best.failed:,}",
        f"{each.peak_rss_mb:,.0f} MB" if each.peak_rss_mb else "",
        each.verdict,
    ]
    if has_opponent:
        other = each.their_best
        row += [f"{other.wall_s:.3f} s", f"{other.total_price:,.2f}"] if other else ["", ""]
        row.append("" if each.ratio is None else f"{each.ratio:.2f}")
    return row


def growth(measurements: Sequence[Measurement]) -> list[tuple[str, int, int, float]]:
    """Return per family: two sizes, and the ratio of their times."""
    times = {each.name: each.best.wall_s for each in measurements}
    families = dict.fromkeys(each.name.rpartition("-")[0] for each in measurements)
    return [
        (family, small, large, times[f"{family}-{large}"] / times[f"{family}-{small}"])
        for family in families
        for small, large in GROWTH_STEPS
        if f"{family}-{small}" in times and f"{family}-{large}" in times
    ]


def _growth_text(measurements: Sequence[Measurement]) -> str:
    sentences = [
        f"From `{family}-{small}` to `{family}-{large}`, {large // small} times the size, the time"
        f" grows {times:.1f}-fold."
        for family, small, large, times in growth(measurements)
    ]
    return "\n".join(sentences)


def _karpenter_text(page: Page) -> str:
    titles = ["workload", "pods", "Karpy", "Karpenter, best", "times faster", "Karpy $/h"]
    titles += ["Karpenter $/h, median", "difference", "runs"]
    rows = []
    for each in page.compared:
        figure, best = page.figures.get(each.name), each.best
        row = [f"`{each.name}`", f"{best.pods:,}", f"{best.wall_s:.3f} s"]
        if figure is None:
            row += ["", "", f"{best.total_price:,.2f}", "", "", ""]
        else:
            change = best.total_price / figure.median_price - 1
            row += [f"{figure.best_s:,.1f} s", f"{figure.best_s / best.wall_s:,.0f}"]
            row += [f"{best.total_price:,.2f}", f"{figure.median_price:,.2f}", f"{change:+.1%}"]
            row.append(str(figure.runs))
        rows.append(row)
    note = (
        "The same files, decided by Karpenter (Go) in runs recorded earlier, on another machine or"
        " at another time: read times as orders of magnitude. Karpenter's answer differs from run"
        " to run, hence the median price; Karpy's does not."
    )
    return f"{note}\n\n{table(titles, rows)}"
