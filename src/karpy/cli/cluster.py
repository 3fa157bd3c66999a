"""`karpy cluster`: a simulated cluster with an API server, for kubectl and other clients."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from karpy.adapters.apiserver.kubeconfigs import is_ours
from karpy.cli.extras import import_embedded
from karpy.cli.options import DONE, Injected
from karpy.errors import FileUnwritable, OptionInvalid

_PORT_MAX: Final = 65_535
_NODES_MAX: Final = 5_000


@Parameter(name="*")
@dataclass(frozen=True)
class Contents:
    """The content of the cluster besides Kubernetes itself."""

    nodes: Annotated[
        int,
        Parameter(
            help="How many nodes there are from the start.",
            metavar="N",
            validator=Number(gte=0, lte=_NODES_MAX),
        ),
    ] = 0
    operator: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Have the autoscaler run in it: pending pods get nodes, empty nodes go.",
        ),
    ] = False
    examples: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Apply a NodePool, the deployment inflate and a small shop, as in examples/.",
        ),
    ] = False
    log: Annotated[
        Path | None,
        Parameter(
            help="Where the autoscaler's log goes. [default: a temporary file]", metavar="FILE"
        ),
    ] = None


BARE: Final = Contents()


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
            help="The bearer token of clients. [default: a random one]",
            env_var="KARPY_CLUSTER_TOKEN",
            show_default=False,
            show_env_var=True,
        ),
    ] = "",
    contents: Contents = BARE,
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

    With the autoscaler in it, nodes come and go by themselves:

        $ karpy cluster --operator --examples --kubeconfig cluster.yaml &
        $ kubectl scale deployment inflate --replicas=20
        $ kubectl get nodeclaims --watch
    """
    _check_token(token)
    if kubeconfig is not None and kubeconfig.exists() and not is_ours(kubeconfig):
        raise FileUnwritable(
            path=str(kubeconfig), problem="it is there already and is not one of ours"
        )
    embedded = import_embedded("karpy.cli.residence")
    asyncio.run(
        embedded.run_cluster(terminal, embedded.ClusterEndpoint(kubeconfig, port, token), contents)
    )
    return DONE


def _check_token(token: str) -> None:
    """Raise OptionInvalid if a token cannot be the value of a header."""
    if token and not (token.isascii() and token.isprintable() and token.strip()):
        raise OptionInvalid(
            name="--token",
            problem="is no text that a request can carry",
            hint="write it in letters, digits and signs of ASCII, without line breaks",
        )
