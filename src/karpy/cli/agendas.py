"""How many nodes of a NodePool may be disrupted when: a grid of hours as text, spans as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final

from msgspec import Struct

from karpy.cli.plans import BLANK, join_sections
from karpy.cli.tables import Align, Column, count_of, cut, heading, table
from karpy.cli.terminal import Line, Span, Style, line
from karpy.cli.timezones import Zone
from karpy.core.disruption.budgets import UNLIMITED, Window, find_windows, short_duration
from karpy.core.disruption.budgets import BudgetSpan as Stretch
from karpy.model.pools import Budget, DisruptionPolicy, DisruptionReason
from karpy.model.times import write_moment

_LABEL_WIDTH: Final = 14
_HOURS: Final = 24
_NARROW: Final = 99
"""Most nodes with which a column stands for one hour; with more nodes it stands for two."""
_NONE: Final = "."
_DAY: Final = timedelta(days=1)
_BUDGETS_SHOWN: Final = 12

Reasons = tuple[DisruptionReason, ...]


class Agenda(Struct, frozen=True):
    """How many nodes of a NodePool may be disrupted over some time."""

    pool: str
    policy: DisruptionPolicy
    nodes: int
    spans: Mapping[DisruptionReason, tuple[Stretch, ...]]
    taken: Mapping[DisruptionReason, int]
    """Nodes that count against the budgets now: deleting or not ready; empty if not counted."""
    zone: Zone

    @property
    def since(self) -> datetime:
        return self.spans[DisruptionReason.EMPTY][0].begins

    @property
    def until(self) -> datetime:
        return self.spans[DisruptionReason.EMPTY][-1].ends

    @property
    def allows_any(self) -> bool:
        """Whether a node may be disrupted at some time for some reason."""
        return any(each.nodes for spans in self.spans.values() for each in spans)

    def groups(self) -> list[Reasons]:
        """Group the reasons that have the same numbers at all times."""
        alike: dict[tuple[Stretch, ...], list[DisruptionReason]] = {}
        for reason, spans in self.spans.items():
            alike.setdefault(spans, []).append(reason)
        return [tuple(each) for each in alike.values()]

    def least(self, begins: datetime, ends: datetime, reason: DisruptionReason) -> int | None:
        """Return the lowest number within a period; None outside of the agenda."""
        found = [
            min(each.nodes, self.nodes)
            for each in self.spans[reason]
            if each.begins < ends and begins < each.ends
        ]
        return min(found, default=None)


def agenda_lines(agenda: Agenda, width: int) -> Iterator[Line]:
    """Write a grid of days and hours for each group of reasons, then the budgets behind it."""
    groups = agenda.groups()
    sections = [[_title(agenda)]]
    sections += [_group_lines(agenda, each, is_only=len(groups) == 1) for each in groups]
    sections.append(_budget_lines(agenda, width))
    yield from join_sections(sections)


def _title(agenda: Agenda) -> Line:
    since, until = (_local(each, agenda.zone) for each in (agenda.since, agenda.until))
    nodes = f"{agenda.nodes:,} nodes" if agenda.nodes > 1 else "1 node"
    about = f": how many of its {nodes} may go at once, {since} to {until} ({agenda.zone.name})"
    return line(Span(agenda.pool, Style.STRONG), about)


def _group_lines(agenda: Agenda, reasons: Reasons, *, is_only: bool) -> list[Line]:
    title = "For every reason" if is_only else ", ".join(each.value for each in reasons)
    taken = agenda.taken.get(reasons[0])
    if taken:
        title += f"; {taken} of them taken now by nodes on their way out or not ready"
    values = {min(each.nodes, agenda.nodes) for each in agenda.spans[reasons[0]]}
    if len(values) == 1:
        return [heading(title), line(f"at any time: {_allowed(values.pop(), agenda.nodes)}")]
    return [heading(title), *_grid(agenda, reasons[0])]


def _allowed(value: int, nodes: int) -> str:
    return "all" if value == nodes else "none" if not value else str(value)


def _grid(agenda: Agenda, reason: DisruptionReason) -> Iterator[Line]:
    """Write a row for each day; repeat the hours above it when the offset to UTC changes."""
    zone, step = agenda.zone.info, 1 if agenda.nodes <= _NARROW else 2
    day, last = (each.astimezone(zone).date() for each in (agenda.since, agenda.until))
    known: list[Line] = []
    while day <= last:
        cells = [_cell(agenda, reason, day, hour, step) for hour in range(0, _HOURS, step)]
        if any(each is not None for each in cells):
            hours = list(_hour_lines(agenda.zone, day, step))
            if hours != known:
                yield from hours
                known = hours
            yield _row(f"{day:%a %m-%d}", cells, step)
        day += _DAY


def _cell(agenda: Agenda, reason: DisruptionReason, day: date, hour: int, step: int) -> int | None:
    """Return the lowest number of the hours of a cell."""
    begins, ends = (_instant(day, each, agenda.zone.info) for each in (hour, hour + step))
    return agenda.least(begins, ends, reason) if begins < ends else None


def _instant(day: date, hour: int, zone: tzinfo) -> datetime:
    """Return the moment of an hour in a time zone; 24 is the first hour of the next day."""
    days, hour = divmod(hour, _HOURS)
    day += days * _DAY
    return datetime(day.year, day.month, day.day, hour, tzinfo=zone).astimezone(UTC)


def _hour_lines(zone: Zone, day: date, step: int) -> Iterator[Line]:
    hours = range(0, _HOURS, step)
    width = 3 * step
    name = zone.name.rpartition("/")[2].replace("_", " ")
    local = "".join(f"{hour:02d}".rjust(width) for hour in hours)
    yield line(Span(f"{cut(name, _LABEL_WIDTH):{_LABEL_WIDTH}}{local}", Style.QUIET))
    there = [_instant(day, hour, zone.info) for hour in hours]
    if zone.info is not UTC:
        minutes = there[0].minute
        label = "UTC" if not minutes else f"UTC, h:{minutes:02d}"
        shown = "".join(f"{each.hour:02d}".rjust(width) for each in there)
        yield line(Span(f"{label:{_LABEL_WIDTH}}{shown}", Style.QUIET))


def _row(label: str, cells: Sequence[int | None], step: int) -> Line:
    spans = [Span(f"{label:{_LABEL_WIDTH}}")]
    for each in cells:
        text = "" if each is None else str(each) if each else _NONE
        spans.append(Span(text.rjust(3 * step), Style.GOOD if each else Style.CARE))
    return tuple(spans)


def _budget_lines(agenda: Agenda, width: int) -> list[Line]:
    """Write the budgets, and when each holds next."""
    budgets = agenda.policy.budgets
    if not budgets:
        return [line("It has no budgets, so that all nodes may go at once.")]
    columns = (
        Column("budget", Align.RIGHT),
        Column("nodes", Align.RIGHT),
        Column("reasons"),
        Column("schedule in UTC"),
        Column("holds"),
    )
    rows = [
        [
            line(str(place)),
            line(each.nodes),
            line("all" if each.reasons is None else ", ".join(each.reasons) or "none"),
            line(_schedule_text(each)),
            line(_holds_text(each, agenda)),
        ]
        for place, each in enumerate(budgets[:_BUDGETS_SHOWN], start=1)
    ]
    hidden = len(budgets) - _BUDGETS_SHOWN
    more = [line(f"… and {count_of(hidden, 'more budget')}")] if hidden > 0 else []
    legend = f"{_NONE} is none; a cell shows the least of its time, --output json the minutes."
    return [*table(columns, rows), *more, BLANK, line(Span(cut(legend, width), Style.QUIET))]


def _schedule_text(budget: Budget) -> str:
    if budget.schedule is None or budget.duration is None:
        return "always"
    return f"{budget.schedule} for {short_duration(budget.duration)}"


def _holds_text(budget: Budget, agenda: Agenda) -> str:
    window = next(find_windows(budget, agenda.since, agenda.until), None)
    if window is None:
        return "not in this week"
    if window == Window(agenda.since, agenda.until):
        return "all week"
    begins, ends = (_both(each, agenda.zone) for each in (window.begins, window.ends))
    return f"now, until {ends}" if window.begins == agenda.since else f"next {begins}"


def _both(moment: datetime, zone: Zone) -> str:
    """Write a moment in UTC and in the time zone."""
    there = moment.astimezone(UTC)
    if zone.info is UTC:
        return f"{there:%a %H:%M}"
    return f"{moment.astimezone(zone.info):%a %H:%M} ({there:%a %H:%M} UTC)"


def _local(moment: datetime, zone: Zone) -> str:
    return f"{moment.astimezone(zone.info):%a %m-%d %H:%M}"


# --- for machines --------------------------------------------------------------------------------


def agenda_answer(agenda: Agenda) -> dict[str, Any]:
    """Write an agenda as JSON, to the minute."""
    return {
        "nodePool": agenda.pool,
        "nodes": agenda.nodes,
        "from": write_moment(agenda.since),
        "until": write_moment(agenda.until),
        "timezone": agenda.zone.name,
        "reasons": {
            reason.value: {
                "taken": agenda.taken.get(reason),
                "spans": [_span(each, agenda) for each in spans],
            }
            for reason, spans in agenda.spans.items()
        },
        "budgets": [_budget(each, agenda) for each in agenda.policy.budgets],
    }


def _span(span: Stretch, agenda: Agenda) -> dict[str, Any]:
    return {
        **_times(span.begins, span.ends, agenda.zone),
        "nodes": min(span.nodes, agenda.nodes),
        "isLimited": span.nodes != UNLIMITED,
        "budgets": list(span.budgets),
    }


def _budget(budget: Budget, agenda: Agenda) -> dict[str, Any]:
    return {
        "nodes": budget.nodes,
        "reasons": None if budget.reasons is None else list(budget.reasons),
        "schedule": budget.schedule,
        "duration": None if budget.duration is None else short_duration(budget.duration),
        "windows": [
            _times(each.begins, each.ends, agenda.zone)
            for each in find_windows(budget, agenda.since, agenda.until)
        ],
    }


def _times(begins: datetime, ends: datetime, zone: Zone) -> dict[str, str]:
    return {
        "from": write_moment(begins),
        "until": write_moment(ends),
        "fromLocal": begins.astimezone(zone.info).isoformat(timespec="seconds"),
        "untilLocal": ends.astimezone(zone.info).isoformat(timespec="seconds"),
    }
