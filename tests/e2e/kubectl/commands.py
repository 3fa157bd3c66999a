"""The real kubectl, as a subprocess beside the server."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_SECONDS = 60.0

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: app:1, resources: {requests: {cpu: 100m, memory: 1Gi}}}
"""
NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  weight: 10
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
"""


class Run(NamedTuple):
    """Exit code and output of a run."""

    code: int
    out: str
    err: str


class Kubectl:
    """Runs kubectl on a cluster, with its own cache."""

    def __init__(self, program: Path, kubeconfig: Path, home: Path) -> None:
        self._program = program
        self._flags = (f"--kubeconfig={kubeconfig}", f"--cache-dir={home / 'cache'}")
        self._environ = {"HOME": str(home), "PATH": os.environ["PATH"]}

    async def __call__(self, *words: str, stdin: str = "") -> str:
        """Run a command that must succeed; return its output."""
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

    @asynccontextmanager
    async def follow(self, *words: str) -> AsyncIterator[Callable[[], Awaitable[str]]]:
        """Run a command that continues, and yield a function that reads its next line."""
        process = await self._start(*words)
        stdout = process.stdout
        assert stdout is not None

        async def line() -> str:
            async with asyncio.timeout(_SECONDS):
                return (await stdout.readline()).decode().rstrip()

        try:
            yield line
        finally:
            process.kill()
            await process.communicate()

    async def _start(self, *words: str, editor: str = "") -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            self._program,
            *self._flags,
            *words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**self._environ, "EDITOR": editor or "true"},
        )


def rows(text: str) -> list[list[str]]:
    """Split a table into cells."""
    return [line.split() for line in text.splitlines()]
