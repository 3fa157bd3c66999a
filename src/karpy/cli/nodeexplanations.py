"""The explanation of a node: as text on one screen, as JSON in full."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from karpy.cli.hosts import ExplainedHost, room_text
from karpy.cli.plans import BLANK
from karpy.cli.recorded import RecordedNode, RecordedVerdict
from karpy.cli.tables import count_of, cut, dollars, few_of, labelled
from karpy.cli.terminal import Line, Span, Style, line
from karpy.codec.verdicts import command_to_dict, node_refusal_to_dict, option_to_dict
from karpy.core.disruption.budgets import UNLIMITED, Allowance
from karpy.core.disruption.consolidation import SINGLE_NODE
from karpy.core.disruption.explain import (
    DRIFT,
    EMPTINESS,
    MULTI_NODE,
    REPAIR,
    STATIC_DRIFT,
    Attempt,
    NodeExplanation,
    NodeOutcome,
    Outlook,
    Way,
)
from karpy.core.disruption.lifts import ClusterChange
from karpy.core.lifecycle.conditions import DRIFTED
from karpy.model.commands import Command
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.model.pools import DisruptionReason
from karpy.model.times import write_moment
from karpy.model.verdicts import NodeReason, NodeRefusal

NODE_LABEL_WIDTH: Final = 14
_PODS_SHOWN: Final = 3
_CHANGES_SHOWN: Final = 4
_LABELS: Final = {
    REPAIR: "repair",
    EMPTINESS: "emptiness",
    STATIC_DRIFT: "static drift",
    DRIFT: "drift",
    MULTI_NODE: "multi-node",
    SINGLE_NODE: "single-node",
}
_STYLES: Final = {
    NodeOutcome.GOES: Style.GOOD,
    NodeOutcome.WAITS: Style.CARE,
    NodeOutcome.GOING: Style.CARE,
    NodeOutcome.STAYS: Style.BAD,
}
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_DETAILED: Final = frozenset(
    {
        NodeReason.POD_BUDGET,
        NodeReason.POD_BUDGETS,
        NodeReason.ROLLOUT,
        NodeReason.TYPE_UNKNOWN,
        NodeReason.LABEL_MISSING,
        NodeReason.BUFFER_PODS,
        NodeReason.UNREADABLE,
        NodeReason.POD_UNREADABLE,
        NodeReason.POOL_MISSING,
        NodeReason.PODS_UNPLACED,
        NodeReason.NO_REPLACEMENT,
        NodeReason.CHANGED,
    }
)
"""Reasons whose detail says more than their pods and prices."""


class Screen(Struct, frozen=True):
    """The width of lines, the time of the answer, and whether the feature gates are known."""

    width: int
    now: datetime
    knows_gates: bool = True
    """Whether the feature gates in the answer are the operator's."""


def node_explanation_lines(
    explained: NodeExplanation,
    host: ExplainedHost,
    screen: Screen,
    recorded: RecordedNode | None = None,
) -> list[Line]:
    """Write why a node is still there, and after which changes it would be disrupted."""
    width, now = screen.width, screen.now
    lines = [*_headline(explained, width), BLANK]
    lines += _entry("node", _node_text(explained, now), width, 2)
    lines += _entry("pods", _pods_text(explained), width, 2)
    lines += _entry("requested", room_text(host), width, 1)
    if explained.node.taints:
        taints = [str(each) for each in explained.node.taints]
        lines += _entry("taints", few_of(taints, _PODS_SHOWN), width, 1)
    if host.coming:
        lines += _entry("will get", few_of(host.coming, _PODS_SHOWN), width, 1)
    for label, text in _attempt_rows(explained, now):
        lines += _entry(label, text, width, 3)
    if explained.outlook is not None:
        lines += _entry("without it", _outlook_text(explained.outlook), width, 2)
    for place, (reason, allowance) in enumerate(explained.allowances):
        text = f"{reason.value}: {_allowance_text(allowance)}"
        lines += _entry("" if place else "budgets", text, width, 1)
    lines += _way_lines(explained, screen)
    for each in explained.unknown:
        lines += _entry("not seen", each, width, 2)
    if recorded is not None:
        lines += _entry("recorded", _recorded_text(recorded), width, 2)
    return lines


