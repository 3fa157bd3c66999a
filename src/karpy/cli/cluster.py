"""`karpy cluster`: a Kubernetes in this process, for kubectl and every other client."""

import asyncio
import os
import signal
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import Struct

from karpy.adapters.apiserver.kubeconfigs import is_ours
from karpy.cli.examples import CLUSTER, example_documents
from karpy.cli.extras import import_embedded
from karpy.cli.options import DONE, Injected
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.errors import FileUnwritable, Unexpected

_PORT_MAX: Final = 65_535
_NODES_MAX: Final = 5_000


def cluster(
    *,
    kubeconfig: Annotated[
        Path | None,
        Parameter(
            help="Where to write the kubeconfig. [default: a temporary file]", metavar="FILE"
        ),
    ] = None,
    port: Annotated[
        int,
        Parameter(
            help="The port to listen on. [default: any that is free]",
            metavar="N",
            show_default=False,
            validator=Number(gte=0, lte=_PORT_MAX),
        ),
    ] = 0,
    token: Annotated[
        str,
        Parameter(
            help="What to come in with. [default: a secret of its own]",
            env_var="KARPY_CLUSTER_TOKEN",
            show_default=False,
            show_env_var=True,
        ),
    ] = "",
    nodes: Annotated[
        int,
        Parameter(
            help="How many nodes there are from the start.",
            metavar="N",
            validator=Number(gte=0, lte=_NODES_MAX),
        ),
    ] = 0,
    terminal: Injected,
) -> int:
    """
    Run a Kubernetes cluster that exists only in memory, until Ctrl-C.

    It has an API server, a scheduler, controllers, kubelets and a cloud, and no containers: pods
    run as soon as their node does. NodePools and the other custom resources are there. Everything
    is gone afterwards. For example:

        $ karpy cluster --kubeconfig cluster.yaml --nodes 3 &
        $ export KUBECONFIG=cluster.yaml
        $ kubectl create deployment web --image=nginx --replicas=3
        $ kubectl get pods --watch
    """
    if kubeconfig is not None and kubeconfig.exists() and not is_ours(kubeconfig):
        raise FileUnwritable(
            path=str(kubeconfig), problem="it is there already and is not one of ours"
        )
    embedded = _embedded()
    asyncio.run(
        _run(embedded, terminal, nodes, {"kubeconfig": kubeconfig, "port": port, "token": token})
    )
    return DONE


def _embedded() -> ModuleType:
    """Import what only this command needs, and not everybody has installed."""
    try:
        return import_module("karpy.wiring.embedded")
    except ImportError as error:
        raise ControlPlaneMissing(
            problem=f"the embedded one needs more than is installed: {error}",
            hint="install what it needs: pip install 'karpy[embedded]'",
        ) from error


async def _run(
    embedded: ModuleType, terminal: Terminal, nodes: int, place: dict[str, object]
) -> None:
    is_over = _interruption()

    def report(error: BaseException) -> None:
        told = Unexpected(error=error)
        terminal.tell(line(Span("error: ", Style.BAD), f"{told.message} ({told.code})"))

    async with (
        embedded.embedded_world() as world,
        embedded.serve(world, report=report, **place) as served,
    ):
        for number in range(1, nodes + 1):
            world.add_node(f"node-{number}")
        terminal.answer(_usage(served.url, served.kubeconfig))
        await is_over.wait()


def _interruption() -> asyncio.Event:
    """Return what is set once somebody wants an end, by Ctrl-C or by `kill`."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, event.set)
    return event


def _usage(url: str, kubeconfig: Path) -> list[Line]:
    return [
        line(Span("A Kubernetes cluster is up", Style.GOOD), f" at {url}"),
        line(),
        line(Span(f"  export KUBECONFIG={kubeconfig.absolute()}", Style.NAME)),
        line("  kubectl get nodes,pods,nodepools -A"),
        line(),
        line(Span(f"It runs in process {os.getpid()}; Ctrl-C ends it.", Style.QUIET)),
    ]
