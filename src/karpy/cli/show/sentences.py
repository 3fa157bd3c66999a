"""How happenings are put into words."""

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
    """Say what is to be launched, for how many pods, and how much choice there was."""
    pods = sum(len(each.pods) for each in verdict.launches)
    choices = [len(each.options) for each in verdict.launches]
    nodes = count_of(len(verdict.launches), "new node")
    each = "it is" if len(verdict.launches) == 1 else "each is"
    return (
        f"{nodes} for {count_of(pods, 'pod')}; {each} the cheapest of"
        f" {_span(min(choices), max(choices))} types that would do"
    )


def launched_text(card: NodeCard, expected: Counter[str]) -> str:
    """Say which machine was launched, and for which workloads."""
    machine = f"{card.name}  {card.instance_type}  {card.zone}  {card.capacity_type:<9}"
    whom = _workloads(expected) or "as a replacement"
    return f"{machine} {dollars(card.price)}/h  {whom}"


def ready_text(cards: Sequence[NodeCard]) -> str:
    """Say how many nodes take pods, and after how long."""
    return (
        f"{count_of(len(cards), 'node')}, {_seconds([_boot(each) for each in cards])} after launch"
    )


def runs_text(cards: Sequence[PodCard]) -> str:
    """Say which pods run, and how long they waited."""
    return f"{_told(cards)}; waited {_seconds([each.waited for each in cards])}"


def left_text(cards: Sequence[PodCard]) -> str:
    """Say which pods have left."""
    return _told(cards)


def emptied_text(cards: Sequence[NodeCard]) -> str:
    """Say which nodes are not needed any more."""
    nodes = count_of(len(cards), "node runs", "nodes run")
    return f"{nodes} daemons only ({_names(cards)})"


def command_text(command: Command) -> str:
    """Say which nodes are to go, where their pods go, and what they wait for."""
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
    """Say which nodes are to go, why, and what that takes off the price."""
    nodes = count_of(len(cards), f"{reason.lower()} node")
    if reason == DisruptionReason.DRIFTED.value:
        return f"{nodes} ({_names(cards)})"
    return f"{nodes} ({_names(cards)}); {dollars(sum(each.price for each in cards))}/h less"


def gone_text(cards: Sequence[NodeCard]) -> str:
    """Say which nodes are gone."""
    return f"{count_of(len(cards), 'node')} ({_names(cards)})"


def _names(cards: Sequence[NodeCard]) -> str:
    return few_of(sorted(each.name for each in cards), _NAMED_MAX)


def _told(cards: Sequence[PodCard]) -> str:
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
