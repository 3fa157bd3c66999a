"""A verdict as text: new nodes and their price, nominations, and refusals with reasons."""

from collections.abc import Iterable, Sequence
from typing import Final

from karpy.cli.launchtext import by_pool, launch_lines
from karpy.cli.nodetable import catalog_lines, node_lines, total_lines
from karpy.cli.room import room_lines
from karpy.cli.tables import count_of, few_of, heading, labelled
from karpy.cli.terminal import Line, Span, Style, line
from karpy.core.explain import group_pools
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Constraint, Launch, Nomination, PoolNotice, Refusal, Verdict

BLANK: Final[Line] = ()
_REFUSALS_MAX: Final = 10
_NODES_MAX: Final = 20
_NAMES_MAX: Final = 4
_SHORT: Final = {
    Constraint.POOL_EMPTY: "its requirements leave no instance type, {}",
    Constraint.TAINT: "an untolerated taint, {}",
    Constraint.UNDEFINED_LABEL: "an undefined label, {}",
    Constraint.REQUIREMENT: "an unmet requirement, {}",
    Constraint.RESOURCE: "too little {}",
    Constraint.OFFERING: "nothing on sale for {}",
    Constraint.LIMIT: "a full limit, {}",
    Constraint.NODE_LIMIT: "a full node limit, {}",
    Constraint.SPREAD: "an uneven {}",
    Constraint.AFFINITY: "an unmet {}",
    Constraint.ANTI_AFFINITY: "a broken {}",
    Constraint.HOST_PORT: "a taken host port, {}",
    Constraint.VOLUME_TOPOLOGY: "volumes elsewhere, {}",
    Constraint.VOLUME_LIMIT: "no more volumes, {}",
    Constraint.MIN_VALUES: "too little variety, {}",
    Constraint.RESERVATION: "a taken reservation, {}",
}
"""Short texts for constraints with a detail; `karpy explain --output json` has the full text."""


def plan_lines(
    snapshot: Snapshot,
    verdict: Verdict,
    *,
    width: int,
    again: str,
    details: bool = False,
    catalog: str = "",
) -> list[Line]:
    """Write a whole verdict; `again` is the rest of the hint `karpy explain POD …`."""
    return join_sections(
        (
            headline(verdict, sum(pod.is_virtual for pod in snapshot.pods)),
            node_lines(snapshot, verdict.launches, width),
            detail_lines(snapshot, verdict.launches, width) if details else [],
            nomination_lines(verdict.nominations, width, details=details),
            room_lines(snapshot, verdict, width),
            [
                *total_lines(snapshot, verdict.launches),
                *(catalog_lines(snapshot, catalog) if verdict.launches else []),
            ],
            refusal_lines(verdict, width, again=again, details=details),
            notice_lines(verdict.pools, width),
        )
    )


def join_sections(sections: Iterable[Sequence[Line]]) -> list[Line]:
    """Join the sections that have lines, with an empty line between."""
    result: list[Line] = []
    for section in sections:
        if section:
            result += [BLANK, *section] if result else section
    return result


def headline(verdict: Verdict, virtual: int = 0) -> list[Line]:
    """
    Write the totals of a verdict in one line, and a timeout in another.

    Virtual pods of CapacityBuffers count as pods, and their number is added.
    """
    launched = sum(len(each.pods) for each in verdict.launches)
    nominated = sum(len(each.pods) for each in verdict.nominations)
    refused = sum(len(each.pods) for each in verdict.refusals)
    parts = []
    if verdict.launches:
        nodes = count_of(len(verdict.launches), "new node")
        parts.append(f"{nodes} for {count_of(launched, 'pod')}")
    if verdict.nominations:
        nodes = count_of(len(verdict.nominations), "node that exists", "nodes that exist")
        parts.append(f"{count_of(nominated, 'pod')} on {nodes}")
    if refused:
        parts.append(f"{count_of(refused, 'pod stays', 'pods stay')} pending")
    if parts and virtual:
        parts.append(f"{count_of(virtual, 'of the pods is', 'of the pods are')} virtual")
    text = "; ".join(parts) or "Nothing to do: no pod is pending"
    lines = [line(Span(text, Style.STRONG))]
    if not verdict.is_complete:
        lines.append(line(Span("Time ran out; this is what was decided so far.", Style.CARE)))
    return lines


