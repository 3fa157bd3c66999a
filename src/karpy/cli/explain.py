"""`karpy explain`: one pod, one node, or one node of the plan."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final

from cyclopts import CycloptsError, Parameter
from msgspec import Struct
from msgspec.structs import replace

from karpy.cli.answers import context_answer, explanation_answer
from karpy.cli.explanations import catalog_entry, explanation_lines
from karpy.cli.findings import report_findings
from karpy.cli.hosts import explain_host, host_answer
from karpy.cli.inputs import ClusterInput, Decided, decide_cluster, read_files
from karpy.cli.launchtext import launch_lines
from karpy.cli.live import check_reach, read_live
from karpy.cli.nodeexplanations import (
    NODE_LABEL_WIDTH,
    Screen,
    node_explanation_answer,
    node_explanation_lines,
)
from karpy.cli.options import (
    ANSWERED_NO,
    DONE,
    FAILED,
    NEAREST,
    USUAL,
    ClusterAccess,
    Injected,
    Output,
    Question,
)
from karpy.cli.recorded import journal_among, recorded_node, recorded_pod
from karpy.cli.tables import few_of
from karpy.cli.terminal import Terminal
from karpy.codec.findings import note
from karpy.core.disruption.explain import explain_node, find_node, with_inferred_state
from karpy.core.explain import explain_pod, find_pods
from karpy.errors import ObjectNotFound
from karpy.model.nodes import Node
from karpy.model.verdicts import Verdict

_NODE: Final = "node"
_POD: Final = "pod"
_NAMES_SHOWN: Final = 5


class Request(Struct, frozen=True):
    """The object to explain, and the files to read."""

    name: str
    files: tuple[str, ...] = ()
    is_node: bool = False


def explain(
    name: Annotated[str, Parameter(help="A pod: NAMESPACE/NAME or NAME. Or `node` or `pod`.")],
    /,
    *files: Annotated[str, Parameter(help="After `node` or `pod` its name; then what to read.")],
    question: Question = USUAL,
    reach: ClusterAccess = NEAREST,
    output: Output = "text",
    terminal: Injected,
) -> int:
    """
    Say why a pod goes where it goes or stays pending, or why a node is still there.

    For example:

        $ karpy explain shop/checkout-7d4 cluster.yaml
        $ karpy explain node general-x7k2p
        $ karpy explain node general-x7k2p /var/lib/karpy
        $ karpy explain node general-1 cluster.yaml

    What is explained is a pod, as NAMESPACE/NAME, NAME or `pod NAME`; or a node, as `node NAME`,
    one that exists or a new one that `karpy solve` names. After it come FILES: manifests as for
    `karpy solve`, or a journal that `karpy run --journal` has written, which is asked for its last
    decision on it. Without FILES the cluster of your kubeconfig is looked at; nothing is changed.
    Exits with 3 if the pod stays pending or the node stays, and with 1 if a part of the input that
    may matter takes no part in the answer, or is not there.
    """
    request = _read(name, files)
    check_reach(reach, request.files, "explain")
    paths = journal_among(request.files)
    if request.is_node and paths:
        return _answer_recorded(request.name, paths, output, terminal)
    if paths:
        snapshot = recorded_pod(paths, request.name)
        if snapshot is None:
            raise ObjectNotFound(
                kind=_POD, name=request.name, known="none, no decision was about it"
            )
        cluster = ClusterInput(snapshot)
    elif request.files:
        cluster = read_files(request.files, question, terminal)
    else:
        cluster = read_live(reach, question, terminal)
    if request.is_node:
        decided = decide_cluster(cluster, question)
        return _explain_node(decided, request, output, terminal)
    return _explain_pod(decide_cluster(cluster, question), request.name, output, terminal)


def _read(first: str, rest: Sequence[str]) -> Request:
    """Parse `NAME FILES…`, `pod NAME FILES…` and `node NAME FILES…`, also with `pod/NAME`."""
    kind, has_kind, name = first.partition("/")
    if has_kind and kind in {_NODE, _POD}:
        return Request(name, tuple(rest), is_node=kind == _NODE)
    if first not in {_NODE, _POD}:
        return Request(first, tuple(rest))
    if not rest:
        msg = f"`karpy explain {first}` needs the name of a {first}."
        raise CycloptsError(msg=msg, command_chain=("explain",))
    return Request(rest[0], tuple(rest[1:]), is_node=first == _NODE)


def _explain_pod(decided: Decided, name: str, output: Output, terminal: Terminal) -> int:
    pods = find_pods(decided.snapshot, name)
    if len(pods) != 1:
        kind = "single pod named" if pods else _POD
        keys = [pod.key for pod in pods or decided.snapshot.pods]
        raise ObjectNotFound(kind=kind, name=name, known=_known(name, keys))
    explanation = explain_pod(decided.snapshot, decided.verdict, pods[0].key)
    if output == "json":
        terminal.answer_json({**explanation_answer(explanation), **context_answer(decided.cluster)})
    else:
        lines = explanation_lines(decided.snapshot, explanation, terminal.width)
        terminal.answer([*lines, *catalog_entry(decided.cluster)])
    return _code(is_partial=decided.is_partial, is_no=explanation.is_no)


def _explain_node(decided: Decided, request: Request, output: Output, terminal: Terminal) -> int:
    snapshot = with_inferred_state(decided.snapshot, decided.verdict)
    node = find_node(snapshot, request.name)
    if node is None:
        return _explain_launch(decided, request.name, output, terminal)
    cluster = _with_doubts(decided.cluster, request, node, terminal)
    explained = explain_node(snapshot, node.name)
    host = explain_host(snapshot, decided.verdict, node.name)
    assert host is not None
    if output == "json":
        answer = node_explanation_answer(explained)
        terminal.answer_json({**host_answer(host), **answer, **context_answer(cluster)})
    else:
        screen = Screen(terminal.width, snapshot.now, knows_gates=False)
        lines = node_explanation_lines(explained, host, screen)
        terminal.answer([*lines, *catalog_entry(cluster, NODE_LABEL_WIDTH)])
    is_partial = cluster.is_partial or bool(explained.unknown)
    return _code(is_partial=is_partial, is_no=explained.is_no)


def _with_doubts(
    cluster: ClusterInput, request: Request, node: Node, terminal: Terminal
) -> ClusterInput:
    """Add a finding if manifests hold no PodDisruptionBudget, which often blocks a disruption."""
    if not request.files or not node.claim or cluster.snapshot.budgets:
        return cluster
    message = "the input holds no PodDisruptionBudget, so that none protects a pod"
    missing = note("NO_BUDGET", message)
    report_findings([missing], terminal)
    return replace(cluster, findings=(*cluster.findings, missing))


def _explain_launch(decided: Decided, name: str, output: Output, terminal: Terminal) -> int:
    """Explain a new node of the plan."""
    host = explain_host(decided.snapshot, decided.verdict, name)
    if host is None:
        names = [launch.name for launch in decided.verdict.launches]
        names += [node.name for node in decided.snapshot.nodes]
        raise ObjectNotFound(kind=_NODE, name=name, known=_known(name, names))
    assert host.launch is not None
    if output == "json":
        terminal.answer_json({**host_answer(host), **context_answer(decided.cluster)})
    else:
        lines = launch_lines(decided.snapshot, host.launch, terminal.width)
        terminal.answer([*lines, *catalog_entry(decided.cluster)])
    return _code(is_partial=decided.is_partial)


def _answer_recorded(name: str, paths: Sequence[Path], output: Output, terminal: Terminal) -> int:
    """Explain a node by the last decision in a journal."""
    recorded = recorded_node(paths, name)
    if recorded is None:
        raise ObjectNotFound(kind=_NODE, name=name, known="none, no decision has seen it")
    snapshot = recorded.snapshot
    explained = explain_node(snapshot, name)
    host = explain_host(snapshot, Verdict(), explained.node.name)
    assert host is not None
    if output == "json":
        answer = node_explanation_answer(explained, recorded)
        terminal.answer_json(
            {**host_answer(host), **answer, **context_answer(ClusterInput(snapshot))}
        )
    else:
        screen = Screen(terminal.width, snapshot.now)
        terminal.answer(node_explanation_lines(explained, host, screen, recorded))
    return _code(is_partial=bool(explained.unknown), is_no=explained.is_no)


def _code(*, is_partial: bool, is_no: bool = False) -> int:
    if is_partial:
        return FAILED
    return ANSWERED_NO if is_no else DONE


def _known(name: str, names: Sequence[str]) -> str:
    """List the most similar names."""
    bare = {each.rpartition("/")[2]: each for each in reversed(names)}
    close = [bare[each] for each in get_close_matches(name.rpartition("/")[2], bare)]
    ranked = [*close, *(each for each in names if each not in close)]
    return few_of(ranked, _NAMES_SHOWN)
