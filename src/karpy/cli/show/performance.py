"""A show from its beginning to its end."""

import asyncio
import os
import shutil
from datetime import timedelta
from typing import Final

from karpy.cli.options import DONE, FAILED
from karpy.cli.show.chronicle import Chronicle
from karpy.cli.show.displays import Display, Lines, Screen
from karpy.cli.show.story import PATIENCE, Story
from karpy.cli.show.summary import Summary, summarize, summary_answer, summary_lines
from karpy.cli.terminal import WIDTH_MIN, Channel, Line, Span, Style, Terminal, line
from karpy.model.options import Options
from karpy.sim.timelapse import run_faster
from karpy.wiring.resident import BRISK, operating
from karpy.wiring.worlds import embedded_world

OPTIONS: Final = Options(batch_max=timedelta(seconds=5))
"""A node is kept for two of the longest batches after pods were expected on it: half as long."""
_PACE: Final = 0.2
_WALL_SECONDS: Final = 50.0
"""A busy machine gets so long, however fast time passes; people were promised a minute."""


def run_show(terminal: Terminal, speed: float, *, is_json: bool) -> int:
    """Show everything on stdout; with JSON, which has only numbers, on stderr instead."""
    channel = terminal.err if is_json else terminal.out
    summary = run_faster(_show(channel, terminal.width, speed), speed)
    if is_json:
        terminal.answer_json(summary_answer(summary))
    else:
        terminal.answer(summary_lines(summary))
    return DONE if summary.is_complete else FAILED


async def _show(channel: Channel, width: int, speed: float) -> Summary:
    # Whoever sees the first word may end it all: by then the loop knows what Ctrl-C means.
    channel.write(_opening(speed))
    if not _is_live(channel):
        return await perform(Lines(channel, width), speed)
    with Screen(channel, width) as screen:
        return await perform(screen, speed)


async def perform(display: Display, speed: float = 1.0) -> Summary:
    """Let a cluster and the autoscaler live, tell a story in it, and add up what it came to."""
    async with embedded_world(BRISK) as world:
        chronicle = Chronicle(world.store, world.clock)
        board = chronicle.board
        async with operating(
            world, notices=chronicle, voice=chronicle, journal=chronicle, options=OPTIONS
        ):
            story = Story(world, chronicle, max(PATIENCE, _WALL_SECONDS * speed))
            playing = asyncio.create_task(story.play(), name="story")
            try:
                while not playing.done():
                    display.show(chronicle.take(), story, board)
                    await asyncio.wait((playing,), timeout=_PACE)
            finally:
                playing.cancel()
            playing.result()
            display.show(chronicle.take(is_over=True), story, board)
            board.close()
            return summarize(chronicle, speed, is_complete=story.is_over)


def _is_live(channel: Channel) -> bool:
    """Say whether somebody looks who can be shown a panel; one that wraps could not be redrawn."""
    is_wide = shutil.get_terminal_size().columns >= WIDTH_MIN
    return channel.stream.isatty() and os.environ.get("TERM") != "dumb" and is_wide


def _opening(speed: float) -> list[Line]:
    pace = "" if speed == 1 else f" Time passes {speed:g} times as fast as usual."
    return [
        line(Span("A cluster in this process, and Karpy in it", Style.STRONG)),
        line(f"Its nodes are on paper, its autoscaler is `karpy run`.{pace}"),
        line(),
    ]
