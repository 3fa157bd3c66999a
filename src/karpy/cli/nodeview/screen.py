"""The overview on a whole terminal, updated continuously; needs the extra `tui`."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from msgspec.structs import replace
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, Footer, Input, Static

from karpy.barriers import Barrier
from karpy.cli.nodeview.rows import (
    BAR,
    ORDERS,
    Choice,
    age_text,
    alike,
    like_it,
    node_cells,
    node_columns,
    total_parts,
    waiting_style,
    waiting_text,
)
from karpy.cli.nodeview.sources import Frame, Refresh, Source
from karpy.cli.tables import Align, count_of
from karpy.cli.terminal import Line, Span, Style, Terminal, harmless, line
from karpy.codec.labelselectors import ANY_LABELS, read_label_selector
from karpy.core.overview import NodeView, total_of
from karpy.errors import BadRequest, KarpyError

_STYLES: Final = {
    Style.PLAIN: "",
    Style.STRONG: "bold",
    Style.QUIET: "dim",
    Style.GOOD: "green",
    Style.CARE: "yellow",
    Style.BAD: "red",
    Style.NAME: "cyan",
}
_WIDTH: Final = 100
_OF_THE_LIST: Final = frozenset({"sort", "reverse", "filter", "labels", "waiting", "explain"})
_SELECTOR_SIGNS: Final = frozenset("=!(")
"""Characters that mark a filter as a label selector."""


def show(source: Source, choice: Choice, every: float, terminal: Terminal) -> None:
    """Show nodes until the user quits; raise the error if the cluster cannot be read."""
    viewer = Viewer(source, choice, every, has_colour=terminal.out.has_colour)
    viewer.run()
    if viewer.problem is not None:
        raise viewer.problem


class Viewer(App[None]):
    """The list of nodes, below all other screens."""

    CSS = """
    #totals { height: auto; padding: 0 1; }
    #nodes { height: 1fr; }
    #state { height: 1; padding: 0 1; }
    #body { padding: 0 1; }
    #question { dock: bottom; }
    AskScreen { align: left bottom; background: transparent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("s", "sort", "sort"),
        Binding("r", "reverse", "reverse"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("l", "labels", "labels"),
        Binding("p", "waiting", "pending pods"),
        Binding("enter", "explain", "pods, and why it stays", show=True, priority=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, source: Source, choice: Choice, every: float, *, has_colour: bool = True
    ) -> None:
        super().__init__(ansi_color=True if has_colour else None)
        self.choice = choice
        self.latest: Frame | None = None
        self.problem: KarpyError | None = None
        """The error that ended the viewer."""
        self._source = source
        self._every = every
        self._has_colour = has_colour
        self._columns: tuple[str, ...] = ()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say whether a key is active: keys of the list are not while another screen covers it."""
        del parameters
        return action not in _OF_THE_LIST or len(self.screen_stack) == 1

    def compose(self) -> ComposeResult:
        yield Static("", id="totals")
        yield DataTable(id="nodes", cursor_type="row", zebra_stripes=False)
        yield Static("looking at the cluster …", id="state")
        yield Footer()

    def on_mount(self) -> None:
        self.run_worker(self._follow(), name="follow", exit_on_error=False)

    async def _follow(self) -> None:
        """Refresh the overview at intervals."""
        with Barrier(self._keep):
            async with self._source() as refresh:
                while True:
                    await self._update(refresh)
                    await asyncio.sleep(self._every)
        self.exit()

    def _keep(self, problem: KarpyError) -> None:
        self.problem = problem

    async def _update(self, refresh: Refresh) -> None:
        self.latest = await refresh()
        self.draw()
        for each in self.screen_stack:
            if isinstance(each, PageScreen):
                each.draw()

    def draw(self) -> None:
        """Draw the last overview."""
        if self.latest is None:
            return
        shown = self.latest.overview
        nodes = self.choice.of(shown.nodes)
        base = self.screen_stack[0]
        base.query_one("#totals", Static).update(self.texts(total_parts(total_of(nodes))))
        base.query_one("#state", Static).update(self.text(self._state(self.latest, len(nodes))))
        self._fill(base.query_one("#nodes", DataTable), nodes)

    def _state(self, frame: Frame, shown: int) -> Line:
        """Write how many nodes are shown, their order and their filter."""
        choice, everything = self.choice, frame.overview
        parts = [f"{shown} of {count_of(len(everything.nodes), 'node')}"]
        parts.append(f"by {choice.order}{', reversed' if choice.is_reversed else ''}")
        if choice.pool:
            parts.append(f"NodePool {choice.pool}")
        if choice.text:
            parts.append(f"with {choice.text}")
        refused = sum(each.refusal is not None for each in everything.waiting)
        waiting = f"{count_of(len(everything.waiting), 'pending pod')}"
        pods = Span(f"{waiting}, {refused} without a place" if refused else waiting)
        pods = pods._replace(style=Style.BAD if refused else Style.PLAIN)
        trouble = Span(f"  {frame.trouble}", Style.BAD) if frame.trouble else Span("")
        return line("  ".join(parts), "  ", pods, f"  prices: {frame.catalog or '?'}", trouble)

    def _fill(self, table: DataTable[Text], nodes: Sequence[NodeView]) -> None:
        """Write the rows, and keep the cursor on its node."""
        assert self.latest is not None
        there = self.chosen(table)
        columns = node_columns(self.choice.labels)
        titles = tuple(each.title for each in columns)
        if titles != self._columns:
            table.clear(columns=True)
            for title in titles:
                table.add_column(title)
            self._columns = titles
        top = table.scroll_offset
        table.clear()
        for node in nodes:
            cells = node_cells(node, self.choice.labels, self.latest.overview.now, BAR)
            row = [self.text(each) for each in cells]
            for column, cell in zip(columns, row, strict=True):
                cell.justify = "right" if column.align is Align.RIGHT else "left"
            table.add_row(*row, key=node.name)
        names = [each.name for each in nodes]
        if there in names:
            table.cursor_coordinate = Coordinate(names.index(there), 0)
            table.scroll_to(top.x, top.y, animate=False)

    def chosen(self, table: DataTable[Text] | None = None) -> str:
        """Return the name of the node under the cursor; empty if there is none."""
        found = table or self.screen_stack[0].query_one("#nodes", DataTable)
        if not found.row_count:
            return ""
        return found.coordinate_to_cell_key(found.cursor_coordinate).row_key.value or ""

    def texts(self, lines: Iterable[Line]) -> Text:
        """Return lines as one text."""
        return Text("\n").join([self.text(each) for each in lines])

    def text(self, spans: Line) -> Text:
        """Return a line as a text without control characters."""
        styles = _STYLES if self._has_colour else {}
        return Text.assemble(
            *((harmless(each.text), styles.get(each.style, "")) for each in spans), no_wrap=False
        )

    def on_data_table_row_selected(self) -> None:
        self.action_explain()

    def action_explain(self) -> None:
        """Show the pods of the node under the cursor, and why it is still there."""
        if self.latest is not None and (name := self.chosen()):
            self.push_screen(NodeScreen(self, name))

    def action_waiting(self) -> None:
        """Show the pods without a node."""
        if self.latest is not None:
            self.push_screen(WaitingScreen(self))

    def action_sort(self) -> None:
        """Sort by the next column."""
        orders = list(ORDERS)
        order = orders[(orders.index(self.choice.order) + 1) % len(orders)]
        self.choice = replace(self.choice, order=order)
        self.draw()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self.choice = replace(self.choice, is_reversed=not self.choice.is_reversed)
        self.draw()

    def action_filter(self) -> None:
        """Ask for a filter."""
        hint = "a part of a name, type, zone or NodePool; or labels: app=web,tier in (a,b)"
        self.push_screen(AskScreen(hint), self._filter)

    def _filter(self, answer: str | None) -> None:
        if answer is None:
            return
        text, selector = answer.strip(), ANY_LABELS
        if _SELECTOR_SIGNS & set(text):
            try:
                selector, text = read_label_selector(text), ""
            except BadRequest as error:
                self.notify(error.message, severity="error")
                return
        self.choice = replace(self.choice, text=text, selector=selector)
        self.draw()

    def action_labels(self) -> None:
        """Ask for labels to show as columns."""
        self.push_screen(AskScreen("keys of labels, with commas between"), self._label)

    def _label(self, answer: str | None) -> None:
        if answer is not None:
            labels = tuple(each.strip() for each in answer.split(",") if each.strip())
            self.choice = replace(self.choice, labels=labels)
            self.draw()


class PageScreen(Screen[None]):
    """A page of text about the last overview."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("q", "leave", "back", show=False),
    ]

    def __init__(self, viewer: Viewer) -> None:
        super().__init__()
        self.viewer = viewer

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="body"):
            yield Static("", id="page")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#body").focus()
        self.draw()

    def draw(self) -> None:
        """Draw the page with the last overview."""
        frame = self.viewer.latest
        # A new screen has no page until it is mounted; then it draws itself.
        if frame is not None and (page := self.query("#page")):
            page.first(Static).update(self.viewer.texts(self.lines(frame)))

    def lines(self, frame: Frame) -> list[Line]:
        """Return the lines of the page."""
        raise NotImplementedError

    def action_leave(self) -> None:
        """Go back to the list."""
        self.dismiss()


