"""The controller `disruption`: repair, emptiness, drift and consolidation, within budgets."""

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
"""Longest time for which a method without a command is skipped while nothing changes."""
EMPTINESS_MOST: Final = timedelta(minutes=2)
"""Time with commands of emptiness alone after which one pass skips emptiness."""
_KEY: Final = "disruption"
_FIRST: Final = frozenset({Repair.name, Emptiness.name})
_PASSING: Final = frozenset({NodeReason.BUDGET_SPENT, NodeReason.PODS_UNPLACED})
"""Refusals that may end once a disrupted node is gone or a replacement is initialized."""
_DURATION: Final = "voluntary_disruption_decision_evaluation_duration_seconds"

Version = Callable[[], object]
"""Returns a value that changes with anything that consolidation depends on."""


class _Settled(Struct, frozen=True):
    """Methods that find no command as long as the cluster does not change."""

    version: object
    since: datetime
    methods: frozenset[str] = frozenset()
    until: datetime | None = None
    """When a refusal ends by time alone; None if none does."""

    def holds(self, version: object, now: datetime) -> bool:
        """Say whether the methods would still find no command."""
        is_over = self.until is not None and now >= self.until
        return self.version == version and now - self.since < SETTLED_TIME and not is_over

    def after(self, made: Pass) -> "_Settled":
        """Add the methods of a pass that found no command."""
        ends = [each for each in (self.until, made.settled_until()) if each is not None]
        return replace(self, methods=made.settled(), until=min(ends, default=None))


class _Seen(Struct, frozen=True):
    """An existing node, and when a pass last considered it with all methods."""

    pool: str
    considered: datetime


