import pytest

from karpy.cli.show.chronicle import Happening
from karpy.cli.show.displays import happening_lines
from karpy.cli.show.panel import panel_lines
from karpy.cli.show.story import Story
from tests.cli.show.shows import watched_world
from tests.sim.stories import on_virtual_time


def test_a_long_happening_is_wrapped_below_itself() -> None:
    happening = Happening(17.46, "refuse", "ml/trainer stays pending: too-little-cpu for it")

    lines = happening_lines(happening, 45)

    assert ["".join(span.text for span in each) for each in lines] == [
        " 17.5 s  refuse  ml/trainer stays pending:",
        "                 too-little-cpu for it",
    ]


@pytest.mark.parametrize("width", [72, 100])
def test_a_happening_without_text_is_one_line(width: int) -> None:
    assert len(happening_lines(Happening(0.0, "gone", ""), width)) == 1


def test_a_panel_without_nodes_shows_scene_and_counts() -> None:
    shown: list[str] = []

    @on_virtual_time
    async def look() -> None:
        async with watched_world() as (world, chronicle):
            story = Story(world, chronicle)
            lines = panel_lines(story, chronicle.board, 100, 20)
            shown.extend("".join(span.text for span in each) for each in lines)

    look()

    assert shown == [
        "",
        "░░░░░░░░░░░░░░░░░░  1 of 7  a web shop moves in  0 s",
        "Pods 0 running, 0 pending   Nodes 0   Cost $0.0000/h",
        "",
    ]
