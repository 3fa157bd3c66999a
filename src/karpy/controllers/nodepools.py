"""The controllers of NodePools: conditions, hash, usage, registration health and metrics."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from karpy.barriers import Barrier
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.poolrules import find_faults
from karpy.codec.templates import read_template
from karpy.controllers.context import AFTER_CONFLICT, ControllerContext, read, seconds
from karpy.controllers.nodeclasses import NodeClasses, users_of
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.changes import Changes, joined
from karpy.core.nodepool.hash import hash_template, stamp
from karpy.core.nodepool.readiness import (
    HealthUpdate,
    RegistrationHealth,
    judge_readiness,
    judge_unserved,
    judge_validity,
    record_attempt,
    refresh_health,
)
from karpy.core.nodepool.usage import (
    GAUGES,
    PoolCosts,
    add_up_costs,
    judge_usage,
    new_cost_errors,
    pool_gauges,
    usage_by_pool,
)
from karpy.model.kinds import NODE_POOL
from karpy.model.labels import WELL_KNOWN
from karpy.model.nodes import Node
from karpy.model.records import ClaimRecord, NodeClassRef, PoolRecord
from karpy.model.resources import Resources
from karpy.ports.records import Kept

WORKERS: Final = 10

Nodes = Callable[[], Sequence[Node] | None]
"""Returns all nodes, the same sequence until one changes; None until the state is synced."""
Deleting = Callable[[], Collection[str]]
"""Returns the names of claims that commands are going to delete."""
GenerationOf = Callable[[PoolRecord], int | None]
"""Returns the generation of a pool's node class; None if it is gone or not ours."""

METRICS_PERIOD: Final = timedelta(seconds=10)
PRICED_FOR: Final = timedelta(hours=1)
"""How long the sums of prices are kept while NodeClaims do not change."""

_Series: TypeAlias = dict[tuple[str, ...], float]


class _Reading(Struct, frozen=True):
    """Hash and faults of a pool, which depend on its specification alone."""

    uid: str
    generation: int
    digest: str
    faults: tuple[str, ...]


