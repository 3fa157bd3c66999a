"""`karpy top`: all nodes with price and utilization, and all pods without a node, live."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from karpy.cli.answers import context_answer
from karpy.cli.extras import import_viewer
from karpy.cli.inputs import ClusterInput, decide_cluster, read_files
from karpy.cli.live import check_reach, read_live_any
from karpy.cli.nodeview.rows import Choice
from karpy.cli.nodeview.sources import Source, files_source, live_source
from karpy.cli.nodeview.text import overview_answer, overview_lines
from karpy.cli.options import (
    DONE,
    FAILED,
    NEAREST,
    USUAL,
    ClusterAccess,
    Injected,
    Output,
    Question,
)
from karpy.cli.terminal import Terminal
from karpy.codec.labelselectors import read_label_selector
from karpy.core.disruption.explain import with_inferred_state
from karpy.core.overview import overview
from karpy.errors import BadRequest, OptionInvalid

_EVERY: Final = 2.0

Order = Literal[
    "name",
    "pool",
    "type",
    "zone",
    "capacity",
    "price",
    "cpu",
    "memory",
    "pods",
    "age",
    "status",
]


@Parameter(name="*")
@dataclass(frozen=True)
class Display:
    """The nodes to show, their order, and the interval of updates."""

    once: Annotated[
        bool, Parameter(help="Print the table once, as without a terminal.", negative="")
    ] = False
    selector: Annotated[
        str,
        Parameter(
            help="Show the nodes with these labels alone: `app=web,tier in (a,b),!old`.",
            alias="-l",
            metavar="LABELS",
        ),
    ] = ""
    nodepool: Annotated[
        str, Parameter(help="Show the nodes of this NodePool alone.", metavar="NAME")
    ] = ""
    sort: Annotated[Order, Parameter(help="What to sort nodes by.")] = "name"
    reverse: Annotated[bool, Parameter(help="Sort the other way round.", negative="")] = False
    label_columns: Annotated[
        str,
        Parameter(
            help="Show these labels, too: keys with commas between.", alias="-L", metavar="KEYS"
        ),
    ] = ""
    every: Annotated[
        float,
        Parameter(
            help="Show what is new after so long.", metavar="SECONDS", validator=Number(gte=0.2)
        ),
    ] = _EVERY

    def choice(self) -> Choice:
        """Return the nodes and columns to show; raise OptionInvalid for an invalid selector."""
        try:
            selector = read_label_selector(self.selector)
        except BadRequest as error:
            hint = "write labels as kubectl does: `app=web,tier in (a,b),!old`"
            raise OptionInvalid(name="--selector", problem=error.message, hint=hint) from error
        labels = tuple(each.strip() for each in self.label_columns.split(",") if each.strip())
        return Choice(selector, self.nodepool, "", self.sort, self.reverse, labels)


ALL: Final = Display()


def top(
    *files: Annotated[str, Parameter(help="Manifests, directories of them, or -.")],
    display: Display = ALL,
    question: Question = USUAL,
    reach: ClusterAccess = NEAREST,
    output: Output = "text",
    terminal: Injected,
) -> int:
    """
    Show all nodes: type, zone, price, how full, how old, what they are doing and what keeps them.

    For example:

        $ karpy top
        $ karpy top --once --sort price -L topology.kubernetes.io/region
        $ karpy top --nodepool general --output json
        $ karpy top cluster.yaml --once

    In a terminal the list stays up to date: arrows choose a node, Enter shows its pods and why it
    is still there, `p` the pods that wait and why, `s` sorts, `/` filters, `q` ends. That needs
    the extra `tui`. With --once, --output json or where no terminal is, it is printed once.
    It works on any cluster, with Karpy, with Karpenter or without both; nothing is changed. Prices
    are those of the catalog.
    """
    check_reach(reach, files, "top")
    choice = display.choice()
    is_live = output == "text" and not display.once and terminal.out.stream.isatty()
    if is_live:
        source = _source(files, question, reach, terminal)
        import_viewer("karpy.cli.nodeview.screen").show(source, choice, display.every, terminal)
        return DONE
    cluster = (
        read_files(files, question, terminal) if files else read_live_any(reach, question, terminal)
    )
    decided = decide_cluster(cluster, question)
    snapshot = with_inferred_state(decided.snapshot, decided.verdict)
    shown = overview(snapshot, decided.verdict)
    if output == "json":
        terminal.answer_json({**overview_answer(shown, choice), **context_answer(cluster)})
    else:
        terminal.answer(overview_lines(shown, choice, terminal.width))
    return FAILED if cluster.is_partial else DONE


def _source(
    files: Sequence[str], question: Question, reach: ClusterAccess, terminal: Terminal
) -> Source:
    """Return the source of the overview: manifests or a cluster."""
    if not files:
        return live_source(reach, question)
    cluster: ClusterInput = read_files(files, question, terminal)
    return files_source(cluster, question)
