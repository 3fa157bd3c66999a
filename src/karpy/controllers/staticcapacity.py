"""The controller `static`: keep NodePools with `spec.replicas` at that many NodeClaims."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from karpy.codec.crds import read_pool
from karpy.controllers.context import ControllerContext, decide_aside, read, seconds
from karpy.controllers.queue import WorkQueue
from karpy.core.announcements import created_count, created_remark
from karpy.core.lifecycle.changes import Changes
from karpy.core.nodepool.staticcapacity import count_claims, shortage, surplus
from karpy.core.staticpools import adjust, verdict_of_adjustment
from karpy.errors import ClusterError, NotFound
from karpy.model.backoff import Backoff
from karpy.model.conditions import READY
from karpy.model.kinds import NODE_CLAIM, NODE_POOL
from karpy.model.nodes import Node
from karpy.model.pools import Headcount
from karpy.model.records import ClaimRecord, PoolRecord
from karpy.model.snapshot import FillUpQuestion, PoolQuestion, Snapshot, ThinOutQuestion
from karpy.model.verdicts import Launch, PoolVerdict
from karpy.ports.cluster import Cluster
from karpy.ports.records import Kept

WORKERS: Final = 10
_DELIVERY_TIME: Final = timedelta(seconds=10)
"""Longest time in which a watch delivers a claim that was created."""
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_DELETED: Final = Changes(deletes_claim=True)

OnVerdict = Callable[[PoolQuestion, PoolVerdict], None]
"""Called with each decision about the size of a NodePool, and its question."""
Disrupting = Callable[[], Collection[str]]
"""Returns the names of the claims of commands that are being carried out."""


class _Memory(Struct):
    """Our writes of a pool's claims that no watch has delivered yet, and its backoff."""

    made: dict[str, datetime] = field(default_factory=dict)
    """Creation times of claims that no watch has delivered yet, by name."""
    deleted: set[str] = field(default_factory=set)
    """Claims whose deletion no watch has delivered yet."""
    backoff: Backoff = field(default_factory=lambda: Backoff(_FIRST_PAUSE, _LONGEST_PAUSE))
    not_before: datetime | None = None
    """When to create claims again, after claims that got no machine."""


