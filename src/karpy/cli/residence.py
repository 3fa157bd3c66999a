"""An embedded cluster, served until Ctrl-C."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exception

from msgspec import Struct

from karpy.cli.cluster import Contents
from karpy.cli.examples import CLUSTER, example_documents
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.errors import Unexpected
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.resident import BRISK, apply_manifests, autoscaled


class ClusterEndpoint(Struct, frozen=True):
    """The port, the token and the kubeconfig of a cluster."""

    kubeconfig: Path | None = None
    port: int = 0
    token: str = ""


def report_error(terminal: Terminal, error: BaseException) -> None:
    """Report an unexpected error of a request with its traceback; clients get a short message."""
    unexpected = Unexpected(error=error)
    parts = "".join(format_exception(error)).splitlines()
    terminal.report(
        *(line(part) for part in parts),
        line(Span("error: ", Style.BAD), f"{unexpected.message} ({unexpected.code})"),
    )


async def run_cluster(terminal: Terminal, place: ClusterEndpoint, contents: Contents) -> None:
    """Run a cluster with the given content, until SIGINT or SIGTERM."""
    is_over = _interruption()

    async with AsyncExitStack() as stack:
        settings = BRISK if contents.operator else None
        world = await stack.enter_async_context(embedded_world(settings))
        served = await stack.enter_async_context(
            serve(
                world,
                port=place.port,
                token=place.token,
                kubeconfig=place.kubeconfig,
                report=partial(report_error, terminal),
            )
        )
        for number in range(1, contents.nodes + 1):
            world.add_node(f"node-{number}")
        work: list[asyncio.Task[None]] = []
        log = None
        if contents.operator:
            log = contents.log or _temporary_log(stack)
            work.append(await stack.enter_async_context(autoscaled(world, log)))
        if contents.examples:
            apply_manifests(world, example_documents(CLUSTER))
        terminal.answer(_usage(served.url, served.kubeconfig, contents, log))
        ending = asyncio.create_task(is_over.wait(), name="end")
        # The autoscaler never ends by itself; if it does, closing its context raises the error.
        await asyncio.wait((ending, *work), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()


def _temporary_log(stack: AsyncExitStack) -> Path:
    folder = stack.enter_context(TemporaryDirectory(prefix="karpy-operator-"))
    return Path(folder, "operator.log")


def _interruption() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, event.set)
    return event


def _usage(url: str, kubeconfig: Path, contents: Contents, log: Path | None) -> list[Line]:
    inmate = " with Karpy in it" if contents.operator else ""
    return [
        line(Span(f"A Kubernetes cluster{inmate} is up", Style.GOOD), f" at {url}"),
        line(),
        line(Span(f"  export KUBECONFIG={kubeconfig.absolute()}", Style.NAME)),
        *(line(f"  {each}") for each in _commands(contents)),
        line(),
        *([line(Span(f"The autoscaler logs to {log.absolute()}", Style.QUIET))] if log else []),
        line(Span(f"It runs in process {os.getpid()}; Ctrl-C ends it.", Style.QUIET)),
    ]


def _commands(contents: Contents) -> list[str]:
    """Return commands to try."""
    look = "kubectl get nodes,pods,nodepools -A"
    if not contents.operator:
        return [look]
    fill = [] if contents.examples else ["kubectl apply -f examples/"]
    return [
        *fill,
        "kubectl scale deployment inflate --replicas=20",
        "kubectl get nodeclaims -w",
        look,
    ]