def _headline(explained: NodeExplanation, width: int) -> list[Line]:
    """Write name and outcome on one line, or on two if one is too long."""
    name, text = explained.node.name, explained.sentence
    first, outcome = Span(name, Style.STRONG), Span(cut(text, width), _STYLES[explained.outcome])
    if len(name) + 1 + len(text) <= width:
        return [line(first, " ", outcome)]
    return [line(first), line(outcome)]


def _node_text(explained: NodeExplanation, now: datetime) -> str:
    node = explained.node
    parts = [f"NodePool {node.pool}" if node.pool else "no NodePool"]
    parts += [
        each for key in (INSTANCE_TYPE, CAPACITY_TYPE, ZONE) if (each := node.labels.get(key))
    ]
    parts.append(f"{dollars(explained.price)} an hour" if explained.price else "price not known")
    record = node.node_record or node.claim_record
    if record is not None and record.meta.created is not None:
        parts.append(f"{_span(now - record.meta.created)} old")
    if node.claim and node.claim != node.name:
        parts.append(f"NodeClaim {node.claim}")
    drifted = None if node.claim_record is None else node.claim_record.conditions.get(DRIFTED)
    if drifted is not None and drifted.is_true:
        parts.append(f"drifted since {_clock(drifted.changed)} ({drifted.reason})")
    return ", ".join(parts)


def _pods_text(explained: NodeExplanation) -> str:
    count = len(explained.pods)
    daemons = count_of(explained.daemons, "daemon") if explained.daemons else "no daemon"
    if not count:
        return f"none needs another node, {daemons}"
    need = "needs" if count == 1 else "need"
    return f"{count} {need} another node, {daemons}: {few_of(explained.pods, _PODS_SHOWN)}"


