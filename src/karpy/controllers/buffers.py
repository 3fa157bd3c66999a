"""The controller `capacitybuffer`: statuses of CapacityBuffers, and triggers of decisions."""

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import chain
from typing import Final

from karpy.codec.buffers import buffer_writes
from karpy.controllers.context import AFTER_CONFLICT, ControllerContext
from karpy.controllers.queue import WorkQueue
from karpy.controllers.writer import write_status
from karpy.core.buffers import (
    PERIOD,
    BufferPlacement,
    find_placements,
    judge_placement,
    pods_by_node,
    resolve,
    settle,
)
from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.model.buffers import BufferRecord, PodSource
from karpy.model.kinds import CAPACITY_BUFFER
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.verdicts import Verdict
from karpy.ports.buffers import Buffers
from karpy.ports.records import Kept

WORKERS: Final = 10

Trigger = Callable[[str], None]
"""Triggers a decision, by the UID of the buffer that needs it."""


class BufferController:
    """
    Observe, decide, apply. core.buffers decides the pods and the conditions of buffers.

    A buffer triggers a decision when it changes, when pods or the end of a node take its room, and
    when there may be new room for it; besides every 30 seconds, as in Karpenter.
    """

    def __init__(self, context: ControllerContext, book: Buffers, trigger: Trigger) -> None:
        self._context = context
        self._book = book
        self._trigger = trigger
        self._queue = WorkQueue(context.observer)
        self._triggered: dict[str, datetime] = {}
        """When each buffer last triggered a decision."""
        self._placements: dict[str, BufferPlacement] = {}
        """Where the last decision has placed the pods of each buffer."""
        self._counts: Mapping[str, int] = {}
        book.buffers.listen(self._on_buffer)
        for kind, sources in book.sources.items():
            sources.listen(self._source_listener(kind))
        context.records.pods.listen(self._on_pod)
        context.records.claims.listen(self._on_claim)
        for kept in book.buffers.all():
            self._queue.add(kept.record.key)

    async def run(self, workers: int = WORKERS) -> None:
        """Write the statuses of buffers and trigger decisions, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    def pods_on(self, node: str) -> int:
        """Return the number of buffer pods placed on a node: with any, the node is not empty."""
        kept = self._context.records.nodes.get(node)
        claims = () if kept is None else self._context.claims_of(kept.record)
        # The last decision may have placed pods before the node existed, by the name of its claim.
        names = (node, *(claim.record.name for claim in claims))
        return max(self._counts.get(name, 0) for name in names)

    def record(self, verdict: Verdict) -> None:
        """Record where a decision has placed the pods of buffers."""
        keys = [kept.record.key for kept in self._book.buffers.all()]
        rooms = {key: room for key in keys if (room := self._book.room_of(key))}
        self._counts = pods_by_node(chain.from_iterable(rooms.values()), verdict)
        for key, placement in find_placements(rooms, verdict).items():
            if self._placements.get(key) != placement:
                self._placements[key] = placement
                self._queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        """Write the status of one buffer; return after how long it triggers a decision again."""
        kept = self._book.buffers.get(key)
        if kept is None or kept.record.meta.is_deleting:
            return None
        buffer, now = kept.record, self._context.clock.now()
        kind, source = buffer.source
        sources = self._book.sources.get(kind)
        resolution = resolve(buffer, None if sources is None else sources.get(source))
        settled = settle(buffer, resolution, now, self._book.allowed_of(key))
        judged = judge_placement(settled, self._placements.get(key), now)
        status = buffer_writes(buffer, judged).status
        if not await write_status(
            self._context.objects, CAPACITY_BUFFER, buffer.meta, status, namespace=buffer.namespace
        ):
            return AFTER_CONFLICT
        return self._trigger_if_due(key, buffer, now)

    def _trigger_if_due(self, key: str, buffer: BufferRecord, now: datetime) -> float:
        """Trigger a decision if one is due; return after how long the next is due."""
        triggered = self._triggered.get(key)
        if triggered is None or now - triggered >= PERIOD:
            self._triggered[key] = triggered = now
            self._trigger(buffer.meta.uid)
        return (triggered + PERIOD - now).total_seconds()

    def _on_pod(self, _: str, before: Pod | None, after: Pod | None) -> None:
        had, has = _place_of(before), _place_of(after)
        # Differs: pods that take the room of a CapacityBuffer: Karpenter decides about the buffer
        # again within 30 seconds; Karpy does so at once.
        if had != has and ((has and self._is_kept(has)) or (had and self._is_short)):
            self._trigger_now()

    def _on_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        was_open, is_open = _is_open(before), _is_open(after)
        name = "" if before is None else before.record.node_name
        is_lost = was_open and not is_open and (self._is_kept(name) or self._is_kept(key))
        if is_lost or (is_open and not was_open and self._is_short):
            self._trigger_now()

    @property
    def _is_short(self) -> bool:
        """Whether a buffer lacks room, or waits for nodes that are being launched."""
        return any(each.launched or each.failed for each in self._placements.values())

    def _is_kept(self, node: str) -> bool:
        """Say whether pods of a buffer are placed on a node."""
        return bool(self._counts) and self.pods_on(node) > 0

    def _trigger_now(self) -> None:
        """Trigger a decision by any buffer: each decision is about all of them."""
        buffer = next(iter(self._book.buffers.all()), None)
        if buffer is not None:
            self._trigger(buffer.record.meta.uid)

    def _on_buffer(
        self, key: str, before: Kept[BufferRecord] | None, after: Kept[BufferRecord] | None
    ) -> None:
        if before is not None and after is not None and _is_same(before.record, after.record):
            return
        self._requeue(key)
        if after is None and before is not None:
            # Only a new decision frees the nodes that have kept room for the buffer.
            self._trigger(before.record.meta.uid)

    def _source_listener(
        self, kind: str
    ) -> Callable[[str, PodSource | None, PodSource | None], None]:
        def on_source(key: str, before: PodSource | None, after: PodSource | None) -> None:
            del before, after
            for kept in self._book.buffers.all():
                if kept.record.source == (kind, key):
                    self._requeue(kept.record.key)

        return on_source

    def _requeue(self, key: str) -> None:
        self._triggered.pop(key, None)
        self._placements.pop(key, None)
        self._queue.add(key)


def _place_of(pod: Pod | None) -> str:
    """Return the name of the node whose room a pod takes; empty if it takes none."""
    return "" if pod is None or pod.is_terminal else pod.node_name


def _is_open(claim: Kept[ClaimRecord] | None) -> bool:
    """Say whether a claim has a node that is open for pods."""
    if claim is None or claim.record.meta.is_deleting:
        return False
    return claim.record.conditions.is_true(INITIALIZED)


def _is_same(before: BufferRecord, after: BufferRecord) -> bool:
    """Say whether only the status of a buffer has changed."""
    return before.meta.uid == after.meta.uid and before.meta.generation == after.meta.generation
