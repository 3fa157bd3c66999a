"""`karpy solve`: the plan for the pending pods of manifests, with reasons."""

import shlex
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from karpy.cli.answers import decided_answer
from karpy.cli.inputs import decide_files
from karpy.cli.options import (
    ANSWERED_NO,
    DONE,
    FAILED,
    STDIN,
    USUAL,
    Injected,
    Output,
    Question,
)
from karpy.cli.plans import plan_lines

_FILES_SHOWN: Final = 3

Files: TypeAlias = Annotated[
    list[str],
    Parameter(
        help="Manifests (YAML or JSON), directories of them, or - for standard input.", negative=""
    ),
]


def solve(
    files: Files,
    /,
    *,
    question: Question = USUAL,
    details: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="List every pod, and every new node with its cheapest options.",
        ),
    ] = False,
    output: Output = "text",
    terminal: Injected,
) -> int:
    """
    Say which nodes would be launched for the pending pods, and why pods would stay pending.

    For example:

        $ karpy solve cluster.yaml
        $ kubectl get nodepools,pods,nodes,daemonsets -A -o yaml | karpy solve -

    Pods, nodes, NodePools and workloads are read from FILES; nothing is changed anywhere.
    Exits with 3 if a pod stays pending or would not be created, and with 1 if a part of the input
    that may matter takes no part in the answer; stderr and --output json say which.
    """
    decided = decide_files(files, question, terminal)
    if output == "json":
        terminal.answer_json(decided_answer(decided))
    else:
        lines = plan_lines(
            decided.snapshot,
            decided.verdict,
            width=terminal.width,
            again=_again(files),
            details=details,
            catalog=decided.cluster.catalog_title,
        )
        terminal.answer(lines)
    if decided.is_partial:
        return FAILED
    return ANSWERED_NO if decided.is_no else DONE


def _again(files: list[str]) -> str:
    if len(files) > _FILES_SHOWN:
        return "FILES"
    return " ".join("-" if name == STDIN else shlex.quote(name) for name in files)