def _attempt_rows(explained: NodeExplanation, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a row for each disruption method; a refusal by all methods is one row."""
    texts = {each.method: _attempt_text(each, explained, now) for each in explained.attempts}
    rows = {method: text for method, text in texts.items() if text}
    if len(rows) > 1 and len(set(rows.values())) == 1:
        yield "every method", next(iter(rows.values()))
        return
    if rows.get(MULTI_NODE) == rows.get(SINGLE_NODE):
        rows.pop(SINGLE_NODE, None)
    labels: dict[str, str] = {}
    for method, text in rows.items():
        is_both = method == MULTI_NODE and SINGLE_NODE not in rows
        label = "consolidation" if is_both else _LABELS[method]
        yield label, f"as for {labels[text]}" if text in labels else text
        labels.setdefault(text, label)


def _attempt_text(attempt: Attempt, explained: NodeExplanation, now: datetime) -> str:
    if attempt.command is not None:
        return _command_text(attempt.command)
    ways = {each.method: each for each in explained.ways}
    if attempt.refusal is not None:
        way = ways.get(attempt.method)
        alone = None if way is None or way.first is None else _refusal_text(way.first, now)
        if attempt.refusal.why is NodeReason.NOT_CONSIDERED and alone is not None:
            return f"{_refusal_text(attempt.refusal, now)}; without that: {alone}"
        return alone or _refusal_text(attempt.refusal, now)
    if attempt.method == MULTI_NODE and SINGLE_NODE in ways:
        return "no set of nodes that can go together has it"
    return ""


def _refusal_text(refusal: NodeRefusal, now: datetime) -> str:
    text = refusal.why.value
    aside = refusal.detail if refusal.why in _DETAILED else ""
    if refusal.why in {NodeReason.POD_BUDGET, NodeReason.POD_BUDGETS}:
        aside = f"{', '.join(refusal.detail.split())} covers {few_of(refusal.pods, _PODS_SHOWN)}"
    elif refusal.pods and refusal.why is not NodeReason.NOT_EMPTY and not aside:
        aside = few_of(refusal.pods, _PODS_SHOWN)
    if aside:
        text += f" ({aside})"
    if refusal.score is not None:
        text += f"; score {float(refusal.score):.2f}, at least 0.50 is approved"
    if refusal.until is not None and refusal.until > now:
        text += f"; until {_moment(refusal.until, now)}"
    return text


def _command_text(command: Command) -> str:
    others = len(command.nodes) - 1
    with_ = f" together with {count_of(others, 'other node')}" if others else ""
    done = "rebooted" if command.is_reboot else "deleted"
    if command.replacements:
        option = next(iter(command.replacements[0].launch.options), None)
        named = "" if option is None else f" by {option.instance_type}, {option.capacity_type}"
        done = f"replaced{named}"
    saved = command.savings
    money = ""
    if saved > 0:
        money = f"; saves {dollars(saved)} an hour"
    elif saved < 0:
        money = f"; costs {dollars(-saved)} an hour more"
    return f"it is {done}{with_}{money}"


def _outlook_text(outlook: Outlook) -> str:
    """Write where the pods would go without the node, and the savings."""
    if outlook.unplaced:
        return f"no place at any price for {outlook.unplaced[0]}"
    option, there = outlook.replacement, count_of(len(outlook.nodes), "other node")
    money = _money_text(outlook.saving)
    if not outlook.new_nodes:
        return f"{money}: its pods have room on {there}"
    others = f"; some pods have room on {there}" if outlook.nodes else ""
    if option is None:
        return f"{money}: its pods would take {count_of(outlook.new_nodes, 'new node')}{others}"
    named = ", ".join(
        each for each in (option.instance_type, option.capacity_type, option.zone) if each
    )
    return f"{money}: best replacement {dollars(option.price)} an hour, {named}{others}"


def _money_text(saving: int | None) -> str:
    if saving is None:
        return "saving not known"
    if saving < 0:
        return f"costs {dollars(-saving)} an hour more"
    return f"saves {dollars(saving)} an hour" if saving else "saves nothing"


def _allowance_text(allowance: Allowance) -> str:
    if allowance.allowed == UNLIMITED and not allowance.faults:
        return f"all of {count_of(allowance.nodes, 'node')} allowed, {allowance.consumed} taken"
    return str(allowance)


def _way_lines(explained: NodeExplanation, screen: Screen) -> list[Line]:
    """Write the smallest way, and the next one if it leads to a disruption, too."""
    way = explained.way
    if way is None or explained.outcome in {NodeOutcome.GOES, NodeOutcome.GOING}:
        return []
    lines = _one_way("try", way, screen)
    others = [each for each in explained.ways[1:] if each.is_complete]
    if others and others[0].changes != way.changes:
        lines += _one_way("or", others[0], screen)
    return lines


def _one_way(label: str, way: Way, screen: Screen) -> list[Line]:
    width = screen.width
    texts = [_change_text(each, screen) for each in way.changes]
    if way.wall is not None:
        texts.append(way.advice)
    if not texts:
        texts = ["wait: another command comes first"]
    hidden = len(texts) - _CHANGES_SHOWN
    lines: list[Line] = []
    for place, text in enumerate(texts[:_CHANGES_SHOWN]):
        shown = text if len(texts) == 1 else f"{place + 1}. {text}"
        lines += _entry("" if place else label, shown, width, 2)
    if hidden > 0:
        lines += _entry("", f"… and {count_of(hidden, 'more change')}", width, 1)
    return [*lines, *_entry("then", _end_text(way, len(texts)), width, 2)] if way.command else lines


def _end_text(way: Way, changes: int) -> str:
    assert way.command is not None
    enough = "" if not way.changes else " (enough on its own)" if changes == 1 else " (all needed)"
    return f"{_LABELS[way.method]}: {_command_text(way.command)}{enough}"


def _change_text(change: ClusterChange, screen: Screen) -> str:
    text = change.text
    if change.why is NodeReason.SPOT_TO_SPOT_DISABLED and not screen.knows_gates:
        text += "; if it is open, say so: --feature-gates SpotToSpotConsolidation=true"
    return text if change.until is None else f"{text}: {_moment(change.until, screen.now)}"


def _recorded_text(recorded: RecordedNode) -> str:
    text, verdict = f"{_clock(recorded.moment)} by karpy {recorded.by}", recorded.verdict
    if verdict is None:
        return f"{text}; no verdict names the node"
    last = "" if verdict.moment == recorded.moment else f"; last named {_clock(verdict.moment)}"
    return f"{text}{last}; {verdict.question}: {_verdict_text(verdict)}"


def _verdict_text(verdict: RecordedVerdict) -> str:
    commands = [f"{_label(each['method'])} {each['decision']}" for each in verdict.commands]
    refusals = [f"{_label(each['method'])} {each['reason']}".strip() for each in verdict.refusals]
    return ", ".join(dict.fromkeys([*commands, *refusals]))


def _label(method: str) -> str:
    return _LABELS.get(method, method)


def _moment(moment: datetime, now: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC, in {_span(moment - now)}"


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span(span: timedelta) -> str:
    """Write a duration in its two largest units: `1 h 59 min`."""
    rest, parts = max(0, int(span.total_seconds())), list[str]()
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def _entry(label: str, text: str, width: int, lines_max: int) -> list[Line]:
    return labelled(label, text, width, label_width=NODE_LABEL_WIDTH, lines_max=lines_max)


# --- for machines --------------------------------------------------------------------------------


def node_explanation_answer(
    explained: NodeExplanation, recorded: RecordedNode | None = None
) -> dict[str, Any]:
    """Write the whole explanation of a node as JSON."""
    node = explained.node
    return {
        "node": node.name,
        "nodeClaim": node.claim,
        "pool": node.pool,
        "outcome": explained.outcome.name,
        "sentence": explained.sentence,
        "dollarsPerHour": _money(explained.price or None),
        "pods": list(explained.pods),
        "daemons": explained.daemons,
        "attempts": [_attempt(each) for each in explained.attempts],
        "budgets": [_allowance(*each) for each in explained.allowances],
        "ways": [_way(each) for each in explained.ways],
        "notSeen": list(explained.unknown),
        "recorded": None if recorded is None else _recorded(recorded),
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "method": attempt.method,
        "refusal": None if attempt.refusal is None else node_refusal_to_dict(attempt.refusal),
        "command": None if attempt.command is None else command_to_dict(attempt.command),
    }


def _allowance(reason: DisruptionReason, allowance: Allowance) -> dict[str, Any]:
    return {
        "reason": reason.value,
        "nodes": allowance.nodes,
        "allowed": None if allowance.allowed == UNLIMITED else allowance.allowed,
        "consumed": allowance.consumed,
        "faults": list(allowance.faults),
    }


def _way(way: Way) -> dict[str, Any]:
    return {
        "method": way.method,
        "isEnough": way.is_complete,
        "changes": [_change(each) for each in way.changes],
        "command": None if way.command is None else command_to_dict(way.command),
        "wall": None if way.wall is None else node_refusal_to_dict(way.wall),
        "advice": way.advice,
        "outlook": None if way.outlook is None else _outlook(way.outlook),
    }


def _change(change: ClusterChange) -> Mapping[str, Any]:
    return {
        "text": change.text,
        "reason": change.why.name,
        "isWait": change.is_wait,
        "until": None if change.until is None else write_moment(change.until),
    }


def _outlook(outlook: Outlook) -> dict[str, Any]:
    option = outlook.replacement
    return {
        "dollarsPerHour": _money(outlook.price or None),
        "pods": outlook.pods,
        "nodes": list(outlook.nodes),
        "replacement": None if option is None else option_to_dict(option),
        "savingPerHour": _money(outlook.saving),
        "unplaced": list(outlook.unplaced),
        "newNodes": outlook.new_nodes,
    }


def _recorded(recorded: RecordedNode) -> dict[str, Any]:
    verdict = recorded.verdict
    return {
        "moment": write_moment(recorded.moment),
        "by": recorded.by,
        "last": None
        if verdict is None
        else {
            "moment": write_moment(verdict.moment),
            "by": verdict.by,
            "asks": verdict.question,
            "refusals": list(verdict.refusals),
            "commands": list(verdict.commands),
        },
    }


def _money(micro_dollars: int | None) -> float | None:
    return None if micro_dollars is None else micro_dollars / MICROS_PER_DOLLAR
