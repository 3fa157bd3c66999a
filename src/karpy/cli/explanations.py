"""The explanation of a pod as text; a refusal takes at most 14 lines of 100 columns."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from karpy.cli.inputs import ClusterInput
from karpy.cli.launchtext import narrowed_text, where_text
from karpy.cli.plans import BLANK, constraint_text
from karpy.cli.tables import count_of, cut, dollars, few_of, labelled
from karpy.cli.terminal import Line, Span, Style, line
from karpy.core.explain import GROUPS_MAX, Explanation, Fix, PodOutcome, PoolGroup
from karpy.model.nodes import Node
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Constraint, Exclusion, Launch, PoolRefusal, Refusal

_LABEL_WIDTH: Final = 11
_POOLS_SHOWN: Final = 3
_PODS_SHOWN: Final = 5
_TYPES_SHOWN: Final = 3
_EXCLUSIONS_MAX: Final = 3
_NODE_REASONS_MAX: Final = 3
_FIX_LINES: Final = 2
_DETAIL_LINES: Final = 3
"""Lines for a detail that does not fit into the headline."""
_OTHER_REASONS: Final = "other reasons; --output json lists them"

_Row: TypeAlias = tuple[int, Constraint, tuple[str, ...]]

_STYLES: Final = {
    PodOutcome.NEW_NODE: Style.GOOD,
    PodOutcome.EXISTING_NODE: Style.GOOD,
    PodOutcome.REFUSED: Style.BAD,
    PodOutcome.RUNNING: Style.PLAIN,
    PodOutcome.NOT_CONSIDERED: Style.CARE,
}


def explanation_lines(snapshot: Snapshot, explanation: Explanation, width: int) -> list[Line]:
    """Write where a pod is placed and the alternatives, or why it stays pending and the fixes."""
    lines = [_headline(explanation, width), BLANK]
    if explanation.buffer:
        text = f"a virtual pod: CapacityBuffer {explanation.buffer} keeps room for pods like it"
        lines += _entry("what", text, width, 1)
    if explanation.asks:
        lines_max = 1 if explanation.is_no else 3
        lines += _entry("asks for", "; ".join(explanation.asks), width, lines_max)
    if explanation.launch is not None:
        lines += _launch_lines(snapshot, explanation, explanation.launch, width)
    if explanation.node is not None:
        lines += _node_lines(explanation, explanation.node, width)
    if explanation.refusal is not None:
        lines += _refusal_lines(explanation, width)
    return lines


def catalog_entry(cluster: ClusterInput, label_width: int = _LABEL_WIDTH) -> list[Line]:
    """Write the name of the catalog, if it has one."""
    if not cluster.catalog:
        return []
    types = count_of(cluster.snapshot.catalog.type_count, "instance type")
    return [
        line(Span("catalog".ljust(label_width), Style.QUIET), f"{cluster.catalog_title}, {types}")
    ]


def _headline(explanation: Explanation, width: int) -> Line:
    sentence = _first_cause(explanation) or explanation.sentence
    text = cut(sentence, max(0, width - len(explanation.pod) - 1))
    return line(Span(explanation.pod, Style.STRONG), " ", Span(text, _STYLES[explanation.outcome]))


def _first_cause(explanation: Explanation) -> str:
    """Write the constraint whose change would help most; empty if there is none."""
    if explanation.refusal is None or not explanation.groups or not explanation.fixes:
        return ""
    groups = explanation.groups
    pools = sum(len(each.pools) for each in groups)
    if len(groups) == 1:
        where = f"NodePool {groups[0].pools[0]}" if pools == 1 else f"each of {pools:,} NodePools"
        why = constraint_text(groups[0].constraint, groups[0].details)
        return f"stays pending ({where}): {why}"
    helped = explanation.fixes[0].pools
    near = next((each for each in groups if {*each.pools} & {*helped}), groups[0])
    pool = next((each for each in near.pools if each in helped), near.pools[0])
    why = constraint_text(near.constraint, near.details[:1])
    return f"stays pending (NodePool {pool}, nearest of {pools:,}): {why}"


def _launch_lines(
    snapshot: Snapshot, explanation: Explanation, launch: Launch, width: int
) -> list[Line]:
    first, *rest = launch.options
    where = f"{first.zone}, " if first.zone else ""
    cheapest = (
        f"{first.instance_type}, {where}{first.capacity_type}, {dollars(first.price)} an hour"
    )
    others = [name for name in launch.pods if name != explanation.pod]
    also = "no other instance type"
    if rest:
        names = few_of([each.instance_type for each in rest], _TYPES_SHOWN)
        count = count_of(len(rest), "instance type")
        also = f"{count} up to {dollars(rest[-1].price)} an hour: {names}"
    needs = narrowed_text(snapshot, launch) or "nothing beyond the NodePool"
    return [
        *_entry("where", where_text(launch), width, 1),
        *_entry("cheapest", cheapest, width, 1),
        *_entry("also fits", also, width, 2),
        *_entry("pods need", needs, width, 2),
        *_entry("shared by", few_of(others, _PODS_SHOWN) or "no other pod", width, 2),
    ]


def _node_lines(explanation: Explanation, node: Node, width: int) -> list[Line]:
    pool = f"NodePool {node.pool}" if node.pool else "no NodePool"
    state = "initialized" if node.is_initialized else "on its way"
    lines = _entry("node", f"{node.name}, {pool}, {state}", width, 1)
    if explanation.nomination is not None:
        others = [name for name in explanation.nomination.pods if name != explanation.pod]
        lines += _entry("along with", few_of(others, _PODS_SHOWN) or "no other pod", width, 2)
    return lines


def _refusal_lines(explanation: Explanation, width: int) -> list[Line]:
    refusal = explanation.refusal
    assert refusal is not None
    lines: list[Line] = []
    if (
        refusal.detail
        and not explanation.groups
        and len(explanation.pod) + 1 + len(explanation.sentence) > width
    ):
        lines += _entry("in detail", refusal.detail, width, _DETAIL_LINES)
    lines += _group_lines(explanation.groups, len(refusal.pools), width)
    lines += _exclusion_lines(explanation, refusal, width)
    if refusal.nodes:
        lines += _entry("nodes", _nodes_text(refusal.nodes), width, 1)
    if explanation.nearest is not None:
        pool, miss = explanation.nearest.pool, explanation.nearest.miss
        text = f"{miss.instance_type} of {pool} fails on {'; '.join(dict.fromkeys(miss.lacks))}"
        lines += _entry("nearest", text, width, 1)
    return lines + _fix_lines(explanation.fixes, width)


def _group_lines(groups: Sequence[PoolGroup], pools: int, width: int) -> list[Line]:
    """Write a row for each decisive constraint; the last row stands for those that do not fit."""
    rows = groups if len(groups) <= GROUPS_MAX else groups[: GROUPS_MAX - 1]
    lines: list[Line] = []
    for group in rows:
        only = "only " if group.is_single else ""
        why = f"{only}{constraint_text(group.constraint, group.details)}"
        label = "" if lines else "NodePools"
        lines.append(_counted(label, (len(group.pools), pools), why, group.pools, width=width))
    if hidden := groups[len(rows) :]:
        left = sum(len(group.pools) for group in hidden)
        lines.append(_counted("", (left, pools), _OTHER_REASONS, width=width))
    return lines


def _exclusion_lines(explanation: Explanation, refusal: Refusal, width: int) -> list[Line]:
    """Write the exclusions of most options; merge those of one constraint if they are too many."""
    rows: list[_Row] = [
        (each.count, each.constraint, (each.detail,)) for each in explanation.exclusions
    ]
    if len(rows) > _EXCLUSIONS_MAX:
        rows = _by_constraint(refusal.pools)
    return [
        _counted(
            "" if place else "ruled out",
            (count, explanation.types),
            constraint_text(constraint, details),
            width=width,
        )
        for place, (count, constraint, details) in enumerate(rows[:_EXCLUSIONS_MAX])
    ]


def _by_constraint(pools: Sequence[PoolRefusal]) -> list[_Row]:
    """Merge by constraint; of several details in a NodePool the worst counts."""
    counts: dict[Constraint, int] = {}
    details: dict[Constraint, dict[str, None]] = {}
    for pool in pools:
        worst: dict[Constraint, int] = {}
        for each in pool.exclusions or (pool.decisive,):
            worst[each.constraint] = max(worst.get(each.constraint, 0), each.count)
            details.setdefault(each.constraint, {})[each.detail] = None
        for constraint, count in worst.items():
            counts[constraint] = counts.get(constraint, 0) + count
    rows = [(count, each, tuple(details[each])) for each, count in counts.items()]
    return sorted(rows, key=lambda row: (-row[0], row[1].name))


def _fix_lines(fixes: Sequence[Fix], width: int) -> list[Line]:
    """Write the smallest fix, and the next if it also suffices and fits."""
    if not fixes:
        return []
    first = _entry("try", _fix_text(fixes[0]), width, _FIX_LINES)
    others = [fix for fix in fixes[1:] if fix.is_enough]
    if len(first) == _FIX_LINES or not others:
        return first
    return first + _entry("or", others[0].text, width, 1)


def _fix_text(fix: Fix) -> str:
    return f"{fix.text}{' (enough on its own)' if fix.is_enough else ''}"


def _nodes_text(nodes: Sequence[Exclusion]) -> str:
    total = sum(each.count for each in nodes)
    reasons = [
        f"{each.count:,} {constraint_text(each.constraint, (each.detail,))}" for each in nodes
    ]
    return f"{total:,} said no: {few_of(reasons, _NODE_REASONS_MAX)}"


def _counted(
    label: str, share: tuple[int, int], text: str, names: Sequence[str] = (), *, width: int
) -> Line:
    """Write `n of m`, a text about these, and as many of their names as fit."""
    part, whole = share
    count = f"{part:,} of {whole:,}".rjust(2 * len(f"{whole:,}") + len(" of "))
    room = width - _LABEL_WIDTH - len(count) - 2
    shown = cut(text, room)
    asides = (f"  ({few_of(names, number)})" for number in range(_POOLS_SHOWN, 0, -1) if names)
    aside = next((each for each in asides if len(shown) + len(each) <= room), "")
    return line(
        Span(label.ljust(_LABEL_WIDTH), Style.QUIET),
        f"{count}  {shown}",
        Span(aside, Style.QUIET),
    )


def _entry(label: str, text: str, width: int, lines_max: int) -> list[Line]:
    return labelled(label, text, width, label_width=_LABEL_WIDTH, lines_max=lines_max)
