"""What NodePools are told by in numbers: their limits, their usage, their cost."""

from collections.abc import Iterable, Iterator
from typing import Final

from karpy.core.lifecycle.outcomes import Count
from karpy.core.pools.costs import Costs
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.records import PoolRecord
from karpy.model.resources import CPU, Resources

LIMIT: Final = "nodepools_limit"
USAGE: Final = "nodepools_usage"
COST: Final = "nodepools_cost_total"
GAUGES: Final = (LIMIT, USAGE, COST)
_MILLI: Final = 1000


def pool_gauges(pools: Iterable[PoolRecord], costs: Costs) -> tuple[Count, ...]:
    """Tell limits, usage and cost of pools; whatever else `GAUGES` have shown is gone."""
    return tuple(count for pool in pools for count in _gauges_of(pool, costs))


def _gauges_of(pool: PoolRecord, costs: Costs) -> Iterator[Count]:
    dollars = costs.by_pool.get(pool.name, 0) / MICROS_PER_DOLLAR
    yield Count(COST, {"nodepool": pool.name}, dollars)
    yield from _amounts(LIMIT, pool.name, pool.limits)
    yield from _amounts(USAGE, pool.name, pool.resources)


def _amounts(metric: str, pool: str, amounts: Resources) -> Iterator[Count]:
    for name, amount in sorted(amounts.items()):
        labels = {"resource_type": name.lower().replace("-", "_"), "nodepool": pool}
        yield Count(metric, labels, amount / _MILLI if name == CPU else float(amount))
