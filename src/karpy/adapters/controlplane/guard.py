"""Processes that never outlive this process."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

from karpy.adapters.controlplane import watcher

Process = subprocess.Popen[bytes]


class Guard:
    """
    Owns a group of processes and ends all of them, at the latest when this process ends.

    The watcher removes `folders` if this process is killed; otherwise the caller removes them. The
    group is not the terminal's: Ctrl-C reaches this process only. With `patience_seconds`, programs
    first get SIGTERM and that much time; without, they are killed.
    """

    def __init__(self, *folders: Path, patience_seconds: float = 0.0) -> None:
        self._folders = folders
        self._patience_seconds = patience_seconds
        self._watcher: subprocess.Popen[str] | None = None
        self._group = 0
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        # A script, not a module: it must start quickly and needs nothing but the standard library.
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", watcher.__file__, *map(str, self._folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="ascii",
            process_group=0,
        )
        assert self._watcher.stdout is not None
        self._group = int(self._watcher.stdout.readline())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def spawn(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> Process:
        """Start a program in the group; its output is appended to `log`."""
        assert self._watcher is not None, "enter the guard first"
        with log.open("ab") as output:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environ,
                cwd=folder,
                process_group=self._group,
            )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        """End every process of the group, children of programs included."""
        if self._watcher is None:
            return
        try:
            if self._patience_seconds:
                self._ask_to_end()
        finally:
            # Also if a second Ctrl-C interrupts the wait.
            self._kill()

    def _ask_to_end(self) -> None:
        deadline = monotonic() + self._patience_seconds
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - monotonic()))

    def _kill(self) -> None:
        assert self._watcher is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, signal.SIGKILL)
        self._watcher.kill()
        self._watcher.communicate()
        self._watcher = None
        for process in self._processes:
            process.wait()


def end(process: Process, *, patience_seconds: float) -> None:
    """Send SIGTERM to a process and wait; kill the process if it does not end in time."""
    process.terminate()
    try:
        process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