class NodeScreen(PageScreen):
    """One node: why it is still there, and its pods."""

    def __init__(self, viewer: Viewer, node: str) -> None:
        super().__init__(viewer)
        self._node = node

    def lines(self, frame: Frame) -> list[Line]:
        node = next((each for each in frame.overview.nodes if each.name == self._node), None)
        if node is None:
            return [line(Span(self._node, Style.STRONG), " is gone")]
        explained = frame.explain(self._node, min(_WIDTH, max(40, self.size.width - 4)))
        pods = [line(f"  {each}") for each in node.pods]
        title = line(Span(count_of(len(node.pods), "pod"), Style.STRONG))
        return [*explained, (), title, *pods]


class WaitingScreen(PageScreen):
    """The pods without a node, and the decision about each."""

    def lines(self, frame: Frame) -> list[Line]:
        waiting = frame.overview.waiting
        lines = [line(Span(count_of(len(waiting), "pending pod"), Style.STRONG)), ()]
        for group in alike(waiting):
            first, *_ = group
            age = age_text(min(each.created for each in group), frame.overview.now)
            more = Span(like_it(group), Style.QUIET)
            lines.append(line(Span(first.key, waiting_style(first)), f"  {age}  ", more))
            lines.append(line(f"    {waiting_text(first)}"))
            if first.asks:
                lines.append(line(Span(f"    asks for {'; '.join(first.asks)}", Style.QUIET)))
        return lines


class AskScreen(ModalScreen[str]):
    """An input line."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back")]

    def __init__(self, hint: str) -> None:
        super().__init__()
        self._hint = hint

    def compose(self) -> ComposeResult:
        yield Input(placeholder=self._hint, id="question")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return the answer."""
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Return an empty answer."""
        self.dismiss(None)
