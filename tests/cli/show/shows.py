"""Runs of the demo in virtual time, and the resulting screen."""

import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from karpy.cli.show.chronicle import Chronicle
from karpy.cli.terminal import Channel
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world
from karpy.wiring.resident import BRISK

_PIECE = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|\r?\n|[^\x1b\r\n]+")


class Sheet(io.StringIO):
    """An output stream whose text tests can read."""

    encoding = "utf-8"


def channel(*, has_colour: bool = False) -> tuple[Sheet, Channel]:
    sheet = Sheet()
    return sheet, Channel(sheet, has_colour=has_colour)


@asynccontextmanager
async def watched_world() -> AsyncIterator[tuple[World, Chronicle]]:
    """Enter a cluster with a chronicle of it."""
    async with embedded_world(BRISK) as world:
        chronicle = Chronicle(world.store, world.clock)
        try:
            yield world, chronicle
        finally:
            chronicle.board.close()


def seen(text: str) -> str:
    """Return the screen of a terminal after a text was written to it."""
    rows = [""]
    row = 0
    for piece in _PIECE.findall(text):
        if piece.endswith("\n"):
            row += 1
            rows[row:] = [""]
        elif piece.startswith("\x1b") and piece.endswith("F"):
            row -= int(piece[2:-1])
        elif piece == "\x1b[0J":
            rows[row:] = [""]
        elif not piece.startswith("\x1b"):
            rows[row] += piece
    return "\n".join(each.rstrip() for each in rows)
