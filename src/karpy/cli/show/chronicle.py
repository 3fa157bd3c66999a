"""A log of what happens in a cluster and why, in readable lines."""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from karpy.cli.show.board import Board, NodeCard, PodCard, Transition
from karpy.cli.show.sentences import (
    command_text,
    decision_text,
    emptied_text,
    gone_text,
    launched_text,
    ready_text,
    removal_text,
    runs_text,
    stopped_text,
)
from karpy.cli.terminal import Style
from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.observation.scheduling import NO_DECISION
from karpy.model.commands import DisruptionVerdict
from karpy.model.kinds import NODE_CLAIM
from karpy.model.notices import Notice
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import (
    DisruptionQuestion,
    NodeQuestion,
    PoolQuestion,
    Snapshot,
    ValidationQuestion,
)
from karpy.model.verdicts import PoolVerdict, Verdict
from karpy.ports.clock import Clock
from karpy.sim.store.store import Store

Card = TypeVar("Card", NodeCard, PodCard)

TOGETHER: Final = 0.3
"""Seconds within which equal changes of several objects share a line."""
_CLAIM: Final = re.compile(r"\bnodeclaim/([\w.-]+)")
_DECIDING: Final = "scheduler_scheduling_duration_seconds"
_WORDS: Final = {
    DisruptionReason.EMPTY: "empty",
    DisruptionReason.UNDERUTILIZED: "shrink",
    DisruptionReason.DRIFTED: "drift",
    DisruptionReason.UNHEALTHY: "repair",
}
_NODES: Final = {
    Transition.READY: ("ready", Style.GOOD, ready_text),
    Transition.EMPTIED: ("empty", Style.CARE, emptied_text),
    Transition.GONE: ("gone", Style.GOOD, gone_text),
}
_PODS: Final = {
    Transition.RUNS: ("running", Style.GOOD, runs_text),
    Transition.STOPPED: ("stopped", Style.QUIET, stopped_text),
}


class Happening(Struct, frozen=True):
    """A line of the log."""

    seconds: float
    """Seconds since the start of the demo."""
    word: str
    """The kind of the event, in one word."""
    text: str
    style: Style = Style.PLAIN


class _Entry(Struct):
    """A line that still grows while equal changes of other objects follow."""

    seconds: float
    word: str
    style: Style
    write: Callable[[], str]


