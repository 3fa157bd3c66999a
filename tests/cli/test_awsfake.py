"""`karpy aws fake` prints its address, and ends on a signal."""

import signal
import subprocess
import sys
from typing import Final

import pytest

from tests.cli.conftest import Karpy

COMMAND: Final = (sys.executable, "-m", "karpy", "aws", "fake", "--families", "t3")
SECONDS: Final = 60


def test_the_fake_says_how_it_is_found_and_ends_by_ctrl_c() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(6)]
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=SECONDS)

    assert said[0].startswith("A fake AWS is up at http://127.0.0.1:")
    assert said[2].startswith("  export AWS_ENDPOINT_URL=http://127.0.0.1:")
    assert (process.returncode, problems) == (0, "")


def test_a_region_that_it_has_not_is_named(karpy: Karpy) -> None:
    run = karpy("aws", "fake", "--region", "mars-north-1")

    assert run.code == 1
    assert "mars-north-1" in run.err


@pytest.mark.parametrize("place", ["spot", "spot/m5.large", "cheap/*/*"])
def test_what_is_sold_out_is_a_capacity_type_a_type_and_a_zone(karpy: Karpy, place: str) -> None:
    run = karpy("aws", "fake", "--sold-out", place)

    assert run.code == 1
    assert f"`--sold-out` is `{place}`" in run.err
