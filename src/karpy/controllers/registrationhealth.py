"""The controller `nodepool.registrationhealth`: the condition NodeRegistrationHealthy."""

from collections.abc import Callable

from karpy.controllers.context import AFTER_CONFLICT, ControllerContext
from karpy.controllers.nodeclasses import users_of
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.changes import Changes
from karpy.core.nodepool.readiness import (
    HealthUpdate,
    RegistrationHealth,
    record_attempt,
    refresh_health,
)
from karpy.model.records import ClaimRecord, NodeClassRef, PoolRecord
from karpy.ports.records import Kept

GenerationOf = Callable[[PoolRecord], int | None]
"""Returns the generation of a pool's node class, None if it is gone or not ours."""


class RegistrationHealthController:
    """Observe, decide, apply. core.nodepool decides."""

    def __init__(
        self,
        context: ControllerContext,
        generation_of: GenerationOf = lambda pool: pool.class_generation or 0,
    ) -> None:
        self._context = context
        self._generation_of = generation_of
        self._queue = WorkQueue(context.observer)
        self._health: dict[str, RegistrationHealth] = {}
        self._attempts: dict[str, list[tuple[ClaimRecord, bool]]] = {}
        """Attempts that are not written yet, by pool."""
        context.records.pools.listen(self._hear_pool)
        for kept in context.records.pools.all():
            self._queue.add(kept.record.name)

    def record(self, claim: ClaimRecord, changes: Changes) -> None:
        """Record whether the node of a claim has registered."""
        if claim.pool and changes.has_registered is not None:
            self._attempts.setdefault(claim.pool, []).append((claim, changes.has_registered))
            self._queue.add(claim.pool)

    def hear_class(self, ref: NodeClassRef) -> None:
        """Reconcile the pools of a node class that has changed."""
        for name in users_of(ref, self._context.records.pools):
            self._queue.add(name)

    async def run(self) -> None:
        """Reconcile pools, until cancelled."""
        await self._queue.run(self.reconcile, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Write the condition of one pool."""
        kept = self._context.records.pools.get(name)
        attempts = tuple(self._attempts.get(name, ()))
        if kept is None:
            self._attempts.pop(name, None)
            self._health.pop(name, None)
            return None
        now = self._context.clock.now()
        health, generation = (
            self._health.get(name, RegistrationHealth()),
            self._generation_of(kept.record),
        )
        update = HealthUpdate(health, kept.record)
        if generation is not None:
            update = refresh_health(health, kept.record, generation, now)
        for claim, is_success in attempts:
            update = record_attempt(update.health, update.pool, claim, now, is_success=is_success)
        if not await self._context.writer.carry_out(Changes(pool=update.pool), pool=kept):
            return AFTER_CONFLICT
        # An attempt is remembered only once it is written: after a conflict it would count twice.
        self._health[name] = update.health
        del self._attempts.get(name, [])[: len(attempts)]
        return None

    def _hear_pool(
        self, key: str, before: Kept[PoolRecord] | None, after: Kept[PoolRecord] | None
    ) -> None:
        del before, after
        self._queue.add(key)
