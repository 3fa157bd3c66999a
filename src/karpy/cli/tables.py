"""Tables, bars and formats of numbers."""

import textwrap
from collections.abc import Sequence
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.cli.terminal import Line, Span, Style, width_of
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.resources import CPU, MEMORY

HOURS_PER_MONTH: Final = 730
GAP: Final = 2
_WELL_FILLED: Final = 0.7
_HALF_FILLED: Final = 0.4
_GIB: Final = 1024**3


class Align(Enum):
    """The alignment of the cells of a column."""

    LEFT = "left"
    RIGHT = "right"


class Column(Struct, frozen=True):
    """The title of a column and the alignment of its cells."""

    title: str
    align: Align = Align.LEFT


def table(columns: Sequence[Column], rows: Sequence[Sequence[Line]], indent: int = 0) -> list[Line]:
    """Write rows below their titles, each column as wide as its widest cell."""
    heads = [(Span(column.title, Style.QUIET),) for column in columns]
    widths = [
        max(width_of(cell) for cell in (head, *(row[place] for row in rows)))
        for place, head in enumerate(heads)
    ]
    return [_row(columns, widths, cells, indent) for cells in (heads, *rows)]


def table_width(columns: Sequence[Column], rows: Sequence[Sequence[Line]]) -> int:
    """Return the width of a table, so that bars can use the rest of the line."""
    return max(width_of(each) for each in table(columns, rows))


def heading(text: str) -> Line:
    """Write the title of a section."""
    return (Span(text, Style.STRONG),)


def bar(fraction: float, cells: int) -> Line:
    """Draw a fraction as a bar with its percentage."""
    filled = min(cells, max(0, round(fraction * cells)))
    style = Style.BAD
    if fraction >= _HALF_FILLED:
        style = Style.CARE
    if fraction >= _WELL_FILLED:
        style = Style.GOOD
    return (
        Span("█" * filled, style),
        Span("░" * (cells - filled), Style.QUIET),
        Span(f"{' ' if cells else ''}{round(fraction * 100):3d}%"),
    )


def dollars(micro_dollars: int, digits: int = 4) -> str:
    """Write a price: `$0.0823`."""
    return f"${micro_dollars / MICROS_PER_DOLLAR:,.{digits}f}"


def per_month(micro_dollars_per_hour: int) -> str:
    """Write a price per hour as price per month of 730 hours."""
    return dollars(micro_dollars_per_hour * HOURS_PER_MONTH, 2)


def amount_of(resource: str, amount: int) -> str:
    """Write a rounded amount with its unit: `12.5 cores`, `48.0 GiB`."""
    if resource == CPU:
        return f"{amount / 1000:,.1f} cores"
    if resource == MEMORY:
        return f"{amount / _GIB:,.1f} GiB"
    return f"{amount:,} {resource}"


def count_of(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun: `1 pod`, `1,200 pods`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def few_of(names: Sequence[str], shown: int) -> str:
    """Write the first names of a list, and the number of the others."""
    if len(names) <= shown:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown:,} more"


def cut(text: str, width: int) -> str:
    """Shorten a text to a width, with an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def labelled(
    label: str, text: str, width: int, *, label_width: int, lines_max: int = 2
) -> list[Line]:
    """Write a label with its text beside it, wrapped to at most `lines_max` lines."""
    if lines_max == 1:
        return [(Span(label.ljust(label_width), Style.QUIET), Span(cut(text, width - label_width)))]
    wrapped = textwrap.wrap(
        text,
        width - label_width,
        max_lines=lines_max,
        placeholder=" …",
        break_on_hyphens=False,
    ) or [""]
    head = Span(label.ljust(label_width), Style.QUIET)
    rest = Span(" " * label_width)
    return [(head if place == 0 else rest, Span(part)) for place, part in enumerate(wrapped)]


def _row(
    columns: Sequence[Column], widths: Sequence[int], cells: Sequence[Line], indent: int
) -> Line:
    spans: list[Span] = [Span(" " * indent)] if indent else []
    for place, (column, width, cell) in enumerate(zip(columns, widths, cells, strict=True)):
        fill = Span(" " * (width - width_of(cell)))
        if place:
            spans.append(Span(" " * GAP))
        spans.extend((fill, *cell) if column.align is Align.RIGHT else (*cell, fill))
    return tuple(span for span in spans if span.text)
