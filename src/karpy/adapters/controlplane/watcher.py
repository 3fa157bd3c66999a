"""
End a group of processes when their owner is gone, however it went.

Run as a script of its own, by `Guard`. It says the number of the process group that programs shall
join, and waits. Standard input is a pipe without data: it closes when the owner ends, also
by `kill -9`. Then the whole group is killed, and the folders named as arguments are removed.
"""

import os
import select
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_SECONDS_BETWEEN_LOOKS: Final = 1.0


def main(folders: Sequence[str]) -> None:
    """Watch until the owner is gone, then clean up after it."""
    owner = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Ctrl-C and the like are for the owner; when that has ended, so shall we.
        signal.signal(number, signal.SIG_IGN)
    group = _start_group()
    sys.stdout.write(f"{group}\n")
    sys.stdout.flush()
    while not _is_gone(owner):
        pass
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _start_group() -> int:
    """Fork a process that only leads the group, and ends it should we be killed ourselves."""
    reader, writer = os.pipe()
    leader = os.fork()
    if leader == 0:
        os.setpgid(0, 0)
        for descriptor in (writer, sys.stdin.fileno(), sys.stdout.fileno()):
            os.close(descriptor)
        os.read(reader, 1)
        os.killpg(0, signal.SIGKILL)
    os.close(reader)
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(leader, leader)
    return leader


def _is_gone(owner: int) -> bool:
    """Wait for a while; a copy of the pipe in a forked child must not keep us waiting for ever."""
    readable, _, _ = select.select([sys.stdin], [], [], _SECONDS_BETWEEN_LOOKS)
    return bool(readable) or os.getppid() != owner


if __name__ == "__main__":
    main(sys.argv[1:])
