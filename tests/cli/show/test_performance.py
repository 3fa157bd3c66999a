import json
import os
import re
import subprocess
import sys

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.cli.show.displays import DemoScreen, Lines
from karpy.cli.show.performance import perform
from karpy.cli.show.summary import summary_answer, summary_lines
from karpy.sim.loop import run
from tests.cli.show.shows import channel, seen

AGAIN = """\
import sys
from karpy.cli.show.displays import Lines
from karpy.cli.show.performance import perform
from karpy.cli.terminal import Channel
from karpy.sim.loop import run
run(perform(Lines(Channel(sys.stdout, has_colour=False), 100)))
"""


def test_the_story_is_printed_line_by_line(snapshot: SnapshotAssertion) -> None:
    sheet, out = channel()

    summary = run(perform(Lines(out, 100)))
    out.write(summary_lines(summary))

    assert max(len(each) for each in sheet.getvalue().splitlines()) <= 100
    assert sheet.getvalue() == snapshot
    assert (summary.is_complete, summary.troubles) == (True, 0)


def test_json_output_has_the_numbers(snapshot: SnapshotAssertion) -> None:
    _, out = channel()

    summary = run(perform(Lines(out, 100)))

    assert json.dumps(summary_answer(summary), indent=2) == snapshot


def test_a_screen_shows_the_same_lines_and_cleans_up() -> None:
    lines, out = channel()
    sheet, terminal = channel()

    run(perform(Lines(out, 100)))
    with DemoScreen(terminal, 100) as screen:
        run(perform(screen))

    assert seen(sheet.getvalue()).rstrip() == lines.getvalue().rstrip()
    assert sheet.getvalue().startswith("\x1b[?25l")
    assert sheet.getvalue().endswith("\x1b[?25h")


def test_a_screen_shows_nodes_while_they_fill(snapshot: SnapshotAssertion) -> None:
    sheet, terminal = channel()

    with DemoScreen(terminal, 100) as screen:
        run(perform(screen))

    frames = re.split(r"(?=\x1b\[\d+F)", sheet.getvalue())
    full = next(place for place, frame in enumerate(frames) if "20 pods  13 s" in frame)
    panel = seen("".join(frames[: full + 1]))
    assert panel[panel.index("\n\n") :] == snapshot


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_story_is_the_same_under_every_hash_seed(seed: str) -> None:
    sheet, out = channel()
    run(perform(Lines(out, 100)))

    again = subprocess.run(
        [sys.executable, "-c", AGAIN],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (again.stderr, again.stdout) == ("", sheet.getvalue())
