import asyncio

from karpy.cli.show.story import PATIENCE, Story
from tests.cli.show.shows import watched_world
from tests.sim.stories import on_virtual_time


@on_virtual_time
async def test_a_story_that_gets_stuck_ends_and_says_where() -> None:
    """Without an operator no node is launched, so that the shop never runs."""
    async with watched_world() as (world, chronicle):
        story = Story(world, chronicle)
        began = asyncio.get_running_loop().time()

        await story.play()

        last = chronicle.take(is_over=True)[-1]
        assert asyncio.get_running_loop().time() - began == PATIENCE
        assert (last.word, last.text) == ("late", "no time is left while a web shop moves in")
        assert (story.place, story.is_over) == (0, False)
