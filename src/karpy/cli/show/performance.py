"""A show from its beginning to its end."""

import asyncio
from datetime import timedelta
from typing import Final

from karpy.cli.show.chronicle import Chronicle
from karpy.cli.show.displays import Display
from karpy.cli.show.story import Story
from karpy.cli.show.summary import Summary, summarize
from karpy.model.options import Options
from karpy.wiring.embedded import embedded_world
from karpy.wiring.resident import BRISK, operating

OPTIONS: Final = Options(batch_max=timedelta(seconds=5))
"""A node is kept for two of the longest batches after pods were expected on it: half as long."""
_PACE: Final = 0.2


async def perform(display: Display, speed: float = 1.0) -> Summary:
    """Let a cluster and the autoscaler live, tell a story in it, and add up what it came to."""
    async with embedded_world(BRISK) as world:
        chronicle = Chronicle(world.store, world.clock)
        board = chronicle.board
        async with operating(
            world, notices=chronicle, voice=chronicle, journal=chronicle, options=OPTIONS
        ):
            story = Story(world, chronicle)
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
