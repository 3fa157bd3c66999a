"""What happens and why, as lines that people can follow."""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from karpy.cli.show.board import Board, NodeCard, PodCard, Turn
from karpy.cli.show.sentences import (
    command_text,
    decision_text,
    emptied_text,
    gone_text,
    launched_text,
    left_text,
    ready_text,
    removal_text,
    runs_text,
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
"""What happens to several within so many seconds is one line."""
_CLAIM: Final = re.compile(r"\bnodeclaim/([\w.-]+)")
_DECIDING: Final = "scheduler_scheduling_duration_seconds"
_WORDS: Final = {
    DisruptionReason.EMPTY: "empty",
    DisruptionReason.UNDERUTILIZED: "shrink",
    DisruptionReason.DRIFTED: "drift",
    DisruptionReason.UNHEALTHY: "repair",
}
_NODES: Final = {
    Turn.READY: ("ready", Style.GOOD, ready_text),
    Turn.EMPTIED: ("empty", Style.CARE, emptied_text),
    Turn.GONE: ("gone", Style.GOOD, gone_text),
}
_PODS: Final = {
    Turn.RUNS: ("running", Style.GOOD, runs_text),
    Turn.LEFT: ("stopped", Style.QUIET, left_text),
}


class Happening(Struct, frozen=True):
    """Something that is worth a line."""

    seconds: float
    """Since the show began."""
    word: str
    """What sort of thing it is, in one word."""
    text: str
    style: Style = Style.PLAIN


class _Entry(Struct):
    """A line that is being written; grows while more of its sort happens."""

    seconds: float
    word: str
    style: Style
    write: Callable[[], str]


class Chronicle:
    """
    Hears everything and keeps what is worth telling.

    It listens to the cluster, and is told by the autoscaler: it is its journal, its notices and its
    voice.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.board = Board(store, clock, self._hear)
        self.launched = 0
        self.removed = 0
        self.waits: list[float] = []
        """How long each pod waited, in the order they ran."""
        self.prices: list[tuple[float, int]] = [(0.0, 0)]
        """From which second on the cluster cost how much."""
        self.decided: list[float] = []
        """How many seconds each decision took that changes something or says no."""
        self._has_decided = False
        self.refused: dict[str, str] = {}
        """Why pods stay pending, by namespace and name."""
        self.troubles = 0
        self.saved = 0
        """Micro-dollars per hour that commands took off the price."""
        self._expected: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """By NodeClaim: how many pods of which workload it was made for."""
        self._entries: list[_Entry] = []
        self._growing: dict[str, tuple[_Entry, list[Any]]] = {}
        self._news = asyncio.Event()

    async def wait(self) -> None:
        """Wait until something has happened."""
        self._news.clear()
        await self._news.wait()

    # --- for printing ----------------------------------------------------------------------------

    def take(self, *, is_over: bool = False) -> list[Happening]:
        """Return what has happened since it was asked last, but for what may still grow."""
        due = self.board.seconds - TOGETHER
        ripe = [each for each in self._entries if is_over or each.seconds <= due]
        self._entries = self._entries[len(ripe) :]
        # What happens at the same moment is told in one order, whichever part was heard first.
        ripe.sort(key=lambda each: (round(each.seconds, 1), each.word))
        return [Happening(each.seconds, each.word, each.write(), each.style) for each in ripe]

    def say(self, word: str, text: str, style: Style = Style.PLAIN) -> None:
        """Tell something in a line of its own."""
        self._entries.append(_Entry(self.board.seconds, word, style, lambda: text))
        self._news.set()

    # --- what the autoscaler tells -------------------------------------------------------------

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Hear of a decision about pods."""
        del snapshot
        has_refused = any(each.reason not in NO_DECISION for each in verdict.refusals)
        self._has_decided = bool(verdict.launches) or has_refused
        if verdict.launches:
            self.say("decide", decision_text(verdict), Style.STRONG)

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        """Take in a decision about nodes; notices report what comes of it."""
        if isinstance(question, DisruptionQuestion):
            for command in verdict.commands:
                self.say(_WORDS[command.reason], command_text(command), Style.CARE)
        elif isinstance(question, ValidationQuestion):
            self.saved += sum(command.savings for command in verdict.commands)

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Hear of a decision about the size of a NodePool; the nodes that come of it show."""
        del question, verdict

    def emit(self, notice: Notice) -> None:
        """Take in a notice about an object."""
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
        """Hear how long a decision took."""
        if count.metric == _DECIDING and self._has_decided:
            self.decided.append(count.value)

    def remark(self, remark: Remark) -> None:
        """Hear a line of the log; only errors are worth one here."""
        if remark.is_error:
            fields = ", ".join(f"{key} {value}" for key, value in remark.fields.items())
            self._complain(f"{remark.event}: {fields}")

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        """Hear that a controller could not work on an object, and will try again."""
        self._complain(f"{controller} {key}: {error}")

    # --- what the cluster shows ----------------------------------------------------------------

    def _hear(self, turn: Turn, card: NodeCard | PodCard) -> None:
        self._news.set()
        if isinstance(card, NodeCard):
            self._hear_node(turn, card)
        elif not card.is_daemon:
            if turn is Turn.RUNS:
                self.waits.append(card.waited)
            word, style, write = _PODS[turn]
            self._join(word, style, card, write)

    def _hear_node(self, turn: Turn, card: NodeCard) -> None:
        if turn is Turn.LAUNCHED:
            self.launched += 1
            self._charge(card.price)
            self.say("launch", launched_text(card, self._expected.pop(card.name, Counter())))
            return
        if turn is Turn.GONE:
            self.removed += 1
            self._charge(-card.price)
        word, style, write = _NODES[turn]
        self._join(word, style, card, write)

    def _charge(self, more: int) -> None:
        """Note that the cluster costs more, or less, from now on."""
        start, price = self.prices[-1]
        if self.board.seconds - start < TOGETHER:
            self.prices[-1] = start, price + more
        else:
            self.prices.append((self.board.seconds, price + more))

    def _join(
        self, word: str, style: Style, card: Card, write: Callable[[Sequence[Card]], str]
    ) -> None:
        """Tell something of a card, in one line with what has just happened to others."""
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
            self.say("refuse", f"{key} stays pending: {why}", Style.BAD)

    def _complain(self, text: str) -> None:
        self.troubles += 1
        self.say("trouble", text, Style.BAD)
