"""CPU time and memory of a process and its children, read from /proc."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_KIB_PER_MIB: Final = 1024
_OWN_TIMES: Final = slice(11, 15)
"""Fields of /proc/PID/stat after the name: user and system time, own and of children that ended."""


class Usage(Struct, frozen=True):
    """The CPU time and memory that a tree of processes used so far."""

    cpu_s: float = 0.0
    peak_mib: float = 0.0
    """The sum of the peaks of all processes, which may be at different times."""


def usage_of(pid: int) -> Usage:
    """Return the usage of a process and its running children."""
    each = [_usage_of_one(process) for process in _tree(pid)]
    return Usage(sum(one.cpu_s for one in each), sum(one.peak_mib for one in each))


def _tree(pid: int) -> Iterator[int]:
    yield pid
    with suppress(FileNotFoundError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _tree(int(child))


def _usage_of_one(pid: int) -> Usage:
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[_OWN_TIMES]
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return Usage()
    peak = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
    return Usage(sum(map(int, times)) / _TICKS_PER_SECOND, peak / _KIB_PER_MIB)
