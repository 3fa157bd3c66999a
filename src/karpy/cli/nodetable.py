"""The table of new nodes: instance type, price and utilization of each."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from karpy.cli.launchtext import by_pool, zone_text
from karpy.cli.tables import (
    Align,
    Column,
    amount_of,
    bar,
    count_of,
    cut,
    dollars,
    heading,
    per_month,
    table,
    table_width,
)
from karpy.cli.terminal import Line, Span, Style, line
from karpy.model.instances import InstanceType
from karpy.model.resources import CPU, MEMORY
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch

_ROWS_MAX: Final = 40
_BAR_MIN: Final = 4
_BAR_MAX: Final = 12
_NAME_MAX: Final = 28

_COLUMNS: Final = (
    Column("cheapest type"),
    Column("zone"),
    Column("capacity"),
    Column("$/h", Align.RIGHT),
    Column("types", Align.RIGHT),
    Column("pods", Align.RIGHT),
    Column("cpu"),
    Column("memory"),
)
_EACH: Final = (Column("node"), *_COLUMNS)
_GROUPED: Final = (Column("nodes", Align.RIGHT), Column("pool"), *_COLUMNS)

Types = Mapping[tuple[str, str], InstanceType]
"""Instance types by NodePool and name."""


class Fill(Struct, frozen=True):
    """How much launches use of one resource of their cheapest types."""

    used: int
    there: int

    @property
    def fraction(self) -> float:
        return self.used / self.there if self.there else 0.0


def node_lines(snapshot: Snapshot, launches: Sequence[Launch], width: int) -> list[Line]:
    """
    Write a row for each new node; if there are many, equal nodes share a row.

    Bars use the width that the columns leave, and are omitted if it is too small.
    """
    if not launches:
        return []
    types = _types_of(snapshot, launches)
    is_grouped = len(launches) > _ROWS_MAX
    groups = _alike(launches) if is_grouped else [[launch] for launch in by_pool(launches)]
    columns = _GROUPED if is_grouped else _EACH
    narrow = _rows(groups, types, 0, is_grouped=is_grouped)
    spare = (width - table_width(columns, narrow)) // 2
    cells = min(_BAR_MAX, spare) if spare >= _BAR_MIN else 0
    rows = _rows(groups, types, cells, is_grouped=is_grouped)
    return [heading("New nodes"), *table(columns, rows)]


def total_lines(snapshot: Snapshot, launches: Sequence[Launch]) -> list[Line]:
    """Write the price and the utilization of all new nodes."""
    if not launches:
        return []
    types = _types_of(snapshot, launches)
    price = sum(launch.price for launch in launches)
    fills = [
        f"{round(each.fraction * 100)}% of {amount_of(resource, each.there)}"
        for resource in (CPU, MEMORY)
        if (each := packing(launches, types, resource)).there
    ]
    cost = Span(f"{dollars(price)} an hour", Style.GOOD)
    return [
        line(Span("Cost  ", Style.STRONG), cost, f", {per_month(price)} a month (730 h)"),
        line(Span("Used  ", Style.STRONG), ", ".join(fills) or "unknown"),
    ]


def catalog_lines(snapshot: Snapshot, catalog: str) -> list[Line]:
    """Write the name of the catalog."""
    if not catalog:
        return []
    types = count_of(snapshot.catalog.type_count, "instance type")
    return [line(Span("From  ", Style.STRONG), f"catalog {catalog}, {types}")]


def packing(launches: Sequence[Launch], types: Types, resource: str) -> Fill:
    """Sum the use of a resource by launches, and its amount on their cheapest types."""
    used = there = 0
    for launch in launches:
        kind = types.get((launch.pool, launch.options[0].instance_type))
        if kind is not None:
            used += launch.resources.get(resource, 0)
            there += kind.allocatable.get(resource, 0)
    return Fill(used, there)


def _types_of(snapshot: Snapshot, launches: Sequence[Launch]) -> Types:
    pools = sorted({launch.pool for launch in launches})
    return {(pool, kind.name): kind for pool in pools for kind in snapshot.catalog.types_for(pool)}


def _alike(launches: Sequence[Launch]) -> list[list[Launch]]:
    groups: dict[tuple[str, ...], list[Launch]] = {}
    for launch in launches:
        first = launch.options[0]
        key = (launch.pool, first.instance_type, zone_text(launch), first.capacity_type)
        groups.setdefault(key, []).append(launch)
    return sorted(groups.values(), key=lambda same: -sum(launch.price for launch in same))


def _rows(
    groups: Sequence[Sequence[Launch]], types: Types, cells: int, *, is_grouped: bool
) -> list[list[Line]]:
    rows = []
    for same in groups:
        name = same[0].pool if is_grouped else same[0].name
        count = [line(f"{len(same):,}")] if is_grouped else []
        rows.append(
            [*count, line(Span(cut(name, _NAME_MAX), Style.NAME)), *_cells(same, types, cells)]
        )
    return rows


def _cells(same: Sequence[Launch], types: Types, cells: int) -> list[Line]:
    launch = same[0]
    first = launch.options[0]
    options = sorted({len(each.options) for each in same})
    fills = [packing(same, types, resource) for resource in (CPU, MEMORY)]
    return [
        line(cut(first.instance_type, _NAME_MAX)),
        line(zone_text(launch)),
        line(first.capacity_type),
        line(f"{sum(each.price for each in same) / 1_000_000:,.4f}"),
        line(str(options[0]) if len(options) == 1 else f"{options[0]}-{options[-1]}"),
        line(f"{sum(len(each.pods) for each in same):,}"),
        *(bar(fill.fraction, cells) if fill.there else line("?") for fill in fills),
    ]