class Chronicle:
    """
    Collects the lines of the log, and the numbers for the summary.

    It watches the cluster, and is the journal, the recorder of events and the log of the
    autoscaler.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.board = Board(store, clock, self._on_transition)
        self.launched = 0
        self.removed = 0
        self.waits: list[float] = []
        """The seconds that each pod waited, in the order of their start."""
        self.prices: list[tuple[float, int]] = [(0.0, 0)]
        """The price of the cluster from a second on, in micro-dollars per hour."""
        self.decided: list[float] = []
        """The seconds of each decision that launched nodes or refused pods."""
        self._has_decided = False
        self.refused: dict[str, str] = {}
        """The reasons why pods stay pending, by namespace and name."""
        self.troubles = 0
        self.saved = 0
        """Savings by commands, in micro-dollars per hour."""
        self._expected: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """By NodeClaim: the number of nominated pods of each workload."""
        self._entries: list[_Entry] = []
        self._growing: dict[str, tuple[_Entry, list[Any]]] = {}
        self._wakeup = asyncio.Event()

    async def wait(self) -> None:
        """Wait for the next change."""
        self._wakeup.clear()
        await self._wakeup.wait()

    # --- for printing ----------------------------------------------------------------------------

    def take(self, *, is_over: bool = False) -> list[Happening]:
        """Return the new lines, except lines that may still grow."""
        due = self.board.seconds - TOGETHER
        ripe = [each for each in self._entries if is_over or each.seconds <= due]
        self._entries = self._entries[len(ripe) :]
        # Lines of the same moment get a fixed order, independent of the order of their arrival.
        ripe.sort(key=lambda each: (round(each.seconds, 1), each.word))
        return [Happening(each.seconds, each.word, each.write(), each.style) for each in ripe]

    def add_line(self, word: str, text: str, style: Style = Style.PLAIN) -> None:
        """Add a line that does not grow."""
        self._entries.append(_Entry(self.board.seconds, word, style, lambda: text))
        self._wakeup.set()

    # --- reports of the autoscaler -------------------------------------------------------------

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Add a decision about pods."""
        del snapshot
        has_refused = any(each.reason not in NO_DECISION for each in verdict.refusals)
        self._has_decided = bool(verdict.launches) or has_refused
        if verdict.launches:
            self.add_line("decide", decision_text(verdict), Style.STRONG)

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        """Add a decision about nodes; its results come as notices."""
        if isinstance(question, DisruptionQuestion):
            for command in verdict.commands:
                self.add_line(_WORDS[command.reason], command_text(command), Style.CARE)
        elif isinstance(question, ValidationQuestion):
            self.saved += sum(command.savings for command in verdict.commands)

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Ignore a decision about a static NodePool; its nodes appear as launches."""
        del question, verdict

    def emit(self, notice: Notice) -> None:
        """Add a notice about an object."""
        match notice.reason:
            case "Nominated":
                self._expect(notice)
            case "FailedScheduling":
                self._refuse(notice)
            case "DisruptionTerminating" if notice.subject.kind == NODE_CLAIM:
                card = self.board.nodes.get(notice.subject.name)
                if card is not None:
                    reason = notice.note.rpartition(": ")[2]
                    self._join(
                        "remove", Style.STRONG, card, lambda all_: removal_text(all_, reason)
                    )

    def count(self, count: Count) -> None:
        """Add the duration of a decision."""
        if count.metric == _DECIDING and self._has_decided:
            self.decided.append(count.value)

    def remark(self, remark: Remark) -> None:
        """Add a line of the operator's log if it is an error."""
        if remark.is_error:
            fields = ", ".join(f"{key} {value}" for key, value in remark.fields.items())
            self._add_trouble(f"{remark.event}: {fields}")

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        """Add the error of a controller, which will try again."""
        self._add_trouble(f"{controller} {key}: {error}")

    # --- changes in the cluster ----------------------------------------------------------------

    def _on_transition(self, transition: Transition, card: NodeCard | PodCard) -> None:
        self._wakeup.set()
        if isinstance(card, NodeCard):
            self._on_node(transition, card)
        elif not card.is_daemon:
            if transition is Transition.RUNS:
                self.waits.append(card.waited)
            word, style, write = _PODS[transition]
            self._join(word, style, card, write)

    def _on_node(self, transition: Transition, card: NodeCard) -> None:
        if transition is Transition.LAUNCHED:
            self.launched += 1
            self._change_price(card.price)
            self.add_line("launch", launched_text(card, self._expected.pop(card.name, Counter())))
            return
        if transition is Transition.GONE:
            self.removed += 1
            self._change_price(-card.price)
        word, style, write = _NODES[transition]
        self._join(word, style, card, write)

    def _change_price(self, more: int) -> None:
        """Change the price of the cluster from now on."""
        start, price = self.prices[-1]
        if self.board.seconds - start < TOGETHER:
            self.prices[-1] = start, price + more
        else:
            self.prices.append((self.board.seconds, price + more))

    def _join(
        self, word: str, style: Style, card: Card, write: Callable[[Sequence[Card]], str]
    ) -> None:
        """Add a change to the growing line of its kind, or start a new line."""
        growing = self._growing.get(word)
        if growing is not None and self.board.seconds - growing[0].seconds < TOGETHER:
            growing[1].append(card)
            return
        cards = [card]
        entry = _Entry(self.board.seconds, word, style, lambda: write(cards))
        self._growing[word] = entry, cards
        self._entries.append(entry)

    def _expect(self, notice: Notice) -> None:
        found = _CLAIM.search(notice.note)
        key = f"{notice.subject.namespace}/{notice.subject.name}"
        pod = self.board.pods.get(key)
        if found is not None and pod is not None and found[1] not in self.board.nodes:
            self._expected[found[1]][pod.workload] += 1

    def _refuse(self, notice: Notice) -> None:
        key = f"{notice.subject.namespace}/{notice.subject.name}"
        why = notice.note.removeprefix("Failed to schedule pod, ")
        if self.refused.get(key) != why:
            self.refused[key] = why
            self.add_line("refuse", f"{key} stays pending: {why}", Style.BAD)

    def _add_trouble(self, text: str) -> None:
        self.troubles += 1
        self.add_line("trouble", text, Style.BAD)
