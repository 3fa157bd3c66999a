"""The texts of the lines of the log."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from karpy.cli.show.board import NodeCard, PodCard
from karpy.cli.tables import count_of, dollars, few_of
from karpy.core.disruption.progress import VALIDATION_DELAY
from karpy.model.commands import Command
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import Verdict

_NAMED_MAX: Final = 2


def decision_text(verdict: Verdict) -> str:
    """Write the launches of a verdict, their pods and the number of options."""
    pods = sum(len(each.pods) for each in verdict.launches)
    choices = [len(each.options) for each in verdict.launches]
    nodes = count_of(len(verdict.launches), "new node")
    each = "it is" if len(verdict.launches) == 1 else "each is"
    return (
        f"{nodes} for {count_of(pods, 'pod')}; {each} the cheapest of"
        f" {_span(min(choices), max(choices))} types that would do"
    )


def launched_text(card: NodeCard, expected: Counter[str]) -> str:
    """Write a launched machine and the workloads of its nominated pods."""
    machine = f"{card.name}  {card.instance_type}  {card.zone}  {card.capacity_type:<9}"
    whom = _workloads(expected) or "as a replacement"
    return f"{machine} {dollars(card.price)}/h  {whom}"


def ready_text(cards: Sequence[NodeCard]) -> str:
    """Write the number of initialized nodes, and the time it took."""
    return (
        f"{count_of(len(cards), 'node')}, {_seconds([_boot(each) for each in cards])} after launch"
    )


def runs_text(cards: Sequence[PodCard]) -> str:
    """Write the pods that run now, and how long they waited."""
    return f"{_pods(cards)}; waited {_seconds([each.waited for each in cards])}"


def stopped_text(cards: Sequence[PodCard]) -> str:
    """Write the pods that have stopped."""
    return _pods(cards)


def emptied_text(cards: Sequence[NodeCard]) -> str:
    """Write the nodes that have become empty."""
    nodes = count_of(len(cards), "node runs", "nodes run")
    return f"{nodes} daemons only ({_names(cards)})"


def command_text(command: Command) -> str:
    """Write the nodes of a command, the new places of their pods, and its validation."""
    nodes, pods = len(command.nodes), sum(each.pods for each in command.nodes)
    they = "it goes" if nodes == 1 else "they go"
    wait = f"{they} if that still holds in {VALIDATION_DELAY.total_seconds():.0f} s"
    if command.reason is DisruptionReason.EMPTY:
        return f"{count_of(nodes, 'node')} found empty; {wait}"
    rest = "the nodes that stay have room for them"
    if command.replacements:
        rest = f"{count_of(len(command.replacements), 'new node')} and the rest have room for them"
    moved = f"{count_of(nodes, 'node')} with {count_of(pods, 'pod')}; {rest}"
    if command.reason is DisruptionReason.DRIFTED:
        return f"{command.nodes[0].claim} is not what its NodePool asks for now: {moved}"
    return f"{moved}; saves {dollars(command.savings)}/h; {wait}"


def removal_text(cards: Sequence[NodeCard], reason: str) -> str:
    """Write the nodes that are deleted, the reason and the savings."""
    nodes = count_of(len(cards), f"{reason.lower()} node")
    if reason == DisruptionReason.DRIFTED.value:
        return f"{nodes} ({_names(cards)})"
    return f"{nodes} ({_names(cards)}); {dollars(sum(each.price for each in cards))}/h less"


def gone_text(cards: Sequence[NodeCard]) -> str:
    """Write the nodes that are gone."""
    return f"{count_of(len(cards), 'node')} ({_names(cards)})"


def _names(cards: Sequence[NodeCard]) -> str:
    return few_of(sorted(each.name for each in cards), _NAMED_MAX)


def _pods(cards: Sequence[PodCard]) -> str:
    return _workloads(Counter(each.workload for each in cards))


def _workloads(counts: Counter[str]) -> str:
    return ", ".join(
        name if count == 1 else f"{count} {name}" for name, count in sorted(counts.items())
    )


def _boot(card: NodeCard) -> float:
    assert card.ready is not None
    return card.ready - card.launched


def _seconds(spans: Sequence[float]) -> str:
    return f"{_span(f'{min(spans):.1f}', f'{max(spans):.1f}')} s"


def _span(least: object, most: object) -> str:
    return f"{least}" if least == most else f"{least} to {most}"
