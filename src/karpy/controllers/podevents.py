"""When pods come to nodes and leave them is written on NodeClaims."""

from typing import Final

from karpy.controllers.desk import AFTER_CONFLICT, Desk
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.podevents import note_pod_event
from karpy.model.pods import Pod

WORKERS: Final = 10


class PodEventController:
    """Notes on claims when pods come to their nodes and leave them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._queue = WorkQueue(desk.observer)
        self._noted: dict[str, tuple[Pod | None, Pod]] = {}
        """What has happened to a pod of each claim, by name, and is not written yet."""
        desk.records.pods.listen(self._hear_pod)

    async def run(self, workers: int = WORKERS) -> None:
        """Write down when something happened, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._desk.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Write down what happened on the node of one claim."""
        kept, event = self._desk.claim(name), self._noted.pop(name, None)
        if kept is None or event is None:
            return None
        outcome = note_pod_event(kept.record, *event, self._desk.clock.now())
        if not await self._desk.keeper.carry_out(outcome, claim=kept):
            self._noted.setdefault(name, event)
            return AFTER_CONFLICT
        return None

    def _hear_pod(self, _: str, before: Pod | None, after: Pod | None) -> None:
        node = None if after is None else self._desk.records.nodes.get(after.node_name)
        if after is None or node is None:
            return
        now = self._desk.clock.now()
        for claim in self._desk.claims_of(node.record):
            if note_pod_event(claim.record, before, after, now).claim is not None:
                self._noted[claim.record.name] = before, after
                self._queue.add(claim.record.name)
