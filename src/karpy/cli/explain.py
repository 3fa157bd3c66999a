"""`karpy explain`: one pod, or one node of the plan."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Final

from cyclopts import Parameter

from karpy.cli.answers import context_answer, explanation_answer
from karpy.cli.explanations import catalog_entry, explanation_lines
from karpy.cli.hosts import explain_host, host_answer, host_lines
from karpy.cli.inputs import Decided, decide_files
from karpy.cli.options import ANSWERED_NO, DONE, FAILED, USUAL, Injected, Output, Question
from karpy.cli.recorded import decide_recorded, journal_among
from karpy.cli.solve import Files
from karpy.cli.tables import few_of
from karpy.cli.terminal import Terminal
from karpy.core.explain import explain_pod, find_pods
from karpy.errors import ObjectNotFound

_NODE_PREFIX: Final = "node/"
_POD_PREFIX: Final = "pod/"
_NAMES_SHOWN: Final = 5


def explain(
    name: Annotated[str, Parameter(help="namespace/name or name of a pod, or node/NAME.")],
    files: Files,
    /,
    *,
    question: Question = USUAL,
    output: Output = "text",
    terminal: Injected,
) -> int:
    """
    Say why a pod goes where it goes, or why it stays pending and what would help.

    For example:

        $ karpy explain shop/checkout-7d4 cluster.yaml
        $ karpy explain node/general-1 cluster.yaml
        $ karpy explain shop/checkout-7d4 /var/lib/karpy

    A folder that `karpy run --journal` has written is asked for its last decision on a pod.
    A node is one of the input, or a new one that `karpy solve` names.
    Exits with 3 if the pod stays pending, and with 1 if a part of the input that may matter takes
    no part in the answer.
    """
    journal = journal_among(files)
    decided = None if journal is None else decide_recorded(journal, name.removeprefix(_POD_PREFIX))
    if journal is not None and decided is None:
        raise ObjectNotFound(kind="pod", name=name, known="none, no decision was about it")
    decided = decided or decide_files(files, question, terminal)
    if name.startswith(_NODE_PREFIX):
        is_no = _explain_node(decided, name.removeprefix(_NODE_PREFIX), output, terminal)
    else:
        is_no = _explain_pod(decided, name.removeprefix(_POD_PREFIX), output, terminal)
    if decided.is_partial:
        return FAILED
    return ANSWERED_NO if is_no else DONE


def _explain_pod(decided: Decided, name: str, output: Output, terminal: Terminal) -> bool:
    pods = find_pods(decided.snapshot, name)
    if len(pods) != 1:
        kind = "single pod named" if pods else "pod"
        keys = [pod.key for pod in pods or decided.snapshot.pods]
        raise ObjectNotFound(kind=kind, name=name, known=_known(name, keys))
    explanation = explain_pod(decided.snapshot, decided.verdict, pods[0].key)
    if output == "json":
        terminal.answer_json({**explanation_answer(explanation), **context_answer(decided)})
    else:
        lines = explanation_lines(decided.snapshot, explanation, terminal.width)
        terminal.answer([*lines, *catalog_entry(decided.snapshot, decided.catalog_title)])
    return explanation.is_no


def _explain_node(decided: Decided, name: str, output: Output, terminal: Terminal) -> bool:
    host = explain_host(decided.snapshot, decided.verdict, name)
    if host is None:
        names = [launch.name for launch in decided.verdict.launches]
        names += [node.name for node in decided.snapshot.nodes]
        raise ObjectNotFound(kind="node", name=name, known=_known(name, names))
    if output == "json":
        terminal.answer_json({**host_answer(host), **context_answer(decided)})
    else:
        lines = host_lines(decided.snapshot, host, terminal.width)
        terminal.answer([*lines, *catalog_entry(decided.snapshot, decided.catalog_title)])
    return False


def _known(name: str, names: Sequence[str]) -> str:
    """List the names most like the one given."""
    bare = {each.rpartition("/")[2]: each for each in reversed(names)}
    close = [bare[each] for each in get_close_matches(name.rpartition("/")[2], bare)]
    ranked = [*close, *(each for each in names if each not in close)]
    return few_of(ranked, _NAMES_SHOWN) or "none, the input holds no such object"
