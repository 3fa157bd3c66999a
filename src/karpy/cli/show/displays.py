"""Displays of the demo: plain lines, or lines above a live panel in a terminal."""

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Protocol, Self

from karpy.cli.show.board import Board
from karpy.cli.show.chronicle import Happening
from karpy.cli.show.panel import panel_lines
from karpy.cli.show.story import Story
from karpy.cli.terminal import Channel, Line, Span, Style

_INDENT: Final = 17
_WORD: Final = 8
_ROWS_LEAST: Final = 10
_ROWS_KEPT: Final = 4
"""Rows of the screen that stay free for the last lines of the log."""
_HIDE_CURSOR: Final = "\x1b[?25l"
_SHOW_CURSOR: Final = "\x1b[?25h"


class DemoDisplay(Protocol):
    """Shows the demo while it runs."""

    def show(self, happenings: Iterable[Happening], story: Story, board: Board) -> None:
        """Show new lines and the current state."""


def happening_lines(happening: Happening, width: int) -> list[Line]:
    """Write a line of the log with time, kind and wrapped text."""
    first, *rest = textwrap.wrap(
        happening.text, width - _INDENT, break_on_hyphens=False, break_long_words=False
    ) or [""]
    word = Span(happening.word.ljust(_WORD), happening.style)
    return [
        (Span(f"{happening.seconds:5.1f} s  ", Style.QUIET), word, Span(first)),
        *((Span(" " * _INDENT + each),) for each in rest),
    ]


class Lines:
    """Writes the lines of the log."""

    def __init__(self, channel: Channel, width: int) -> None:
        self._channel = channel
        self._width = width

    def show(self, happenings: Iterable[Happening], story: Story, board: Board) -> None:
        """Write new lines."""
        del story, board
        lines = [each for one in happenings for each in happening_lines(one, self._width)]
        if lines:
            self._channel.write(lines)


class DemoScreen(AbstractContextManager["DemoScreen"]):
    """Writes the lines of the log, and redraws a panel with the current state below them."""

    def __init__(self, channel: Channel, width: int) -> None:
        self._channel = channel
        self._width = width
        self._drawn = 0
        """Number of rows of the drawn panel."""

    def __enter__(self) -> Self:
        """Hide the cursor, which would flicker."""
        self._channel.stream.write(_HIDE_CURSOR)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the panel and show the cursor."""
        self._draw([], [])
        self._channel.stream.write(_SHOW_CURSOR)
        self._channel.stream.flush()

    def show(self, happenings: Iterable[Happening], story: Story, board: Board) -> None:
        """Write new lines above the panel, and redraw it."""
        rows = max(shutil.get_terminal_size().lines, _ROWS_LEAST) - _ROWS_KEPT
        lines = [each for one in happenings for each in happening_lines(one, self._width)]
        self._draw(lines, panel_lines(story, board, self._width, rows))

    def _draw(self, lines: Sequence[Line], panel: Sequence[Line]) -> None:
        if self._drawn:
            self._channel.stream.write(f"\x1b[{self._drawn}F\x1b[0J")
        self._channel.write([*lines, *panel])
        self._drawn = len(panel)