class NodePoolController:
    """Observe, decide, apply. All changes of a pool are written in one patch."""

    def __init__(
        self,
        context: ControllerContext,
        classes: NodeClasses,
        nodes: Nodes,
        *,
        deleting: Deleting = lambda: (),
        well_known: frozenset[str] = WELL_KNOWN,
    ) -> None:
        self._context = context
        self._classes = classes
        self._nodes = nodes
        self._deleting = deleting
        self._well_known = well_known
        """Labels that pools may require, including those of our cloud."""
        self._queue = WorkQueue(context.observer)
        self._readings: dict[str, _Reading] = {}
        self._counted: tuple[Sequence[Node], frozenset[str]] = ((), frozenset())
        self._usage: Mapping[str, Resources] = {}
        context.records.pools.listen(self._on_pool)
        classes.listen(self._on_class)
        for kept in context.records.pools.all():
            self._queue.add(kept.record.name)

    async def run(self, workers: int = WORKERS) -> None:
        """Reconcile pools, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Reconcile one pool; return after how long to reconcile again."""
        kept = self._context.records.pools.get(name)
        if kept is None or not self._classes.is_our_pool(kept.record):
            self._readings.pop(name, None)
            return None if kept is None else await self._disown(kept)
        reading = self._read(kept)
        stamped = stamp(kept.record, reading.digest, self._claims_of(name))
        if not await self._write_claims(stamped.claims):
            return AFTER_CONFLICT
        changes = self._judge(stamped.pool, reading)
        if not await self._context.writer.carry_out(changes, pool=kept):
            return AFTER_CONFLICT
        return seconds(changes.requeue_after)

    async def _disown(self, kept: Kept[PoolRecord]) -> float | None:
        """Write on a pool that its node class is of a kind that our cloud does not serve."""
        now, served = self._context.clock.now(), self._classes.served()
        changes = judge_unserved(kept.record, served, now)
        is_written = await self._context.writer.carry_out(changes, pool=kept)
        return None if is_written else AFTER_CONFLICT

    def _judge(self, pool: PoolRecord, reading: _Reading) -> Changes:
        now, ref = self._context.clock.now(), pool.node_class
        changes = judge_validity(pool, reading.faults, now)
        if self._classes.is_listed(ref):
            then = judge_readiness(changes.pool or pool, self._classes.find(ref), now)
            changes = joined(changes, then)
        return joined(changes, judge_usage(changes.pool or pool, self._count()))

    def _read(self, kept: Kept[PoolRecord]) -> _Reading:
        """Hash and validate the specification of a pool, once per generation."""
        meta = kept.record.meta
        known = self._readings.get(meta.name)
        if known is None or (known.uid, known.generation) != (meta.uid, meta.generation):
            digest = hash_template(read(read_template, NODE_POOL, kept.obj))
            faults = tuple(str(each) for each in read(self._find_faults, NODE_POOL, kept.obj))
            known = _Reading(meta.uid, meta.generation, digest, faults)
            self._readings[meta.name] = known
        return known

    def _find_faults(self, fields: Fields) -> tuple[FieldInvalid, ...]:
        return find_faults(fields, self._well_known)

    def _count(self) -> Mapping[str, Resources] | None:
        """Return the resources of the nodes of each pool; add them up only after a change."""
        nodes = self._nodes()
        if nodes is None:
            return None
        deleting = frozenset(self._deleting())
        if nodes is not self._counted[0] or deleting != self._counted[1]:
            self._usage = usage_by_pool(nodes, deleting)
            self._counted = nodes, deleting
        return self._usage

    def _claims_of(self, pool: str) -> Iterator[ClaimRecord]:
        for kept in self._context.records.claims.all():
            if kept.record.pool == pool and self._context.is_ours(kept.record):
                yield kept.record

    async def _write_claims(self, claims: Sequence[ClaimRecord]) -> bool:
        # All claims are looked up before the first write: the patches belong to one state.
        pairs = [(claim, self._context.claim(claim.name)) for claim in claims]
        for claim, kept in pairs:
            if not await self._context.writer.carry_out(Changes(claim=claim), claim=kept):
                return False
        return True

    def _on_pool(
        self, key: str, before: Kept[PoolRecord] | None, after: Kept[PoolRecord] | None
    ) -> None:
        del before, after
        self._queue.add(key)

    def _on_class(self, ref: NodeClassRef) -> None:
        for name in users_of(ref, self._context.records.pools):
            self._queue.add(name)


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
        """Attempts to register a node that are not written yet, by pool."""
        context.records.pools.listen(self._on_pool)
        for kept in context.records.pools.all():
            self._queue.add(kept.record.name)

    def record(self, claim: ClaimRecord, changes: Changes) -> None:
        """Record whether the node of a claim has registered."""
        if claim.pool and changes.has_registered is not None:
            self._attempts.setdefault(claim.pool, []).append((claim, changes.has_registered))
            self._queue.add(claim.pool)

    def on_class(self, ref: NodeClassRef) -> None:
        """Reconcile the pools of a node class that has changed."""
        for name in users_of(ref, self._context.records.pools):
            self._queue.add(name)

    async def run(self) -> None:
        """Reconcile pools, until cancelled."""
        await self._queue.run(self.reconcile, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Write the condition NodeRegistrationHealthy of one pool."""
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
        # Keep attempts only once they are written: after a conflict they would count twice.
        self._health[name] = update.health
        del self._attempts.get(name, [])[: len(attempts)]
        return None

    def _on_pool(
        self, key: str, before: Kept[PoolRecord] | None, after: Kept[PoolRecord] | None
    ) -> None:
        del before, after
        self._queue.add(key)


class Gauges(Protocol):
    """The gauges of a metrics registry."""

    def labels(self, metric: str) -> tuple[str, ...]:
        """Return the label names of a metric, in their order."""

    def replace(self, metric: str, values: Mapping[tuple[str, ...], float]) -> None:
        """Set all series of a gauge at once, by the values of its labels in their order."""


class NodePoolMetrics:
    """Sets the gauges of all pools; a pool that is gone has no series."""

    def __init__(
        self,
        context: ControllerContext,
        gauges: Gauges,
        is_our_pool: Callable[[PoolRecord], bool] = lambda _: True,
    ) -> None:
        self._context = context
        self._gauges = gauges
        self._is_our_pool = is_our_pool
        self._costs = PoolCosts({})
        self._priced: datetime | None = None
        """When costs were added up; None if claims were created, relabeled or deleted since."""
        context.records.claims.listen(self._on_claim)

    async def run(self) -> None:
        """Set the gauges every ten seconds, until cancelled."""
        while True:
            with Barrier(partial(self._context.on_failure, "metrics of NodePools")):
                await self.refresh()
            await asyncio.sleep(METRICS_PERIOD.total_seconds())

    async def refresh(self) -> None:
        """Set the gauges to the present state of pools."""
        try:
            await self._price()
        finally:
            self._set_gauges()

    def _set_gauges(self) -> None:
        pools = [kept.record for kept in self._context.records.pools.all()]
        ours = [each for each in pools if self._is_our_pool(each)]
        series: dict[str, _Series] = {metric: {} for metric in GAUGES}
        for count in pool_gauges(ours, self._costs):
            names = self._gauges.labels(count.metric)
            series[count.metric][tuple(count.labels[name] for name in names)] = count.value
        for metric, values in series.items():
            self._gauges.replace(metric, values)

    async def _price(self) -> None:
        """Add up costs, unless the claims are the same and the prices less than an hour old."""
        now = self._context.clock.now()
        if self._priced is not None and now - self._priced < PRICED_FOR:
            return
        catalog = self._context.cloud.catalog()
        self._priced = now
        claims = (kept.record for kept in self._context.records.claims.all())
        ours = (each for each in claims if self._context.is_ours(each))
        costs = add_up_costs(ours, catalog)
        await self._context.writer.carry_out(new_cost_errors(costs, self._costs))
        self._costs = costs

    def _on_claim(
        self, _: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        if before is None or after is None or before.record.meta.labels != after.record.meta.labels:
            self._priced = None
