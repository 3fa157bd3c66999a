"""Wait for other processes, but not for ever."""

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep


def wait_until(is_true: Callable[[], object], *, seconds: float = 20.0) -> None:
    """Wait until something holds, or time is up; what comes of it is for the test to assert."""
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        if is_true():
            return
        sleep(0.02)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
