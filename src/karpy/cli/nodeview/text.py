"""An overview that is printed once, as text or as JSON."""

from collections.abc import Sequence
from typing import Any, Final

from karpy.cli.nodeview.rows import (
    BAR,
    Choice,
    age_text,
    alike,
    like_it,
    node_cells,
    node_columns,
    total_parts,
    waiting_style,
    waiting_text,
)
from karpy.cli.plans import BLANK
from karpy.cli.tables import GAP, HOURS_PER_MONTH, count_of, cut, heading, labelled, table
from karpy.cli.terminal import Line, Span, Style, line
from karpy.codec.verdicts import amounts_to_dict, node_refusal_to_dict
from karpy.core.overview import NodeView, Overview, Totals, WaitingPod, total_of
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.times import write_moment

_WAITING_MAX: Final = 20
_KEY_MAX: Final = 40


def overview_lines(overview: Overview, choice: Choice, width: int) -> list[Line]:
    """Write the chosen nodes, their totals, and the pods without a node."""
    nodes = choice.of(overview.nodes)
    lines = total_parts(total_of(nodes))
    if nodes:
        rows = [node_cells(each, choice.labels, overview.now, BAR) for each in nodes]
        lines += [BLANK, *table(node_columns(choice.labels), rows)]
    if overview.waiting:
        lines += [BLANK, *_waiting_lines(overview, width)]
    return lines


def _waiting_lines(overview: Overview, width: int) -> list[Line]:
    groups = alike(overview.waiting)
    shown = groups[:_WAITING_MAX]
    lines = [heading(count_of(len(overview.waiting), "pending pod"))]
    names = [cut(first.key, _KEY_MAX) for first, *_ in shown]
    label_width = GAP + max(map(len, names)) + GAP
    for group, name in zip(shown, names, strict=True):
        oldest = min(each.created for each in group)
        text = f"{age_text(oldest, overview.now)}  {waiting_text(group[0])}"
        first, *rest = labelled("", text, width, label_width=label_width, lines_max=3)
        label = Span(f"  {name}".ljust(label_width), waiting_style(group[0]))
        lines += [line(label, *first[1:]), *rest]
        if more := like_it(group):
            lines.append(line(" " * label_width, Span(more, Style.QUIET)))
    if hidden := sum(map(len, groups[_WAITING_MAX:])):
        lines.append(line(Span(f"  and {count_of(hidden, 'more pod')}", Style.QUIET)))
    return lines


def overview_answer(overview: Overview, choice: Choice) -> dict[str, Any]:
    """Write an overview as JSON."""
    nodes = choice.of(overview.nodes)
    return {
        "now": write_moment(overview.now),
        "totals": _totals(total_of(nodes)),
        "nodes": [_node(each, choice.labels) for each in nodes],
        "pending": [_pod(each) for each in overview.waiting],
    }


def _totals(totals: Totals) -> dict[str, Any]:
    return {
        "nodes": totals.nodes,
        "byCapacityType": dict(totals.by_capacity_type),
        "pods": totals.pods,
        "dollarsPerHour": totals.price / MICROS_PER_DOLLAR,
        "dollarsPerMonth": totals.price * HOURS_PER_MONTH / MICROS_PER_DOLLAR,
        "nodesWithoutPrice": totals.unpriced,
        "allocatable": amounts_to_dict(totals.allocatable),
        "requests": amounts_to_dict(totals.requests),
    }


def _node(node: NodeView, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "name": node.name,
        "pool": node.pool,
        "instanceType": node.instance_type,
        "zone": node.zone,
        "capacityType": node.capacity_type,
        "dollarsPerHour": None if node.price is None else node.price / MICROS_PER_DOLLAR,
        "allocatable": amounts_to_dict(node.allocatable),
        "requests": amounts_to_dict(node.requests),
        "pods": list(node.pods),
        "daemons": node.daemons,
        "podsComing": node.nominated_pods,
        "virtualPods": node.buffer_pods,
        "created": None if node.created is None else write_moment(node.created),
        "state": node.state.name,
        "stateSince": None if node.since is None else write_moment(node.since),
        "disruptionReason": node.reason,
        "drifted": node.drifted,
        "isEmpty": node.is_empty,
        "emptySince": None if node.empty_since is None else write_moment(node.empty_since),
        "keptBy": None if node.blocker is None else node_refusal_to_dict(node.blocker),
        "labels": {each: node.labels.get(each) for each in labels},
    }


def _pod(pod: WaitingPod) -> dict[str, Any]:
    return {
        "pod": pod.key,
        "created": write_moment(pod.created),
        "newNode": None if pod.launch is None else pod.launch.name,
        "newNodePool": None if pod.launch is None else pod.launch.pool,
        "node": pod.node or None,
        "reason": None if pod.refusal is None else pod.refusal.reason.name,
        "sentence": waiting_text(pod),
    }
