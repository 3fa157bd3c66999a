"""Nodes that are broken, empty, drifted or too dear are disrupted, within budgets."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.controllers.clusterstate import ClusterState, Commands
from karpy.controllers.context import ControllerContext, decide_aside, decide_in_time
from karpy.controllers.disruptionqueue import DisruptionQueue, Observation, OnVerdict
from karpy.controllers.nominations import NodeNominations
from karpy.controllers.queue import WorkQueue
from karpy.core.disruption.decide import Pass
from karpy.core.disruption.method import DisruptionMethod
from karpy.core.disruption.methods.emptiness import Emptiness
from karpy.core.disruption.methods.repair import Repair
from karpy.core.disruption.progress import PACE, TAINTING_PACE, NodeChange
from karpy.core.disruption.taints import find_orphaned_taints
from karpy.core.lifecycle.changes import Changes, Count, joined
from karpy.model.commands import Command, DisruptionVerdict
from karpy.model.conditions import INSTANCE_TERMINATING
from karpy.model.records import ClaimRecord
from karpy.model.snapshot import DisruptionQuestion, NodeQuestion, ValidationQuestion
from karpy.model.verdicts import NodeReason
from karpy.ports.records import Kept

PERIOD: Final = timedelta(seconds=10)
UNTIL_SYNCED: Final = timedelta(seconds=1)
SETTLED_TIME: Final = timedelta(minutes=5)
"""After that a method is asked again even if nothing has changed."""
EMPTINESS_MOST: Final = timedelta(minutes=2)
"""After so long with commands of emptiness alone the other methods have their turn."""
_KEY: Final = "disruption"
_FIRST: Final = frozenset({Repair.name, Emptiness.name})
_PASSING: Final = frozenset({NodeReason.BUDGET_SPENT, NodeReason.PODS_UNPLACED})
"""Refusals that may end when nodes that are being disrupted are gone, or initialized."""
_DURATION: Final = "voluntary_disruption_decision_evaluation_duration_seconds"

Version = Callable[[], object]
"""Returns a value that differs once something has changed that consolidation depends on."""


class _Settled(Struct, frozen=True):
    """Methods that find nothing as long as nothing changes."""

    version: object
    since: datetime
    methods: frozenset[str] = frozenset()
    until: datetime | None = None
    """When something ends by itself that kept a node; None if nothing does."""

    def holds(self, version: object, now: datetime) -> bool:
        """Say whether the methods would find nothing again."""
        is_over = self.until is not None and now >= self.until
        return self.version == version and now - self.since < SETTLED_TIME and not is_over

    def after(self, made: Pass) -> "_Settled":
        """Add the methods that a pass has found nothing with."""
        ends = [each for each in (self.until, made.settled_until()) if each is not None]
        return replace(self, methods=made.settled(), until=min(ends, default=None))


class _Seen(Struct, frozen=True):
    """A node that is there, and when all methods last had their say about it."""

    pool: str
    considered: datetime


class Considered:
    """Notes which nodes each pass considers; one that no pass gets to grows old here."""

    def __init__(self) -> None:
        self._seen: Mapping[str, _Seen] = {}

    def note(self, made: Pass, now: datetime) -> None:
        """Take in a pass; a node that is seen for the first time counts as considered."""
        known, considered = self._seen, made.considered()
        self._seen = {
            node.name: known[node.name]
            if node.name in known and node.name not in considered
            else _Seen(node.pool, now)
            for node in made.question.snapshot.nodes
            if node.claim
        }

    def moments(self) -> Mapping[tuple[str, str], datetime]:
        """Return when each node was last considered, by NodePool and name."""
        return {(each.pool, name): each.considered for name, each in self._seen.items()}


class DisruptionController:
    """Observe, decide, apply. What goes, and in which order, is decided in core.disruption."""

    def __init__(
        self,
        context: ControllerContext,
        state: ClusterState,
        commands: Commands,
        nominations: NodeNominations,
        version: Version = object,
    ) -> None:
        self._context = context
        self._state = state
        self._commands = commands
        self._version = version
        self._queue = DisruptionQueue(context, state, commands, nominations, self._tell)
        self._work_queue = WorkQueue(context.observer)
        self._listeners: list[OnVerdict] = []
        self._last: Pass | None = None
        self._settled = _Settled(None, context.clock.now())
        self._rejected = frozenset[str]()
        """Methods whose last command was rejected by its validation."""
        self._others_asked = context.clock.now()
        """When a pass last got beyond emptiness."""
        self._put_off = frozenset[str]()
        """Nodes that the last passes had no time for."""
        self.considered = Considered()
        self._due: datetime | None = None
        """When to look at everything again; None is now."""
        self._is_hindered = False
        """Whether the last pass left nodes alone that may go once others have gone."""
        context.records.claims.listen(self._hear_claim)

    def listen(self, listener: OnVerdict) -> None:
        """Pass every verdict from now on to a listener."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Disrupt what may be disrupted, until cancelled."""
        self._work_queue.add(_KEY)
        await self._work_queue.run(self._work, on_failure=self._context.on_failure)

    async def reconcile(self) -> timedelta:
        """Take the next steps; return after how long to look again."""
        was_forming, begun = self._commands.is_forming, len(self._commands.begun())
        # What has begun goes on, even while too little is known to decide anything new.
        step = await self._queue.go_on()
        if len(self._commands.begun()) < begun:
            self._note_progress()
        if self._state.is_synced:
            due = await self._queue.validate(self._last)
            step = min((each for each in (step, due) if each is not None), default=None)
        now = self._context.clock.now()
        has_formed = was_forming and not self._commands.is_forming
        if self._due is None or self._due <= now or has_formed:
            pause = await self._look() if self._state.is_synced else UNTIL_SYNCED
            now = self._context.clock.now()
            self._due = now + pause
            if any(each.is_forming for each in self._commands.begun()):
                step = min(step or PERIOD, TAINTING_PACE)
        return min(self._due - now, step or PERIOD)

    async def _work(self, key: str) -> float:
        del key
        return (await self.reconcile()).total_seconds()

    async def _look(self) -> timedelta:
        """Undo what no command accounts for, then go through the methods."""
        seen = self._queue.observe()
        strays = await decide_aside(lambda: list(find_orphaned_taints(seen.snapshot)))
        changes = [NodeChange(node.claim, node.name, changes) for node, changes in strays]
        await self._queue.carry_out(changes, seen)
        if self._commands.is_forming:
            return PERIOD
        return await self._go_through(seen)

    async def _go_through(self, seen: Observation) -> timedelta:
        """Ask the methods in their order; the first with a command ends the pass."""
        version, now = self._version(), self._context.clock.now()
        known = self._settled if self._settled.holds(version, now) else _Settled(version, now)
        is_others_turn = now - self._others_asked >= EMPTINESS_MOST
        passed_over = self._rejected | ({Emptiness.name} if is_others_turn else set())
        question = DisruptionQuestion(seen.snapshot, known.methods, passed_over, self._put_off)
        made = Pass(question, self._last)
        for method in made.methods():
            # A method that fails keeps no other from its turn.
            with Barrier(partial(self._context.on_failure, method.name)):
                await self._ask(method, made)
        self._last, self._settled = made, known.after(made)
        self.considered.note(made, now)
        verdict, self._put_off = made.verdict(), made.put_off()
        if not verdict.commands:
            self._rejected = frozenset()
        if not verdict.commands or verdict.method not in _FIRST:
            self._others_asked = now
        self._is_hindered = any(each.why in _PASSING for each in verdict.refusals)
        self._tell(question, verdict)
        for command in verdict.commands:
            await self._queue.add(command, seen)
        return PACE if verdict.commands or is_others_turn else PERIOD

    async def _ask(self, method: DisruptionMethod, made: Pass) -> None:
        began = self._context.clock.now()
        timeout = self._context.decision_timeout.total_seconds()
        proposal = await decide_in_time(partial(made.propose, method), timeout, can_wait=True)
        took = self._context.clock.now() - began
        for error in made.evaluation.take_failures():
            self._context.on_failure(method.name, error)
        await self._context.writer.carry_out(
            joined(proposal.as_changes(), _evaluated(method, took))
        )

    # Differs: a budget that is spent: Karpenter looks again after ten seconds; Karpy also looks as
    # soon as a node that consumed it is gone, or a replacement that was in the way is initialized.
    def _note_progress(self) -> None:
        """Look at everything again if the last pass left nodes alone that may go by now."""
        if self._is_hindered:
            self._is_hindered, self._due = False, None
            self._work_queue.add(_KEY)

    def _hear_claim(
        self, _: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        if _consumes(before) and not _consumes(after):
            self._note_progress()

    def _note_validation(self, command: Command, verdict: DisruptionVerdict) -> None:
        self._rejected = frozenset() if verdict.commands else self._rejected | {command.method}

    def _tell(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        if isinstance(question, ValidationQuestion):
            self._note_validation(question.command, verdict)
        for listener in self._listeners:
            listener(question, verdict)


def _consumes(kept: Kept[ClaimRecord] | None) -> bool:
    """Say whether the node of a claim counts against budgets since it is being deleted."""
    if kept is None or not kept.record.meta.is_deleting:
        return False
    return not kept.record.conditions.is_true(INSTANCE_TERMINATING)


def _evaluated(method: DisruptionMethod, took: timedelta) -> Changes:
    labels = {
        "reason": method.reason.value.lower(),
        "consolidation_type": method.consolidation_type,
    }
    return Changes(counts=(Count(_DURATION, labels, took.total_seconds()),))
