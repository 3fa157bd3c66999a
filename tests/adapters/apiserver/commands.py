"""The real kubectl, run beside the server's loop."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_SECONDS = 60.0


class Run(NamedTuple):
    """What one run left behind."""

    code: int
    out: str
    err: str


class Kubectl:
    """Runs kubectl against one cluster, with a cache of its own."""

    def __init__(self, program: Path, kubeconfig: Path, home: Path) -> None:
        self._program = program
        self._flags = (f"--kubeconfig={kubeconfig}", f"--cache-dir={home / 'cache'}")
        self._environ = {"HOME": str(home), "PATH": os.environ["PATH"]}

    async def __call__(self, *words: str, stdin: str = "") -> str:
        """Run a command that must succeed; return what it says."""
        run = await self.run(*words, stdin=stdin)
        assert run.code == 0, f"kubectl {' '.join(words)}: {run.err or run.out}"
        return run.out

    async def run(self, *words: str, stdin: str = "", editor: str = "") -> Run:
        """Run a command that may fail."""
        process = await self._start(*words, editor=editor)
        try:
            async with asyncio.timeout(_SECONDS):
                out, err = await process.communicate(stdin.encode())
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        assert process.returncode is not None
        return Run(process.returncode, out.decode(), err.decode())

    async def follow(self, *words: str, lines: int) -> list[str]:
        """Run a command that goes on, until it has said so many lines."""
        process = await self._start(*words)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_SECONDS):
                read = [await process.stdout.readline() for _ in range(lines)]
        finally:
            process.kill()
            await process.communicate()
        return [each.decode().rstrip() for each in read]

    async def _start(self, *words: str, editor: str = "") -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            self._program,
            *words,
            *self._flags,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**self._environ, "EDITOR": editor or "true"},
        )
