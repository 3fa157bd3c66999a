"""The program: its commands, exit codes and error messages."""

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from traceback import format_exception
from types import TracebackType
from typing import IO, Any, Final

from cyclopts import App, CycloptsError

from karpy.cli.options import DONE, FAILED, INTERRUPTED, MISUSED, PIPE_CLOSED, STDIN
from karpy.cli.terminal import Span, Style, Terminal, line
from karpy.errors import KarpyError, NotText, SystemRefused, Unexpected

_NO_COLOUR: Final = "--no-color"
_COMMANDS: Final = {
    "demo": "karpy.cli.demo",
    "run": "karpy.cli.run",
    "solve": "karpy.cli.solve",
    "explain": "karpy.cli.explain",
    "budgets": "karpy.cli.budgets",
    "doctor": "karpy.cli.doctor",
    "top": "karpy.cli.top",
    "convert": "karpy.cli.convert",
    "replay": "karpy.cli.replay",
    "crds": "karpy.cli.crds",
    "instances": "karpy.cli.instances",
    "errors": "karpy.cli.codes",
    "bench": "karpy.cli.bench",
    "workload": "karpy.cli.workload",
    "aws": "karpy.cli.aws",
    "cluster": "karpy.cli.cluster",
    "controlplane": "karpy.cli.controlplane",
    "completion": "karpy.cli.completion",
}
"""The module of each command; only the module of the given command is imported."""

_HELP: Final = """\
Decide which nodes a Kubernetes cluster needs, and say why.

Karpy is a node autoscaler and a drop-in for Karpenter. `solve` and `explain` need no cluster: they
read manifests, ask the same solver the autoscaler runs, and change nothing.

    karpy demo                               watch nodes come and go, in a cluster in memory
    karpy run                                the autoscaler, for the cluster of your kubeconfig
    karpy solve cluster.yaml                 what would be launched, and what it costs
    karpy explain shop/web-7d4 cluster.yaml  why this pod goes there, or stays pending
    karpy explain node general-x7k2p         why this node is still there
    karpy top                                every node: price, how full, what keeps it; live
    karpy budgets general cluster.yaml       when how many nodes of a NodePool may go
    karpy doctor                             what is wrong in this cluster, and what to do
    kubectl get nodepools,pods,nodes,daemonsets -A -o yaml | karpy solve -
    karpy instances --vcpus 4 --arch arm64   which machines there are, and what they cost
    karpy cluster --operator                 the same cluster, kept running for kubectl
    karpy controlplane up                    a real Kubernetes control plane to play with"""

_EPILOGUE: Final = """\
Everywhere: --no-color (or NO_COLOR=1) leaves out colour; answers go to stdout, the rest to stderr.

Exit codes: 0 done, 1 failed, 2 misuse, 3 the answer is no (a pod stays pending, a node stays)."""


def main() -> None:
    """Run the program on the arguments and streams of this process, and end it."""
    words = sys.argv[1:]
    terminal = Terminal.of_process(os.environ, no_colour=_NO_COLOUR in words)
    code = execute(words, terminal, is_debugging=bool(os.environ.get("KARPY_DEBUG")))
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    sys.exit(code)


def _flush(stream: IO[str] | None) -> None:
    """Flush a stream, so that the interpreter's flush at exit cannot fail with a message."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def execute(words: Sequence[str], terminal: Terminal, *, is_debugging: bool = False) -> int:
    """Run one command; return its exit code."""
    with _ErrorExit(terminal, is_debugging=is_debugging, wants_json=_wants_json(words)) as outcome:
        outcome.code = _dispatch(words, terminal)
    return outcome.code


class _ErrorExit(AbstractContextManager["_ErrorExit"]):
    """Turns each exception of a command into a message and an exit code."""

    def __init__(self, terminal: Terminal, *, is_debugging: bool, wants_json: bool) -> None:
        self.code = FAILED
        self._wants_json = wants_json
        self._terminal = terminal
        self._is_debugging = is_debugging

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        match error:
            case None | SystemExit():
                return False
            case KeyboardInterrupt():
                self.code = INTERRUPTED
            case BrokenPipeError():
                self.code = PIPE_CLOSED
            case CycloptsError():
                self.code = MISUSED
                chain = " ".join(("karpy", *(error.command_chain or ())))
                self._report(str(error).strip(), f"see `{chain} --help`")
            case KarpyError():
                self._report_error(error)
            case OSError():
                self._report_error(SystemRefused(error=error))
            case UnicodeEncodeError():
                self._report_error(NotText(error=error))
            case _:
                if self._is_debugging:
                    parts = "".join(format_exception(kind, error, trace))
                    self._terminal.report(*(line(part) for part in parts.splitlines()))
                self._report_error(Unexpected(error=error))
        return True

    def _report_error(self, error: KarpyError) -> None:
        self._report(error.message, error.hint, error.code)

    def _report(self, message: str, hint: str, code: str = "") -> None:
        if self._wants_json and not self._terminal.out.has_written:
            about = {"code": code, "message": message, "hint": hint}
            with suppress(OSError, ValueError):
                self._terminal.answer_json({"error": about})
        first, *rest = (f"{message} ({code})" if code else message).splitlines() or [""]
        # If stderr is full or closed, only the exit code reports the error.
        with suppress(OSError, ValueError):
            self._terminal.report(
                line(Span("error: ", Style.BAD), first),
                *(line(f"  {each}") for each in rest),
                (),
                line(Span("hint: ", Style.CARE), hint),
            )


def _wants_json(words: Sequence[str]) -> bool:
    """Say whether the answer is JSON; the arguments may be invalid, so they are not parsed."""
    return "--output=json" in words or ("--output", "json") in pairwise(words)


def _dispatch(words: Sequence[str], terminal: Terminal) -> int:
    plain = [STDIN if word == "-" else word for word in words if word != _NO_COLOUR]
    out, err = terminal.out.console(terminal.width), terminal.err.console(terminal.width)
    command, bound, injected = _app(plain).parse_args(
        plain, console=out, error_console=err, exit_on_error=False, print_error=False
    )
    given: dict[str, Any] = {"terminal": terminal} if "terminal" in injected else {}
    code = command(*bound.args, **bound.kwargs, **given)
    return code if isinstance(code, int) else DONE


def whole_app() -> App:
    """Return the program with all its commands."""
    return _app(())


def _version() -> str:
    """Return the text of `--version`; import its module only here, since it is slow."""
    text: str = import_module("karpy.cli.versions").version_text()
    return text


def _app(words: Sequence[str]) -> App:
    app = App(
        name="karpy",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        help_format="plaintext",
        version=_version,
    )
    first = next((word for word in words if not word.startswith("-")), "")
    for name, module in _COMMANDS.items():
        if (first == name or first not in _COMMANDS) and find_spec(module) is not None:
            app.command(getattr(import_module(module), name), name=name)
    return app
