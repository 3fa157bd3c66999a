"""The plan for the example web shop, with explanations; nothing is launched."""

from typing import Any

from msgspec.structs import replace

from karpy.cli.answers import decided_answer, explanation_answer, plan_answer
from karpy.cli.examples import SHOP, example_documents
from karpy.cli.explanations import explanation_lines
from karpy.cli.inputs import Decided, Sources, decide_documents
from karpy.cli.nodetable import catalog_lines, node_lines, total_lines
from karpy.cli.options import USUAL
from karpy.cli.plans import headline, join_sections, nomination_lines
from karpy.cli.tables import count_of, dollars, per_month
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.cli.workloadtable import workload_lines
from karpy.core.explain import explain_pod
from karpy.core.scheduling.decide import decide
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND
from karpy.model.requirements import one_of
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict


def write_manifests(terminal: Terminal) -> None:
    """Print the shop's manifests."""
    terminal.out.stream.write("---\n".join(text for _, text in example_documents(SHOP)))


def write_plan(terminal: Terminal, *, is_json: bool) -> None:
    """Print the plan, its price, the price without spot, and why one pod stays pending."""
    decided = decide_documents(Sources(tuple(example_documents(SHOP))), USUAL, terminal)
    on_demand = decide(on_demand_only(decided.snapshot))
    if is_json:
        terminal.answer_json(_answer(decided, on_demand))
    else:
        terminal.answer(_plan_lines(decided, on_demand, terminal.width))


def on_demand_only(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with NodePools that may only launch on-demand nodes."""
    only = one_of(CAPACITY_TYPE, ON_DEMAND)
    pools = tuple(replace(pool, requirements=(*pool.requirements, only)) for pool in snapshot.pools)
    return replace(snapshot, pools=pools)


def _plan_lines(decided: Decided, on_demand: Verdict, width: int) -> list[Line]:
    snapshot, verdict = decided.snapshot, decided.verdict
    return join_sections(
        (
            _intro_lines(snapshot),
            [*headline(verdict), *_time_lines(decided)],
            node_lines(snapshot, verdict.launches, width),
            nomination_lines(verdict.nominations, width),
            workload_lines(snapshot, verdict, width),
            [
                *total_lines(snapshot, verdict.launches),
                *catalog_lines(snapshot, decided.cluster.catalog_title),
                *_comparison_lines(verdict, on_demand),
            ],
            *_pending_sections(decided, width),
            _next_lines(verdict),
        )
    )


def _intro_lines(snapshot: Snapshot) -> list[Line]:
    pools = " and ".join(pool.name for pool in snapshot.pools)
    types = count_of(snapshot.catalog.type_count, "instance type")
    text = f"{len(snapshot.pods)} pods wait for nodes of the NodePools {pools}; {types} on sale."
    return [line(Span("A web shop moves in", Style.STRONG)), line(text)]


def _time_lines(decided: Decided) -> list[Line]:
    return [line(Span(f"decided in {decided.seconds * 1000:,.0f} ms", Style.QUIET))]


def _comparison_lines(verdict: Verdict, on_demand: Verdict) -> list[Line]:
    """Compare with the plan on on-demand nodes, if the same pods are placed there."""
    if _pending(verdict) != _pending(on_demand) or on_demand.price <= verdict.price:
        return []
    saved = on_demand.price - verdict.price
    share = round(100 * saved / on_demand.price)
    return [
        line(
            Span("Spot  ", Style.STRONG),
            f"the same pods on on-demand nodes only: {dollars(on_demand.price)} an hour;",
            f" spot saves {share}%, {per_month(saved)} a month",
        )
    ]


def _pending(verdict: Verdict) -> list[str]:
    return sorted(pod for refusal in verdict.refusals for pod in refusal.pods)


def _pending_sections(decided: Decided, width: int) -> list[list[Line]]:
    explanations = [
        explain_pod(decided.snapshot, decided.verdict, refusal.pods[0])
        for refusal in decided.verdict.refusals
    ]
    return [explanation_lines(decided.snapshot, each, width) for each in explanations]


def _next_lines(verdict: Verdict) -> list[Line]:
    placed = verdict.launches[0].pods[0] if verdict.launches else "POD"
    commands = [
        ("karpy demo --manifests > shop.yaml", "the manifests behind this"),
        (f"karpy explain {placed} shop.yaml", "why a pod goes where it goes"),
        ("karpy solve your-cluster.yaml", "the same for your own pods"),
    ]
    width = max(len(command) for command, _ in commands) + 2
    return [
        line(Span("Next", Style.STRONG)),
        *(line(f"  {command:{width}}", Span(why, Style.QUIET)) for command, why in commands),
    ]


def _answer(decided: Decided, on_demand: Verdict) -> dict[str, Any]:
    verdict = decided.verdict
    return {
        **decided_answer(decided),
        "seconds": decided.seconds,
        "onDemandOnly": plan_answer(on_demand)["summary"],
        "explanations": [
            explanation_answer(explain_pod(decided.snapshot, verdict, pod))
            for pod in _pending(verdict)
        ],
    }
