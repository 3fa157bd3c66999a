"""Styled text and the output streams; only here colour, ASCII and JSON are chosen."""

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import IO, Final, NamedTuple, Self, TypeAlias

from rich.console import Console

WIDTH_MAX: Final = 100
WIDTH_MIN: Final = 72

_CONTROL: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, characters that change the direction of text, and lone surrogates."""
_ASCII: Final = str.maketrans("█░…▁▂▃▄▅▆▇", "#.~_,-=+*%")


class Style(Enum):
    """The meaning of a piece of text; the value is its style on a terminal."""

    PLAIN = ""
    STRONG = "1"
    QUIET = "2"
    GOOD = "32"
    CARE = "33"
    BAD = "31"
    NAME = "36"


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    style: Style = Style.PLAIN


Line: TypeAlias = tuple[Span, ...]


def line(*parts: str | Span) -> Line:
    """Return a line of plain and styled pieces."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def width_of(spans: Line) -> int:
    """Return the number of columns of a line."""
    return sum(len(span.text) for span in spans)


def harmless(text: str) -> str:
    """Replace the characters that could control a terminal."""
    return _CONTROL.sub("?", text)


class _Console(Console):
    """A console that raises BrokenPipeError instead of exiting."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Channel:
    """An output stream with the colours and characters that its reader can show."""

    def __init__(self, stream: IO[str], *, has_colour: bool) -> None:
        self.stream = stream
        self.has_colour = has_colour
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower()
        self._encoding = encoding
        self._is_unicode = encoding.replace("_", "-") in {"utf-8", "utf8", "utf-8-sig", "cp65001"}
        self._shown_before = 0
        self.has_written = False

    def write(self, lines: Iterable[Line]) -> None:
        """Write lines in one call, without control characters."""
        self.write_text("".join(f"{self._shown(each)}\n" for each in lines))

    def write_text(self, text: str) -> None:
        """Write a text unchanged; an OSError names the stream."""
        self.has_written = True
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError as error:
            error.filename = self.stream.name
            raise

    def show_progress(self, text: str) -> None:
        """On a terminal, replace the last progress text; an empty text removes it."""
        if not self.stream.isatty():
            return
        shown = self._plain(text)
        self.write_text(f"\r{shown.ljust(self._shown_before)}" + ("" if shown else "\r"))
        self._shown_before = len(shown)

    def console(self, width: int) -> Console:
        """Return a console for the help of commands, which writes to this stream."""
        return _Console(
            file=self.stream,
            width=width,
            color_system="standard" if self.has_colour else None,
            force_terminal=self.has_colour,
            no_color=not self.has_colour,
            highlight=False,
        )

    def _shown(self, spans: Line) -> str:
        text = "".join(self._styled(span) for span in spans)
        return text if self.has_colour else text.rstrip()

    def can_write(self, text: str) -> bool:
        """Say whether the encoding of the stream has all characters of a text."""
        try:
            text.encode(self._encoding)
        except UnicodeEncodeError:
            return False
        return True

    def _plain(self, text: str) -> str:
        text = harmless(text)
        if not self._is_unicode:
            text = text.translate(_ASCII).encode(self._encoding, "replace").decode(self._encoding)
        return text

    def _styled(self, span: Span) -> str:
        text = self._plain(span.text)
        if not self.has_colour or span.style is Style.PLAIN or not text:
            return text
        return f"\x1b[{span.style.value}m{text}\x1b[0m"


class Terminal:
    """The streams of a command: answers go to `out`, everything else to `err`."""

    def __init__(self, stdin: IO[str], out: Channel, err: Channel, width: int = WIDTH_MAX) -> None:
        self.stdin = stdin
        self.out = out
        self.err = err
        self.width = width

    @classmethod
    def of_process(cls, environ: Mapping[str, str], *, no_colour: bool) -> Self:
        """Return the terminal of this process, with colour on terminals unless it is turned off."""
        wanted = not no_colour and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        # A stream that was closed before the start is None, unlike its type says.
        stdin: IO[str] = sys.stdin or io.StringIO()
        out: IO[str] = sys.stdout or io.StringIO()
        err: IO[str] = sys.stderr or io.StringIO()
        return cls(
            stdin,
            Channel(out, has_colour=wanted and out.isatty()),
            Channel(err, has_colour=wanted and err.isatty()),
            _columns(out),
        )

    def answer(self, lines: Iterable[Line]) -> None:
        """Write the answer as text."""
        self.out.write(lines)

    def answer_text(self, text: str) -> None:
        """Write an answer for another program, unchanged."""
        self.out.write_text(text)

    def answer_json(self, value: object) -> None:
        """Write the answer as ASCII JSON, indented by two spaces."""
        self.out.write_text(json.dumps(value, indent=2) + "\n")

    def show_progress(self, text: str) -> None:
        """Show the progress on a terminal; an empty text removes it."""
        # A wrapped line could not be removed.
        self.err.show_progress(text[: self.width - 1])

    def report(self, *lines: Line) -> None:
        """Write lines that are not part of the answer."""
        self.err.write(lines)


def _columns(stream: IO[str]) -> int:
    if not stream.isatty():
        return WIDTH_MAX
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return WIDTH_MAX
    return max(WIDTH_MIN, min(WIDTH_MAX, columns or WIDTH_MAX))
