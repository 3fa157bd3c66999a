import io
from typing import NamedTuple

import pytest

from karpy.cli.main import execute
from karpy.cli.terminal import Channel, Terminal


class Run(NamedTuple):
    """Exit code and output of a run of the program."""

    code: int
    out: str
    err: str


class Karpy:
    """Runs the program in this process, with its own streams."""

    def __call__(
        self,
        *words: str,
        stdin: str | io.StringIO = "",
        has_colour: bool = False,
        encoding: str = "utf-8",
        is_debugging: bool = False,
        is_terminal: bool = False,
    ) -> Run:
        out, err = _stream(encoding), _stream(encoding, is_terminal=is_terminal)
        terminal = Terminal(
            io.StringIO(stdin) if isinstance(stdin, str) else stdin,
            Channel(out, has_colour=has_colour),
            Channel(err, has_colour=has_colour),
        )
        code = execute(words, terminal, is_debugging=is_debugging)
        return Run(code, _text(out), _text(err))


@pytest.fixture
def karpy() -> Karpy:
    return Karpy()


class _Screen(io.TextIOWrapper):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def _stream(encoding: str, *, is_terminal: bool = False) -> io.TextIOWrapper:
    kind = _Screen if is_terminal else io.TextIOWrapper
    return kind(io.BytesIO(), encoding=encoding, newline="\n", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(stream.encoding)
