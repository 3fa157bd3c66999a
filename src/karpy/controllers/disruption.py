"""Nodes that are broken, empty, drifted or too dear are disrupted, within budgets."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from karpy.controllers.clusterstate import ClusterState
from karpy.controllers.commands import Commands
from karpy.controllers.context import ControllerContext
from karpy.controllers.disruptionqueue import DisruptionQueue, Observation, OnVerdict
from karpy.controllers.nominations import Nominations
from karpy.controllers.offloading import decide_aside
from karpy.controllers.queue import WorkQueue
from karpy.core.disruption.decide import Pass
from karpy.core.disruption.method import DisruptionMethod
from karpy.core.disruption.progress import PACE, NodeChange
from karpy.core.disruption.taints import find_strays
from karpy.core.lifecycle.changes import Changes, Count, joined
from karpy.model.commands import DisruptionVerdict
from karpy.model.questions import DisruptionQuestion, NodeQuestion

PERIOD: Final = timedelta(seconds=10)
UNTIL_SYNCED: Final = timedelta(seconds=1)
SETTLED_TIME: Final = timedelta(minutes=5)
"""After that a method is asked again even if nothing has changed."""
_KEY: Final = "disruption"
_DURATION: Final = "voluntary_disruption_decision_evaluation_duration_seconds"

Version = Callable[[], object]
"""Returns a value that differs once something has changed that consolidation depends on."""


class DisruptionController:
    """Observe, decide, apply. What goes, and in which order, is decided in core.disruption."""

    def __init__(
        self,
        context: ControllerContext,
        state: ClusterState,
        commands: Commands,
        nominations: Nominations,
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
        self._settled: tuple[object, datetime, frozenset[str]] | None = None
        """Methods that found nothing: at which version, since when."""
        self._due: datetime | None = None
        """When to look at everything again; None is now."""

    def listen(self, listener: OnVerdict) -> None:
        """Pass every verdict from now on to a listener."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Disrupt what may be disrupted, until cancelled."""
        self._work_queue.add(_KEY)
        await self._work_queue.run(self._work, on_failure=self._context.on_failure)

    async def reconcile(self) -> timedelta:
        """Take the next steps; return after how long to look again."""
        was_forming = self._commands.is_forming
        # What has begun goes on, even while too little is known to decide anything new.
        step = await self._queue.go_on()
        if self._state.is_synced:
            due = await self._queue.validate(self._last)
            step = min((each for each in (step, due) if each is not None), default=None)
        now = self._context.clock.now()
        has_formed = was_forming and not self._commands.is_forming
        if self._due is None or self._due <= now or has_formed:
            pause = await self._look() if self._state.is_synced else UNTIL_SYNCED
            now = self._context.clock.now()
            self._due = now + pause
        return min(self._due - now, step or PERIOD)

    async def _work(self, key: str) -> float:
        del key
        return (await self.reconcile()).total_seconds()

    async def _look(self) -> timedelta:
        """Undo what no command accounts for, then go through the methods."""
        seen = self._queue.observe()
        strays = await decide_aside(lambda: list(find_strays(seen.snapshot)))
        changes = [NodeChange(node.claim, node.name, changes) for node, changes in strays]
        await self._queue.carry_out(changes, seen)
        if self._commands.is_forming:
            return PERIOD
        return await self._go_through(seen)

    async def _go_through(self, seen: Observation) -> timedelta:
        """Ask the methods in their order; the first with a command ends the pass."""
        version, now = self._version(), self._context.clock.now()
        question = DisruptionQuestion(seen.snapshot, self._settled_at(version, now))
        made = Pass(question, self._last)
        for method in made.methods():
            began = self._context.clock.now()
            proposal = await decide_aside(partial(made.propose, method))
            took = self._context.clock.now() - began
            await self._context.writer.carry_out(
                joined(proposal.as_changes(), _evaluated(method, took))
            )
        self._last = made
        since = now if self._is_new(version) else self._since(now)
        self._settled = version, since, made.settled()
        verdict = made.verdict()
        self._tell(question, verdict)
        for command in verdict.commands:
            await self._queue.add(command, seen)
        return PACE if verdict.commands else PERIOD

    def _settled_at(self, version: object, now: datetime) -> frozenset[str]:
        """Return the methods that would find nothing again."""
        if self._settled is None or self._is_new(version):
            return frozenset()
        return frozenset() if now - self._settled[1] >= SETTLED_TIME else self._settled[2]

    def _is_new(self, version: object) -> bool:
        return self._settled is None or self._settled[0] != version

    def _since(self, now: datetime) -> datetime:
        assert self._settled is not None
        return now if now - self._settled[1] >= SETTLED_TIME else self._settled[1]

    def _tell(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        for listener in self._listeners:
            listener(question, verdict)


def _evaluated(method: DisruptionMethod, took: timedelta) -> Changes:
    labels = {
        "reason": method.reason.value.lower(),
        "consolidation_type": method.consolidation_type,
    }
    return Changes(counts=(Count(_DURATION, labels, took.total_seconds()),))
