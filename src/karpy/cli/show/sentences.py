"""How happenings are put into words."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from karpy.cli.show.board import NodeCard, PodCard
from karpy.cli.tables import count_of, dollars, few_of
from karpy.core.disruption.progress import VALIDATION_DELAY
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
    """Say which machine was had, and for whom."""
    machine = f"{card.name}  {card.instance_type}  {card.zone}  {card.capacity_type:<9}"
    whom = _workloads(expected) or "nobody in particular"
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
    """Say which nodes nobody needs any more."""
    nodes = count_of(len(cards), "node runs", "nodes run")
    return f"{nodes} daemons only ({_names(cards)})"


def look_text(nodes: int) -> str:
    """Say how many nodes may go, and why they stay a little longer."""
    wait = f"{VALIDATION_DELAY.total_seconds():.0f} s"
    they = "it goes" if nodes == 1 else "they go"
    return f"{count_of(nodes, 'node')} found empty; {they} if that still holds in {wait}"


def removal_text(cards: Sequence[NodeCard], reason: str) -> str:
    """Say which nodes are to go, why, and what that saves."""
    saved = dollars(sum(each.price for each in cards))
    nodes = count_of(len(cards), f"{reason.lower()} node")
    return f"{nodes} ({_names(cards)}); saves {saved}/h"


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
