"""The controller `metrics.nodepool`: limits, usage and cost of NodePools as gauges."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol, TypeAlias

from karpy.barriers import Barrier
from karpy.controllers.context import ControllerContext
from karpy.core.nodepool.usage import GAUGES, Costs, add_up_costs, cost_news, pool_gauges
from karpy.model.records import ClaimRecord, PoolRecord
from karpy.ports.records import Kept

PERIOD: Final = timedelta(seconds=10)
PRICED_FOR: Final = timedelta(hours=1)
"""How long prices are taken to stay the same."""
_Series: TypeAlias = dict[tuple[str, ...], float]


class Gauges(Protocol):
    """The gauges of a metrics registry."""

    def labels(self, metric: str) -> tuple[str, ...]:
        """Name the labels of a metric, in their order."""

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
        self._costs = Costs({})
        self._priced: datetime | None = None
        """When costs were added up; None if claims have come or gone since."""
        context.records.claims.listen(self._hear_claim)

    async def run(self) -> None:
        """Set the gauges every ten seconds, until cancelled."""
        while True:
            with Barrier(partial(self._context.on_failure, "metrics of NodePools")):
                await self.refresh()
            await asyncio.sleep(PERIOD.total_seconds())

    async def refresh(self) -> None:
        """Set the gauges to the present state of pools."""
        try:
            await self._price()
        finally:
            self._show()

    def _show(self) -> None:
        pools = [kept.record for kept in self._context.records.pools.all()]
        ours = [each for each in pools if self._is_our_pool(each)]
        series: dict[str, _Series] = {metric: {} for metric in GAUGES}
        for count in pool_gauges(ours, self._costs):
            names = self._gauges.labels(count.metric)
            series[count.metric][tuple(count.labels[name] for name in names)] = count.value
        for metric, values in series.items():
            self._gauges.replace(metric, values)

    async def _price(self) -> None:
        """Add up costs, unless nothing has changed and prices are fresh."""
        now = self._context.clock.now()
        if self._priced is not None and now - self._priced < PRICED_FOR:
            return
        catalog = self._context.cloud.catalog()
        self._priced = now
        claims = (kept.record for kept in self._context.records.claims.all())
        ours = (each for each in claims if self._context.is_ours(each))
        costs = add_up_costs(ours, catalog)
        await self._context.writer.carry_out(cost_news(costs, self._costs))
        self._costs = costs

    def _hear_claim(
        self, _: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        if before is None or after is None or before.record.meta.labels != after.record.meta.labels:
            self._priced = None
