"""Decisions to disrupt nodes that are under way, each carried to its end."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta

from karpy.controllers.context import ControllerContext
from karpy.controllers.lookout import Look, Lookout
from karpy.controllers.occupancy import Occupants
from karpy.controllers.offloading import decide_aside
from karpy.core.disruption.advancing import Change, Progress, advance, amid_rollouts, start
from karpy.core.disruption.confirming import ask, confirm
from karpy.core.disruption.rollout import PACE, Rollout, Stage, with_launched
from karpy.core.disruption.sparing import unconfirmed, without_refused
from karpy.errors import ClusterError, KarpyError, NotFound
from karpy.model.kinds import NODE_CLAIM
from karpy.model.questions import DisruptionQuestion
from karpy.model.surroundings import Surroundings
from karpy.model.verdicts import DisruptionVerdict, Launch
from karpy.ports.cluster import Cluster

OnVerdict = Callable[[DisruptionQuestion, DisruptionVerdict], None]
"""Is told what was decided about nodes, and on what."""


class Rollouts:
    """
    Shows each rollout the cluster, does what it asks for, and keeps what it has become.

    They are kept in memory alone: whoever takes over finds their marks on the nodes, takes them off
    and decides anew.
    """

    def __init__(
        self,
        context: ControllerContext,
        cluster: Cluster,
        lookout: Lookout,
        on_verdict: OnVerdict = lambda *_: None,
    ) -> None:
        self._context = context
        self._cluster = cluster
        self._lookout = lookout
        self._on_verdict = on_verdict
        self._occupants = Occupants(context)
        self._rollouts: dict[str, Rollout] = {}
        self._deleted: set[str] = set()
        """UIDs of the claims that were deleted, whether we have heard of it or not."""
        self._unseen: set[str] = set()
        """Names of replacements that no watch has told of yet."""

    @property
    def is_forming(self) -> bool:
        """Whether nothing else may be proposed yet."""
        return any(each.is_forming for each in self._rollouts.values())

    @property
    def proposed(self) -> frozenset[str]:
        """The claims of rollouts that wait to be validated."""
        return frozenset(claim for each in self._waiting() for claim in each.busy)

    @property
    def begun(self) -> frozenset[str]:
        """The claims of rollouts that are carried out."""
        return frozenset(
            claim
            for each in self._rollouts.values()
            if each.stage is not Stage.PROPOSED
            for claim in each.busy
        )

    @property
    def marked(self) -> frozenset[str]:
        """The claims whose pods need another place, though they are not deleted yet."""
        return frozenset(claim for each in self._rollouts.values() for claim in each.marked)

    def amid(self, surroundings: Surroundings) -> Surroundings:
        """See the cluster with what is going on in it."""
        return amid_rollouts(surroundings, tuple(self._rollouts.values()))

    async def go_on(self) -> timedelta | None:
        """Go on with those that have begun; return after how long to look again."""
        begun = [each for each in self._rollouts.values() if each.stage is not Stage.PROPOSED]
        pauses = [await self._go_on(each) for each in begun]
        return min((each for each in pauses if each is not None), default=None)

    async def validate(self, look: Look) -> timedelta | None:
        """Show everything to those that wait for it; return after how long to look again."""
        pauses = [await self.advance(each, look) for each in self._waiting()]
        return min((each for each in pauses if each is not None), default=None)

    async def start(self, rollout: Rollout, look: Look) -> timedelta | None:
        """Begin with a rollout that needs no validation; return after how long to look again."""
        around = self.amid(look.surroundings)
        return await self._take(await decide_aside(lambda: start(rollout, around)), look)

    async def advance(self, rollout: Rollout, look: Look) -> timedelta | None:
        """Take the next step of a rollout, known or new; return after how long to look again."""
        around = self.amid(look.surroundings)
        return await self._take(await decide_aside(lambda: advance(rollout, around)), look)

    async def carry_out(self, changes: Iterable[Change], look: Look) -> None:
        """Change what was seen; what fails is told, and shows when somebody looks again."""
        await asyncio.gather(*(self.change(each, look) for each in changes))

    async def change(self, change: Change, look: Look) -> bool:
        """Change one node that was seen; say whether that is done."""
        claim = look.claims[change.claim]
        uid = claim.record.meta.uid
        if change.outcome.deletes_claim and uid in self._deleted:
            return True
        try:
            is_done = await self._context.writer.carry_out(
                change.outcome, claim=claim, node=look.nodes.get(change.claim)
            )
        except KarpyError as error:
            # The others must not suffer for it.
            self._context.on_failure(change.claim, error)
            return False
        if is_done and change.outcome.deletes_claim:
            self._deleted.add(uid)
        return is_done

    async def _take(self, planned: Progress, look: Look) -> timedelta | None:
        progress = await self._confirmed(planned, look)
        if progress is None:
            return PACE
        if progress.decision is not None:
            self._on_verdict(progress.decision.question, progress.decision.verdict)
        # Before anything is done: whoever decides meanwhile must know which nodes go.
        self._keep(progress.rollout)
        await self.carry_out(progress.changes, look)
        if progress.launches:
            await self._launch(progress.rollout, progress.launches)
        await self._context.writer.carry_out(progress.outcome)
        return progress.outcome.requeue_after

    async def _confirmed(self, progress: Progress, look: Look) -> Progress | None:
        """Leave out nodes whose pods forbid what is planned; None if the pods cannot be listed."""
        nodes = [
            each
            for each in unconfirmed(progress, look.surroundings)
            if look.claims[each.claim].record.meta.uid not in self._deleted
        ]
        if not nodes:
            return progress
        try:
            occupancy = await self._occupants.list([each.node for each in nodes])
        except KarpyError as error:
            self._context.on_failure(progress.rollout.id, error)
            return None
        question = ask(progress.rollout.reason, nodes, look.surroundings, occupancy)
        verdict = confirm(question)
        if not verdict.refusals:
            return progress
        self._on_verdict(question, verdict)
        return without_refused(progress, verdict.refusals, look.surroundings)

    async def _go_on(self, rollout: Rollout) -> timedelta | None:
        names = {each.claim for each in rollout.targets}
        names |= {each.claim for each in rollout.replacements}
        if await self._are_missing(names & self._unseen):
            return PACE
        return await self.advance(rollout, self._lookout.glance(sorted(names)))

    async def _are_missing(self, names: Iterable[str]) -> bool:
        """Say whether claims are there of which no watch has told yet."""
        for name in sorted(names):
            if self._context.claim(name) is None:
                with suppress(NotFound):
                    await self._context.objects.get(NODE_CLAIM, name)
                    return True
            self._unseen.discard(name)
        return False

    def _waiting(self) -> list[Rollout]:
        return [each for each in self._rollouts.values() if each.stage is Stage.PROPOSED]

    def _keep(self, rollout: Rollout) -> None:
        if rollout.is_over:
            self._rollouts.pop(rollout.id, None)
        else:
            self._rollouts[rollout.id] = rollout
        if not self._rollouts:
            self._deleted.clear()

    async def _launch(self, rollout: Rollout, launches: tuple[Launch, ...]) -> None:
        """Create the claims of all replacements, or of none."""
        answers = await asyncio.gather(
            *(self._cluster.apply(each) for each in launches), return_exceptions=True
        )
        made = [each for each in answers if isinstance(each, str)]
        failures = [each for each in answers if isinstance(each, BaseException)]
        if not failures:
            self._unseen |= set(made)
            self._keep(with_launched(rollout, made))
            return
        for name in made:
            # Not needed; should this fail, too, its node is empty and goes in time.
            with suppress(ClusterError):
                await self._context.objects.delete(NODE_CLAIM, name)
        for failure in failures:
            if not isinstance(failure, KarpyError):
                raise failure
            self._context.on_failure(rollout.id, failure)
