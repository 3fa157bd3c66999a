"""The demo on a fake AWS, as users start it."""

import json
import subprocess
import sys
import time

COMMAND = (sys.executable, "-m", "karpy", "demo", "--provider", "aws", "--output", "json")
SECONDS = 90


def test_the_demo_on_aws_ends_within_about_a_minute() -> None:
    began = time.monotonic()

    run = subprocess.run(COMMAND, capture_output=True, text=True, check=False)

    answer = json.loads(run.stdout)
    costs = answer["dollarsPerHour"]
    assert (run.returncode, time.monotonic() - began < SECONDS) == (0, True)
    assert (answer["isComplete"], answer["troubles"]) == (True, 0)
    assert answer["nodes"]["removed"] >= 2
    assert 0 < costs["end"] < costs["peak"]
    assert "Its nodes are instances of a fake AWS" in run.stderr
