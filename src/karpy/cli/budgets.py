"""`karpy budgets`: how many nodes of a NodePool may be disrupted, hour by hour for a week."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from karpy.cli.agendas import Agenda, agenda_answer, agenda_lines
from karpy.cli.findings import findings_answer, report_findings
from karpy.cli.inputs import ClusterInput, read_files_without_catalog
from karpy.cli.live import check_reach, read_live_without_catalog
from karpy.cli.options import (
    ANSWERED_NO,
    DONE,
    FAILED,
    NEAREST,
    ClusterAccess,
    Injected,
    Output,
    Question,
    moment,
)
from karpy.cli.tables import few_of
from karpy.cli.terminal import Terminal
from karpy.cli.timezones import Zone, find_zone
from karpy.codec.findings import Finding, of_problem
from karpy.core.disruption.budgets import WEEK, find_allowances, find_budget_faults, find_spans
from karpy.core.disruption.evaluation import Evaluation
from karpy.errors import ManifestInvalid, ObjectNotFound, OptionInvalid
from karpy.model.pools import DisruptionReason, NodePool
from karpy.model.snapshot import Snapshot

_NODES_MAX: Final = 1_000_000
_NAMES_SHOWN: Final = 5


@Parameter(name="*")
@dataclass(frozen=True)
class Week:
    """The week to show, the number of nodes and the time zone."""

    nodes: Annotated[
        int | None,
        Parameter(
            help="How many nodes it has. [default: as many as the input holds]",
            metavar="N",
            validator=Number(gte=1, lte=_NODES_MAX),
        ),
    ] = None
    timezone: Annotated[
        str | None,
        Parameter(help="Whose clock to show beside UTC. [default: this machine's]", metavar="NAME"),
    ] = None
    now: Annotated[
        datetime | None,
        Parameter(
            help="When the week begins (ISO 8601). [default: now]",
            metavar="TIME",
            converter=moment,
        ),
    ] = None


THIS_WEEK: Final = Week()


def budgets(
    nodepool: Annotated[str, Parameter(help="Name of a NodePool.")],
    /,
    *files: Annotated[str, Parameter(help="Manifests, directories of them, or -.")],
    week: Week = THIS_WEEK,
    reach: ClusterAccess = NEAREST,
    output: Output = "text",
    terminal: Injected,
) -> int:
    """
    Say when how many nodes of a NodePool may be disrupted in the next week, reason by reason.

    For example:

        $ karpy budgets general nodepools.yaml --nodes 40 --timezone Europe/Berlin
        $ karpy budgets general

    Nodes are counted in FILES, which need both Nodes and NodeClaims for that. Without FILES the
    cluster of your kubeconfig is looked at; nothing is changed. A budget that cannot be read is an
    error: with it no node of the NodePool may go.
    Exits with 3 if no node may go at any time of the week, for any reason.
    """
    check_reach(reach, files, "budgets")
    zone = find_zone(week.timezone)
    cluster = _read(files, reach, Question(now=week.now), terminal)
    chosen = _find_pool(cluster, nodepool)
    faults = () if chosen is None else tuple(_faults(chosen))
    report_findings((*cluster.findings, *faults), terminal)
    findings = findings_answer((*cluster.findings, *faults))
    if chosen is None or faults:
        if output == "json":
            terminal.answer_json({"nodePool": nodepool, "findings": findings})
        return FAILED
    agenda = _agenda(cluster.snapshot, chosen, week.nodes, zone)
    if output == "json":
        terminal.answer_json({**agenda_answer(agenda), "findings": findings})
    else:
        terminal.answer(agenda_lines(agenda, terminal.width))
    if cluster.is_partial:
        return FAILED
    return DONE if agenda.allows_any else ANSWERED_NO


def _read(
    files: Sequence[str], reach: ClusterAccess, question: Question, terminal: Terminal
) -> ClusterInput:
    """Read manifests or a cluster, without a catalog."""
    if not files:
        return read_live_without_catalog(reach, question)
    return read_files_without_catalog(files, question, terminal.stdin)


def _find_pool(cluster: ClusterInput, name: str) -> NodePool | None:
    """Return a NodePool, or None if it is unreadable, which the findings explain."""
    pools = {each.name: each for each in cluster.snapshot.pools}
    if name in pools:
        return pools[name]
    if any(each.object == f"NodePool {name}" for each in cluster.findings):
        return None
    close = get_close_matches(name, pools)
    ranked = [*close, *(each for each in sorted(pools) if each not in close)]
    raise ObjectNotFound(kind="NodePool", name=name, known=few_of(ranked, _NAMES_SHOWN))


def _faults(pool: NodePool) -> Iterator[Finding]:
    """Yield the errors in the budgets of a NodePool."""
    for each in find_budget_faults(pool.policy):
        path = f"spec.disruption.budgets[{each.place}].{each.field}"
        where = f"NodePool {pool.name}"
        yield of_problem(
            ManifestInvalid(where=where, path=path, problem=each.problem, hint=each.hint)
        )


def _agenda(snapshot: Snapshot, pool: NodePool, node_count: int | None, zone: Zone) -> Agenda:
    evaluation, now = Evaluation(snapshot), snapshot.now
    counted = {
        reason: find_allowances(evaluation, reason).by_pool[pool.name]
        for reason in DisruptionReason
    }
    nodes = counted[DisruptionReason.EMPTY].nodes if node_count is None else node_count
    if not nodes:
        raise OptionInvalid(
            name="--nodes",
            problem=f"is needed: the input holds no node of NodePool {pool.name}",
            hint="write --nodes 10, or add its Nodes and NodeClaims to the input",
        )
    spans = {
        reason: find_spans(pool.policy, reason, nodes, now, now + WEEK)
        for reason in DisruptionReason
    }
    taken = {} if node_count is not None else {key: each.consumed for key, each in counted.items()}
    return Agenda(pool.name, pool.policy, nodes, spans, taken, zone)