class StaticCapacityController:
    """Observe, decide, apply. core.staticpools decides how many claims to create or delete."""

    def __init__(
        self,
        context: ControllerContext,
        cluster: Cluster,
        *,
        is_our_pool: Callable[[PoolRecord], bool] = lambda _: True,
        is_listed: Callable[[], bool] = lambda: True,
        disrupting: Disrupting = lambda: (),
    ) -> None:
        self._context = context
        self._cluster = cluster
        self._is_our_pool = is_our_pool
        self._is_listed = is_listed
        self._disrupting = disrupting
        self._queue = WorkQueue(context.observer)
        self._memories: dict[str, _Memory] = {}
        self._listeners: list[OnVerdict] = []
        context.records.pools.listen(self._on_pool)
        context.records.claims.listen(self._on_claim)
        for kept in context.records.pools.all():
            self._queue.add(kept.record.name)

    def listen(self, listener: OnVerdict) -> None:
        """Call a function with every verdict from now on."""
        self._listeners.append(listener)

    async def run(self, workers: int = WORKERS) -> None:
        """Keep pools at their size, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Bring one pool to its size; return after how long to reconcile again."""
        if self._find(name) is None:
            self._memories.pop(name, None)
            return None
        memory = self._memories.setdefault(name, _Memory())
        await self._settle(memory)
        pauses = [await self._fill_up(name, memory), await self._thin_out(name, memory)]
        return min((each for each in pauses if each is not None), default=None)

    def _find(self, name: str) -> Kept[PoolRecord] | None:
        """Return a static pool of ours in its present state, or None."""
        kept = self._context.records.pools.get(name)
        if kept is None or kept.record.replicas is None or not self._is_our_pool(kept.record):
            return None
        return kept

    async def _fill_up(self, name: str, memory: _Memory) -> float | None:
        kept, now = self._find(name), self._context.clock.now()
        if kept is None:
            return None
        # Differs: a static NodePool whose NodeClaim gets no machine: Karpenter creates another
        # NodeClaim at once, without end; Karpy pauses between attempts.
        if memory.not_before is not None and now < memory.not_before:
            return seconds(memory.not_before - now)
        heads = self._count(kept.record, memory)
        heads = replace(heads, active=heads.active + len(memory.made))
        template = None
        # The template of a pool that is not ready may be invalid.
        if shortage(kept.record, heads) and kept.record.conditions.is_true(READY):
            template = read(read_pool, NODE_POOL, kept.obj)
        question = FillUpQuestion(now, kept.record, heads, template, self._is_listed())
        pause, verdict = await self._decide(question)
        if verdict.launch is not None:
            creating = [self._create(verdict.launch, memory) for _ in range(verdict.creates)]
            await _all_done(creating)
        return pause

    async def _thin_out(self, name: str, memory: _Memory) -> float | None:
        """Delete surplus claims, among those that a watch has delivered."""
        kept = self._find(name)
        if kept is None:
            return None
        heads, nodes = self._count(kept.record, memory), tuple[Node, ...]()
        reads_deletion_cost = True
        if surplus(kept.record, heads):
            snapshot = self._cluster.snapshot()
            nodes = self._nodes(kept.record, snapshot, memory)
            reads_deletion_cost = not snapshot.settings.manages_deletion_cost
        pods = tuple(
            pod for each in nodes for pod in self._context.records.pods.by_index(each.name)
        )
        now = self._context.clock.now()
        question = ThinOutQuestion(now, kept.record, heads, nodes, pods, reads_deletion_cost)
        pause, verdict = await self._decide(question)
        await _all_done([self._delete(each, memory) for each in verdict.deletes])
        return pause

    async def _decide(self, question: PoolQuestion) -> tuple[float | None, PoolVerdict]:
        """Decide, and pass the verdict to listeners; return also when to reconcile again."""
        adjustment = await decide_aside(lambda: adjust(question))
        verdict = verdict_of_adjustment(question, adjustment)
        for listener in self._listeners:
            listener(question, verdict)
        await self._context.writer.carry_out(Changes(remarks=adjustment.remarks))
        return seconds(adjustment.requeue_after), verdict

    def _nodes(self, pool: PoolRecord, snapshot: Snapshot, memory: _Memory) -> tuple[Node, ...]:
        """Return the nodes of a pool; nodes of commands count as deleting."""
        deleting = self._deleting(memory)
        return tuple(
            replace(each, is_deleting=True) if each.claim in deleting else each
            for each in snapshot.nodes
            if each.claim_record is not None
            and each.claim_record.pool == pool.name
            and not each.is_foreign
        )

    def _count(self, pool: PoolRecord, memory: _Memory) -> Headcount:
        return count_claims(pool.name, self._claims_of(pool), self._deleting(memory))

    def _deleting(self, memory: _Memory) -> set[str]:
        return {*self._disrupting(), *memory.deleted}

    def _claims_of(self, pool: PoolRecord) -> list[ClaimRecord]:
        return [
            kept.record
            for kept in self._context.records.claims.all()
            if kept.record.pool == pool.name and self._context.is_ours(kept.record)
        ]

    async def _create(self, launch: Launch, memory: _Memory) -> ClusterError | None:
        try:
            name = await self._cluster.apply(launch)
        except ClusterError as error:
            # Returned, not raised: the other claims of the pool are created all the same.
            return error
        if self._context.records.claims.get(name) is None:
            memory.made[name] = self._context.clock.now()
        created = Changes(counts=(created_count(launch),), remarks=(created_remark(launch, name),))
        await self._context.writer.carry_out(created)
        return None

    async def _delete(self, name: str, memory: _Memory) -> ClusterError | None:
        memory.deleted.add(name)
        try:
            is_deleted = await self._context.writer.carry_out(
                _DELETED, claim=self._context.claim(name)
            )
        except ClusterError as error:
            memory.deleted.discard(name)
            return error
        if not is_deleted or self._context.claim(name) is None:
            memory.deleted.discard(name)
        return None

    async def _settle(self, memory: _Memory) -> None:
        """Drop created claims that are gone before any watch has delivered them."""
        since = self._context.clock.now() - _DELIVERY_TIME
        for name in [each for each, made in memory.made.items() if made <= since]:
            try:
                await self._context.objects.get(NODE_CLAIM, name)
            except NotFound:
                memory.made.pop(name, None)

    def _on_pool(
        self, key: str, before: Kept[PoolRecord] | None, after: Kept[PoolRecord] | None
    ) -> None:
        if before is None or after is None or _size(before.record) != _size(after.record):
            self._queue.add(key)

    def _on_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        latest = after or before
        memory = None if latest is None else self._memories.get(latest.record.pool)
        if latest is None or memory is None:
            return
        memory.made.pop(key, None)
        is_launched = bool(latest.record.provider_id)
        if _is_staying(after):
            if is_launched:
                memory.backoff.reset()
        elif _is_staying(before):
            if not is_launched and key not in memory.deleted:
                self._pause(memory)
            memory.deleted.discard(key)
        if before is None or after is None or _is_staying(before) != _is_staying(after):
            self._queue.add(latest.record.pool)

    def _pause(self, memory: _Memory) -> None:
        """Pause before the next claims are created; claims that fail together count once."""
        now = self._context.clock.now()
        if memory.not_before is None or memory.not_before <= now:
            memory.not_before = now + timedelta(seconds=memory.backoff.next_pause())


async def _all_done(calls: Iterable[Coroutine[Any, Any, ClusterError | None]]) -> None:
    """Wait for all calls; raise the first error, if there is any."""
    failures = [each for each in await asyncio.gather(*calls) if each is not None]
    if failures:
        raise failures[0]


def _is_staying(kept: Kept[ClaimRecord] | None) -> bool:
    return kept is not None and not kept.record.meta.is_deleting


def _size(pool: PoolRecord) -> tuple[object, ...]:
    """Return the values that the size of a pool depends on."""
    is_deleting = pool.meta.is_deleting
    return pool.replicas, pool.limits, pool.conditions.is_true(READY), is_deleting