class Considered:
    """Remembers when each node was last considered for disruption, for the metric of its age."""

    def __init__(self) -> None:
        self._seen: Mapping[str, _Seen] = {}

    def note(self, made: Pass, now: datetime) -> None:
        """Record the nodes that a pass considered; a node that is new counts as considered."""
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
    """Observe, decide, apply. core.disruption decides which nodes are disrupted."""

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
        self._queue = DisruptionQueue(context, state, commands, nominations, self._publish)
        self._work_queue = WorkQueue(context.observer)
        self._listeners: list[OnVerdict] = []
        self._last: Pass | None = None
        self._settled = _Settled(None, context.clock.now())
        self._rejected = frozenset[str]()
        """Methods whose last command was rejected by its validation."""
        self._beyond_emptiness = context.clock.now()
        """When a pass last tried the methods after emptiness."""
        self._put_off = frozenset[str]()
        """Nodes that the last passes had no time to evaluate."""
        self.considered = Considered()
        self._due: datetime | None = None
        """When the next pass is due; None is now."""
        self._awaits_progress = False
        """Whether the last pass refused nodes only until other disruptions are over."""
        context.records.claims.listen(self._on_claim)

    def listen(self, listener: OnVerdict) -> None:
        """Pass every verdict from now on to a listener."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Propose, validate and carry out commands, until cancelled."""
        self._work_queue.add(_KEY)
        await self._work_queue.run(self._work, on_failure=self._context.on_failure)

    async def reconcile(self) -> timedelta:
        """Advance all commands, and make a pass if one is due; return when to reconcile again."""
        was_forming, begun = self._commands.is_forming, len(self._commands.begun())
        # Commands go on even while the snapshot is too incomplete for new decisions.
        step = await self._queue.go_on()
        if len(self._commands.begun()) < begun:
            self._note_progress()
        if self._state.is_synced:
            due = await self._queue.validate(self._last)
            step = min((each for each in (step, due) if each is not None), default=None)
        now = self._context.clock.now()
        has_formed = was_forming and not self._commands.is_forming
        if self._due is None or self._due <= now or has_formed:
            pause = await self._make_pass() if self._state.is_synced else UNTIL_SYNCED
            now = self._context.clock.now()
            self._due = now + pause
            if any(each.is_forming for each in self._commands.begun()):
                step = min(step or PERIOD, TAINTING_PACE)
        return min(self._due - now, step or PERIOD)

    async def _work(self, key: str) -> float:
        del key
        return (await self.reconcile()).total_seconds()

    async def _make_pass(self) -> timedelta:
        """Remove taints and conditions that belong to no command, then try the methods."""
        seen = self._queue.observe()
        strays = await decide_aside(lambda: list(find_orphaned_taints(seen.snapshot)))
        changes = [NodeChange(node.claim, node.name, changes) for node, changes in strays]
        await self._queue.carry_out(changes, seen)
        if self._commands.is_forming:
            return PERIOD
        return await self._try_methods(seen)

    async def _try_methods(self, seen: Observation) -> timedelta:
        """Try the methods in their order; the first with a command ends the pass."""
        version, now = self._version(), self._context.clock.now()
        known = self._settled if self._settled.holds(version, now) else _Settled(version, now)
        skips_emptiness = now - self._beyond_emptiness >= EMPTINESS_MOST
        passed_over = self._rejected | ({Emptiness.name} if skips_emptiness else set())
        question = DisruptionQuestion(seen.snapshot, known.methods, passed_over, self._put_off)
        made = Pass(question, self._last)
        for method in made.methods():
            # After a method fails, the next one is tried all the same.
            with Barrier(partial(self._context.on_failure, method.name)):
                await self._try(method, made)
        self._last, self._settled = made, known.after(made)
        self.considered.note(made, now)
        verdict, self._put_off = made.verdict(), made.put_off()
        if not verdict.commands:
            self._rejected = frozenset()
        if not verdict.commands or verdict.method not in _FIRST:
            self._beyond_emptiness = now
        self._awaits_progress = any(each.why in _PASSING for each in verdict.refusals)
        self._publish(question, verdict)
        for command in verdict.commands:
            await self._queue.add(command, seen)
        return PACE if verdict.commands or skips_emptiness else PERIOD

    async def _try(self, method: DisruptionMethod, made: Pass) -> None:
        began = self._context.clock.now()
        timeout = self._context.decision_timeout.total_seconds()
        proposal = await decide_in_time(partial(made.propose, method), timeout, can_wait=True)
        took = self._context.clock.now() - began
        for error in made.evaluation.take_failures():
            self._context.on_failure(method.name, error)
        await self._context.writer.carry_out(
            joined(proposal.as_changes(), _evaluated(method, took))
        )

    # Differs: a budget that is spent: Karpenter tries again after ten seconds; Karpy also tries as
    # soon as a node that consumed it is gone, or a replacement is initialized.
    def _note_progress(self) -> None:
        """Make a pass now if the last one refused nodes only until other disruptions are over."""
        if self._awaits_progress:
            self._awaits_progress, self._due = False, None
            self._work_queue.add(_KEY)

    def _on_claim(
        self, _: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        if _consumes(before) and not _consumes(after):
            self._note_progress()

    def _note_validation(self, command: Command, verdict: DisruptionVerdict) -> None:
        self._rejected = frozenset() if verdict.commands else self._rejected | {command.method}

    def _publish(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        if isinstance(question, ValidationQuestion):
            self._note_validation(question.command, verdict)
        for listener in self._listeners:
            listener(question, verdict)


def _consumes(kept: Kept[ClaimRecord] | None) -> bool:
    """Say whether the node of a claim counts against budgets because the claim is deleting."""
    if kept is None or not kept.record.meta.is_deleting:
        return False
    return not kept.record.conditions.is_true(INSTANCE_TERMINATING)


def _evaluated(method: DisruptionMethod, took: timedelta) -> Changes:
    labels = {
        "reason": method.reason.value.lower(),
        "consolidation_type": method.consolidation_type,
    }
    return Changes(counts=(Count(_DURATION, labels, took.total_seconds()),))
