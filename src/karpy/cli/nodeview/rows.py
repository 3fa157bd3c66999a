"""The rows of nodes in an overview: selection, order and cells."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.cli.plans import why_line
from karpy.cli.tables import Align, Column, bar, count_of, cut, dollars, few_of, per_month
from karpy.cli.terminal import Line, Span, Style, line
from karpy.codec.labelselectors import ANY_LABELS, Selector
from karpy.core.overview import NodeState, NodeView, Totals, WaitingPod
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.resources import CPU, MEMORY, PODS
from karpy.model.verdicts import NodeReason, NodeRefusal

NONE: Final = "-"
BAR: Final = 8
_NAME_MAX: Final = 40
_VALUE_MAX: Final = 24
_MINUTES: Final = 60
_HOURS: Final = 3600
_DAYS: Final = 86_400
_BOTH_BELOW: Final = 10
"""Below this many days or hours the next smaller unit is shown, too."""
_STYLES: Final = {
    NodeState.DELETING: Style.BAD,
    NodeState.CHOSEN: Style.BAD,
    NodeState.REBOOTING: Style.CARE,
    NodeState.STARTING: Style.CARE,
    NodeState.NOT_READY: Style.BAD,
    NodeState.CORDONED: Style.CARE,
    NodeState.READY: Style.GOOD,
}
_KEPT_BY: Final = {
    NodeReason.DO_NOT_DISRUPT: "its annotation do-not-disrupt",
    NodeReason.POD_DO_NOT_DISRUPT: "do-not-disrupt of {}",
    NodeReason.POD_BUDGET: "PodDisruptionBudget {}",
    NodeReason.POD_BUDGETS: "several PodDisruptionBudgets, {}",
    NodeReason.POD_UNREADABLE: "pod {}, which cannot be read",
    NodeReason.POOL_MISSING: "no NodePool {}",
    NodeReason.NOMINATED: "a nominated pod",
    NodeReason.BACKING_OFF: "a pause after a failed command",
}
"""Short texts of reasons, for cells."""


class Choice(Struct, frozen=True):
    """The nodes to show, their order and their columns."""

    selector: Selector = ANY_LABELS
    pool: str = ""
    text: str = ""
    """A text that name, type, zone or NodePool must contain."""
    order: str = "name"
    is_reversed: bool = False
    labels: tuple[str, ...] = ()
    """Keys of labels that get a column."""

    def takes(self, node: NodeView) -> bool:
        """Say whether a node is shown."""
        if self.pool and node.pool != self.pool:
            return False
        words = (node.name, node.instance_type, node.zone, node.pool, node.capacity_type)
        if self.text and not any(self.text in each for each in words):
            return False
        return self.selector.matches(node.labels)

    def of(self, nodes: Iterable[NodeView]) -> list[NodeView]:
        """Return the nodes to show, in order; names decide ties."""
        kept = sorted((each for each in nodes if self.takes(each)), key=lambda each: each.name)
        return sorted(kept, key=ORDERS[self.order], reverse=self.is_reversed)


_Key = Callable[[NodeView], tuple[object, ...]]
_LAST: Final = datetime.max.replace(tzinfo=UTC)


def _fill_key(resource: str) -> _Key:
    return lambda node: (-(node.fill(resource) or 0.0),)


ORDERS: Final[dict[str, _Key]] = {
    "name": lambda node: (node.name,),
    "pool": lambda node: (node.pool,),
    "type": lambda node: (node.instance_type,),
    "zone": lambda node: (node.zone,),
    "capacity": lambda node: (node.capacity_type,),
    "price": lambda node: (-(node.price or 0),),
    "cpu": _fill_key(CPU),
    "memory": _fill_key(MEMORY),
    "pods": lambda node: (-len(node.pods),),
    "age": lambda node: (node.created or _LAST,),
    "status": lambda node: (list(NodeState).index(node.state), not node.drifted, not node.is_empty),
}
"""The orders of nodes: the fullest, most expensive, oldest or most troubled come first."""


def node_columns(labels: Sequence[str]) -> list[Column]:
    """Return the columns of the list of nodes."""
    return [
        Column("node"),
        Column("pool"),
        Column("type"),
        Column("zone"),
        Column("capacity"),
        Column("$/h", Align.RIGHT),
        Column("cpu"),
        Column("memory"),
        Column("pods", Align.RIGHT),
        Column("age", Align.RIGHT),
        *(Column(each.rpartition("/")[2] or each) for each in labels),
        Column("status"),
    ]


def node_cells(node: NodeView, labels: Sequence[str], now: datetime, cells: int) -> list[Line]:
    """Write the row of a node, with bars of the width `cells`."""
    price = "?" if node.price is None else f"{node.price / MICROS_PER_DOLLAR:,.4f}"
    room = node.allocatable.get(PODS)
    fills = [(node.fill(each), each) for each in (CPU, MEMORY)]
    return [
        line(Span(cut(node.name, _NAME_MAX), Style.NAME)),
        line(cut(node.pool, _VALUE_MAX) or NONE),
        line(node.instance_type or NONE),
        line(node.zone or NONE),
        line(node.capacity_type or NONE),
        line(price),
        *(line("?") if fill is None else bar(fill, cells) for fill, _ in fills),
        line(f"{len(node.pods)}/{room}" if room else f"{len(node.pods)}"),
        line(age_text(node.created, now)),
        *(line(cut(node.labels.get(each, ""), _VALUE_MAX) or NONE) for each in labels),
        status_text(node, now),
    ]


def status_text(node: NodeView, now: datetime) -> Line:
    """Write the state of a node, its problems, and what blocks its disruption."""
    state = node.state.value
    if node.reason:
        state += f" ({node.reason})"
    if node.since is not None:
        state += f" {age_text(node.since, now)}"
    parts = [Span(state, _STYLES[node.state])]
    if node.drifted:
        parts.append(Span(f"drifted ({node.drifted})", Style.CARE))
    if node.is_empty and node.state in {NodeState.READY, NodeState.CORDONED}:
        since = "" if node.empty_since is None else f" {age_text(node.empty_since, now)}"
        parts.append(Span(f"empty{since}", Style.CARE))
    if node.nominated_pods:
        parts.append(Span(f"{count_of(node.nominated_pods, 'pod')} coming"))
    if node.buffer_pods:
        parts.append(Span(f"room for {count_of(node.buffer_pods, 'virtual pod')}"))
    if node.blocker is not None:
        parts.append(Span(f"kept by {kept_by(node.blocker)}", Style.QUIET))
    spans = [parts[0]]
    for each in parts[1:]:
        spans += [Span(", "), each]
    return tuple(spans)


def kept_by(refusal: NodeRefusal) -> str:
    """Write briefly what blocks the disruption of a node."""
    text = _KEPT_BY.get(refusal.why)
    return refusal.why.value if text is None else text.format(refusal.detail)


def alike(waiting: Iterable[WaitingPod]) -> list[list[WaitingPod]]:
    """Group pods with the same requests and the same decision; keep their order."""
    groups: dict[tuple[str, Sequence[str]], list[WaitingPod]] = {}
    for each in waiting:
        groups.setdefault((waiting_text(each), each.asks), []).append(each)
    return list(groups.values())


def like_it(group: Sequence[WaitingPod]) -> str:
    """Write the number of pods besides the first; empty if there are none."""
    more = len(group) - 1
    return f"and {count_of(more, 'more pod')} like it" if more else ""


def waiting_text(pod: WaitingPod) -> str:
    """Write the decision about a pod without a node."""
    if pod.launch is not None:
        option = next(iter(pod.launch.options), None)
        named = "" if option is None else f", {option.instance_type} {option.capacity_type}"
        return f"a new node of NodePool {pod.launch.pool} would do{named}"
    if pod.node:
        return f"goes to node {pod.node}"
    if pod.refusal is not None:
        return why_line(pod.refusal)
    return "takes no part in provisioning, or kube-scheduler has not given up on it"


def waiting_style(pod: WaitingPod) -> Style:
    """Return the style of a pod without a node, by the decision about it."""
    if pod.refusal is not None:
        return Style.BAD
    return Style.GOOD if pod.node or pod.launch else Style.CARE


def total_parts(totals: Totals) -> list[Line]:
    """Write the totals of nodes: number, price and utilization."""
    kinds = few_of([f"{count} {kind or 'other'}" for kind, count in totals.by_capacity_type], 4)
    cost = Span(f"{dollars(totals.price)}/hour  {per_month(totals.price)}/month", Style.GOOD)
    unknown = f", price of {count_of(totals.unpriced, 'node')} not known" if totals.unpriced else ""
    return [
        line(Span("Nodes   ", Style.STRONG), f"{totals.nodes:,}{f' ({kinds})' if kinds else ''}"),
        line(Span("Cost    ", Style.STRONG), cost, unknown),
        line(
            Span("cpu     ", Style.STRONG),
            *bar(totals.fill(CPU), 20),
            f" of {totals.allocatable.get(CPU, 0) / 1000:,.1f} cores",
        ),
        line(
            Span("memory  ", Style.STRONG),
            *bar(totals.fill(MEMORY), 20),
            f" of {totals.allocatable.get(MEMORY, 0) / 2**30:,.1f} GiB",
        ),
    ]


def age_text(moment: datetime | None, now: datetime) -> str:
    """Write the time since a moment: `35s`, `12m`, `3h20m`, `6d`."""
    if moment is None:
        return NONE
    seconds = max(0, int((now - moment) / timedelta(seconds=1)))
    if seconds < _MINUTES * 2:
        return f"{seconds}s"
    if seconds < _HOURS:
        return f"{seconds // _MINUTES}m"
    if seconds < _DAYS:
        hours, minutes = divmod(seconds // _MINUTES, 60)
        return f"{hours}h{minutes}m" if hours < _BOTH_BELOW and minutes else f"{hours}h"
    days, hours = divmod(seconds // _HOURS, 24)
    return f"{days}d{hours}h" if days < _BOTH_BELOW and hours else f"{days}d"
