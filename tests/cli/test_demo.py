"""The demo as users start it: in its own process and in real time."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import Karpy
from tests.tidy.test_dependencies import BLOCKED, WITHOUT_EXTRAS

COMMAND = (sys.executable, "-m", "karpy", "demo")
SECONDS = 60


def test_the_demo_ends_within_a_minute_and_leaves_no_idle_node() -> None:
    began = time.monotonic()

    run = subprocess.run(
        [*COMMAND, "--output", "json"], capture_output=True, text=True, check=False
    )

    answer = json.loads(run.stdout)
    costs = answer["dollarsPerHour"]
    assert (run.returncode, time.monotonic() - began < SECONDS) == (0, True)
    assert (answer["isComplete"], answer["troubles"]) == (True, 0)
    assert answer["pods"]["ran"] >= 28
    assert answer["nodes"]["removed"] >= 2
    assert costs["end"] < costs["average"] < costs["peak"]
    assert "scale   inflate from 20 to 3\n" in run.stderr


def test_ctrl_c_ends_the_demo_without_a_word() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=SECONDS)

    assert first == "A cluster in this process, and Karpy in it\n"
    assert (process.returncode, problems) == (130, "")


@pytest.mark.parametrize(("name", "has_colour"), [("NO_COLOR", False), ("ANY", True)])
def test_a_terminal_shows_the_demo_live(name: str, *, has_colour: bool) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", name: "1"}
    with subprocess.Popen([*COMMAND, "--speed", "20"], stdout=theirs, env=environ) as process:
        os.close(theirs)
        text = b"".join(iter(lambda: _read(ours), b"")).decode()
    os.close(ours)

    assert process.returncode == 0
    assert "\x1b[0J" in text
    assert text.count("\x1b[?25h") == 1
    assert ("\x1b[32m" in text) is has_colour
    assert "What it comes to" in text


def test_a_dumb_terminal_gets_plain_lines() -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "dumb"}
    with subprocess.Popen([*COMMAND, "--speed", "20"], stdout=theirs, env=environ) as process:
        os.close(theirs)
        text = b"".join(iter(lambda: _read(ours), b"")).decode()
    os.close(ours)

    assert (process.returncode, "\x1b" in text) == (0, False)
    assert "What it comes to" in text


def test_the_demo_needs_no_extra() -> None:
    words = ["karpy", "demo", "--speed", "20", "--output", "json"]
    script = WITHOUT_EXTRAS.format(blocked=BLOCKED, words=words[1:])

    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)

    assert (run.returncode, json.loads(run.stdout)["isComplete"]) == (0, True)


@pytest.mark.parametrize("speed", ["0", "0.5", "21", "fast"])
def test_an_invalid_speed_is_misuse(karpy: Karpy, speed: str) -> None:
    run = karpy("demo", "--speed", speed)

    assert (run.code, "--speed" in run.err) == (2, True)


def _read(terminal: int) -> bytes:
    """Read from a terminal; return nothing once the writer has ended."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""
