"""Nodes that are broken or that nobody needs go, within budgets."""

from datetime import datetime, timedelta
from typing import Final

from karpy.codec.uids import derived_uid
from karpy.controllers.context import ControllerContext
from karpy.controllers.lookout import BufferPods, Look, Lookout
from karpy.controllers.nominations import Nominations
from karpy.controllers.offloading import decide_aside
from karpy.controllers.queue import WorkQueue
from karpy.controllers.remedies import Remedies, RepairRules
from karpy.controllers.rollouts import OnVerdict, Rollouts
from karpy.core.disruption.advancing import Change
from karpy.core.disruption.decide import verdict_of_proposal
from karpy.core.disruption.emptiness import Proposal, propose_empty
from karpy.core.disruption.marks import find_strays
from karpy.core.disruption.rollout import begin_rollout
from karpy.core.lifecycle.changes import Changes, Count
from karpy.model.questions import DisruptionQuestion, EmptyNodesQuestion
from karpy.model.verdicts import DisruptionVerdict
from karpy.ports.cluster import Cluster

PERIOD: Final = timedelta(seconds=10)
UNTIL_SYNCED: Final = timedelta(seconds=1)
_KEY: Final = "disruption"
_DURATION: Final = "voluntary_disruption_decision_evaluation_duration_seconds"


class DisruptionController:
    """Observe, decide, apply. What goes, when and in which order is decided in core.disruption."""

    def __init__(
        self,
        context: ControllerContext,
        cluster: Cluster,
        nominations: Nominations,
        *,
        buffer_pods: BufferPods = lambda _: 0,
        reads_deletion_cost: bool = True,
        repair: RepairRules | None = None,
    ) -> None:
        self._context = context
        self._cluster = cluster
        self._lookout = Lookout(
            context,
            cluster,
            nominations,
            buffer_pods=buffer_pods,
            reads_deletion_cost=reads_deletion_cost,
        )
        self._rollouts = Rollouts(context, cluster, self._lookout, self._tell)
        self._remedies = Remedies(
            context, cluster, nominations, self._rollouts, repair or RepairRules(), self._tell
        )
        self._queue = WorkQueue(context.observer)
        self._listeners: list[OnVerdict] = []
        self._proposals = 0
        self._due: datetime | None = None
        """When to look at everything again; None is now."""

    def listen(self, listener: OnVerdict) -> None:
        """Have somebody told of every verdict from now on."""
        self._listeners.append(listener)

    def marked(self) -> frozenset[str]:
        """Return the claims whose pods need another place, though they are not deleted yet."""
        return self._rollouts.marked

    def disrupting(self) -> frozenset[str]:
        """Return the claims that are about to go, or to be replaced."""
        return self._rollouts.begun

    async def run(self) -> None:
        """Disrupt what may be disrupted, until cancelled."""
        self._queue.add(_KEY)
        await self._queue.run(self._work, on_failure=self._context.on_failure)

    async def reconcile(self) -> timedelta:
        """Take the next steps; return after how long to look again."""
        was_forming = self._rollouts.is_forming
        # What has begun goes on, even while too little is known to decide anything new.
        step = await self._rollouts.go_on()
        now, due = self._context.clock.now(), self._due
        if due is None or due <= now or (was_forming and not self._rollouts.is_forming):
            pause = await self._decide() if self._cluster.is_synced else UNTIL_SYNCED
            now = self._context.clock.now()
            due = self._due = now + pause
        return min(due - now, step or PERIOD)

    async def _work(self, key: str) -> float:
        del key
        return (await self.reconcile()).total_seconds()

    async def _decide(self) -> timedelta:
        """Look at everything: validate what was proposed, or propose something."""
        look = await self._lookout.look(self._rollouts.proposed | self._remedies.needed())
        await self._clean_up(look)
        pause = await self._rollouts.validate(look)
        if not self._rollouts.is_forming:
            pause = await self._remedies.give(look) or await self._propose(look)
        return pause or PERIOD

    async def _clean_up(self, look: Look) -> None:
        """Take off marks that no decision stands behind any more."""
        around = self._rollouts.amid(look.surroundings)
        strays = await decide_aside(lambda: list(find_strays(around)))
        changes = [
            Change(state.claim.name, state.name, outcome)
            for state, outcome in strays
            if state.claim is not None
        ]
        await self._rollouts.carry_out(changes, look)

    async def _propose(self, look: Look) -> timedelta | None:
        around = self._rollouts.amid(look.surroundings)
        began = self._context.clock.now()
        proposal = await decide_aside(lambda: propose_empty(around))
        self._tell(EmptyNodesQuestion(around), verdict_of_proposal(proposal))
        await self._context.writer.carry_out(_told(proposal, self._context.clock.now() - began))
        self._proposals += 1
        id_ = derived_uid("Rollout", str(around.now), str(self._proposals))
        rollout = begin_rollout(proposal, id_, around.now)
        return None if rollout is None else await self._rollouts.advance(rollout, look)

    def _tell(self, question: DisruptionQuestion, verdict: DisruptionVerdict) -> None:
        for listener in self._listeners:
            listener(question, verdict)


def _told(proposal: Proposal, duration: timedelta) -> Changes:
    labels = {
        "reason": proposal.reason.value.lower(),
        "consolidation_type": proposal.consolidation_type,
    }
    took = Count(_DURATION, labels, duration.total_seconds())
    return Changes(
        notices=proposal.notices, counts=(*proposal.counts, took), remarks=proposal.remarks
    )
