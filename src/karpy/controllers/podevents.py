"""The controller `nodeclaim.podevents`: the time of the last pod event on each NodeClaim."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from karpy.controllers.context import AFTER_CONFLICT, ControllerContext
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.markers import PodEvent, can_wait, note_pod_event
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord

WORKERS: Final = 10
_LATER_SECONDS: Final = 1.0


class PodEventController:
    """Observe, decide, apply. core.lifecycle decides."""

    def __init__(
        self, context: ControllerContext, is_busy: Callable[[], bool] = lambda: False
    ) -> None:
        self._context = context
        self._is_busy = is_busy
        """Whether pods wait for writes that are more urgent."""
        self._queue = WorkQueue(context.observer)
        self._noted: dict[str, PodEvent] = {}
        """The last event of each claim, by name, that is not written yet."""
        self._since: dict[str, datetime] = {}
        """Since when an event of each claim waits to be written."""
        context.records.pods.listen(self._hear_pod)

    async def run(self, workers: int = WORKERS) -> None:
        """Write pod events, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    def holds(self, claim: str) -> bool:
        """Say whether an event of a claim is not written yet."""
        return claim in self._noted

    async def reconcile(self, name: str) -> float | None:
        """Write the last pod event of one claim."""
        kept, event = self._context.claim(name), self._noted.get(name)
        if kept is not None and event is not None and self._is_better_later(kept.record):
            return _LATER_SECONDS
        self._noted.pop(name, None)
        self._since.pop(name, None)
        if kept is None or event is None:
            return None
        changes = note_pod_event(kept.record, event)
        if not await self._context.writer.carry_out(changes, claim=kept):
            self._noted.setdefault(name, event)
            self._since.setdefault(name, event.moment)
            return AFTER_CONFLICT
        return None

    def _is_better_later(self, claim: ClaimRecord) -> bool:
        now = self._context.clock.now()
        return self._is_busy() and can_wait(claim, self._since.get(claim.name, now), now)

    def _hear_pod(self, _: str, before: Pod | None, after: Pod | None) -> None:
        node = None if after is None else self._context.records.nodes.get(after.node_name)
        if after is None or node is None:
            return
        event = PodEvent(before, after, self._context.clock.now())
        for claim in self._context.claims_of(node.record):
            if note_pod_event(claim.record, event).claim is not None:
                self._noted[claim.record.name] = event
                self._since.setdefault(claim.record.name, event.moment)
                self._queue.add(claim.record.name)
