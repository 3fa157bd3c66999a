"""A run of the demo."""

import asyncio
import os
import shutil
from typing import Final

from karpy.cli.options import DONE, FAILED
from karpy.cli.show.chronicle import Chronicle
from karpy.cli.show.displays import DemoDisplay, DemoScreen, Lines
from karpy.cli.show.story import PATIENCE, Story
from karpy.cli.show.summary import Summary, summarize, summary_answer, summary_lines
from karpy.cli.show.venue import ON_PAPER, Venue
from karpy.cli.terminal import WIDTH_MIN, Channel, Line, Span, Style, Terminal, line
from karpy.sim.timelapse import run_faster
from karpy.wiring.resident import embedded_world, operating

_PACE: Final = 0.2


def run_show(terminal: Terminal, speed: float, *, is_json: bool, venue: Venue = ON_PAPER) -> int:
    """Run the demo on stdout; with JSON, whose answer is the summary, on stderr."""
    channel = terminal.err if is_json else terminal.out
    summary = run_faster(_show(channel, terminal.width, speed, venue), speed)
    if is_json:
        terminal.answer_json(summary_answer(summary))
    else:
        terminal.answer(summary_lines(summary))
    return DONE if summary.is_complete else FAILED


async def _show(channel: Channel, width: int, speed: float, venue: Venue) -> Summary:
    # Write nothing before the event loop handles SIGINT: users may press Ctrl-C at the first line.
    channel.write(_opening(speed, venue))
    if not _is_live(channel):
        return await perform(Lines(channel, width), speed, venue)
    with DemoScreen(channel, width) as screen:
        return await perform(screen, speed, venue)


async def perform(display: DemoDisplay, speed: float = 1.0, venue: Venue = ON_PAPER) -> Summary:
    """Run a cluster with the autoscaler, play the story in it, and return the summary."""
    async with embedded_world(venue.world) as world, venue.enter(world) as place:
        chronicle = Chronicle(world.store, world.clock)
        board = chronicle.board
        board.price_of = place.price_of or board.price_of
        async with operating(
            world,
            notices=chronicle,
            voice=chronicle,
            journal=chronicle,
            options=place.options,
            open_cloud=place.open_cloud,
        ):
            patience = max(PATIENCE, venue.wall_seconds * speed)
            story = Story(world, chronicle, patience, place.documents)
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
    """Say whether a panel can be shown; wrapped lines could not be redrawn."""
    is_wide = shutil.get_terminal_size().columns >= WIDTH_MIN
    return channel.stream.isatty() and os.environ.get("TERM") != "dumb" and is_wide


def _opening(speed: float, venue: Venue) -> list[Line]:
    pace = "" if speed == 1 else f" Time passes {speed:g} times as fast as usual."
    return [
        line(Span("A cluster in this process, and Karpy in it", Style.STRONG)),
        line(f"Its nodes are {venue.nodes}, its autoscaler is `karpy run`.{pace}"),
        line(),
    ]
