"""
End a group of processes when their owner has ended, in whatever way.

`Guard` runs this file as a script. It prints the id of the process group for the programs, and
waits. Its standard input is a pipe without data, which closes when the owner ends, also by
`kill -9`. Then it kills the whole group and removes the folders named as arguments.
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
    """Wait until the owner has ended, then kill the group and remove the folders."""
    owner = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Signals such as Ctrl-C end the owner; the watcher must outlive it to clean up.
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
    """Fork a leader of the group, which kills the group if this watcher is killed."""
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
    """Say whether the owner has ended: by the pipe, or by our parent if a child holds the pipe."""
    readable, _, _ = select.select([sys.stdin], [], [], _SECONDS_BETWEEN_LOOKS)
    return bool(readable) or os.getppid() != owner


if __name__ == "__main__":
    main(sys.argv[1:])