def detail_lines(snapshot: Snapshot, launches: Sequence[Launch], width: int) -> list[Line]:
    """Write each new node with its pods, its requirements and its cheapest options."""
    blocks = [launch_lines(snapshot, launch, width) for launch in by_pool(launches)]
    return [each for block in blocks for each in block]


def nomination_lines(
    nominations: Sequence[Nomination], width: int, *, details: bool = False
) -> list[Line]:
    """Write the pods that are nominated to existing nodes."""
    if not nominations:
        return []
    shown = nominations if details else nominations[:_NODES_MAX]
    lines = [heading("Existing nodes")]
    label_width = 2 + max(len(each.node) for each in shown) + 2
    for each in shown:
        names = few_of(each.pods, len(each.pods) if details else _NAMES_MAX)
        text = f"{count_of(len(each.pods), 'pod')}: {names}"
        lines += labelled(f"  {each.node}", text, width, label_width=label_width, lines_max=99)
    if len(shown) < len(nominations):
        lines.append(line(f"  and {len(nominations) - len(shown):,} more nodes (--details)"))
    return lines


def refusal_lines(verdict: Verdict, width: int, *, again: str, details: bool = False) -> list[Line]:
    """Write the pods that stay pending, grouped by class, with reasons and a hint."""
    refusals = verdict.refusals
    if not refusals:
        return []
    shown = refusals if details else refusals[:_REFUSALS_MAX]
    lines = [heading("Pending")]
    for refusal in shown:
        names = few_of(refusal.pods, len(refusal.pods) if details else _NAMES_MAX)
        lines += [line("  ", Span(names, Style.BAD))]
        lines += labelled("", why_line(refusal), width, label_width=4, lines_max=3)
    if hidden := refusals[len(shown) :]:
        pods = count_of(sum(len(each.pods) for each in hidden), "more pod")
        lines.append(line(f"  and {pods} in {count_of(len(hidden), 'group')} (--details)"))
    telling = next((each for each in refusals if each.pools), refusals[0])
    command = f"karpy explain {telling.pods[0]} {again}".rstrip()
    return [*lines, line(Span("  Learn more: ", Style.QUIET), command)]


def why_line(refusal: Refusal) -> str:
    """Write in one sentence why pods were refused, with the decisive constraint by NodePool."""
    sentence = refusal.reason.value
    if refusal.detail:
        sentence += f" ({refusal.detail})"
    groups = group_pools(refusal.pools, groups_max=2)
    parts = [
        f"{_pools_text(group.pools)}: {constraint_text(group.constraint, group.details)}"
        for group in groups[:2]
    ]
    hidden = sum(len(group.pools) for group in groups[2:])
    if hidden:
        parts.append(f"{count_of(hidden, 'more NodePool')} for other reasons")
    return "; ".join([sentence, *parts])


def constraint_text(constraint: Constraint, details: Sequence[str]) -> str:
    """Write a constraint and the first of its details."""
    known = [detail for detail in details if detail]
    if not known:
        return constraint.value
    text = _SHORT.get(constraint, f"{constraint.value}: {{}}").format(known[0])
    return f"{text}; {len(known) - 1:,} more like this" if len(known) > 1 else text


def notice_lines(notices: Sequence[PoolNotice], width: int) -> list[Line]:
    """Write the NodePools that the decision has left out."""
    if not notices:
        return []
    lines = [heading("NodePools that took no part")]
    label_width = 4 + max(len(each.pool) for each in notices)
    for each in notices:
        about = each.why.detail if each.why.detail != each.pool else ""
        text = constraint_text(each.why.constraint, (about,))
        lines += labelled(f"  {each.pool}", text, width, label_width=label_width)
    return lines


def _pools_text(pools: Sequence[str]) -> str:
    return f"NodePool {pools[0]}" if len(pools) == 1 else f"{len(pools)} NodePools"
